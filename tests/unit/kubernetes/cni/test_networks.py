"""Tests of changes to a node's folder of CNI networks.

Our entry is in the list that is used, and the text of others survives. Folders are random, and a change may
be killed between two steps. The choice of the used file follows libcni.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.kubernetes.cni.conflist import TYPE, with_entry, without_entry
from meshwright.kubernetes.cni.networks import (
    FileRemoval,
    FileRename,
    Files,
    FileWrite,
    NoNetworkError,
    Step,
    entry,
    put_in,
    take_out,
    used,
)

OURS = entry("/run/meshwright-cni/cni.sock")
OTHER = {"type": "ptp", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.0.0.0/8"}]]}, "x": [1.5]}
CALICO = '{\n\t"name" : "k8s-pod-network",\r\n "cniVersion":"0.3.1", "plugins" : [ {"type":"calico", "a":"é]\\"}"} ,\n\n{"type": "portmap"}\n]\n\n,"later": {"plugins": []} }\n\n'  # noqa: E501
SINGLE = '  {"cniVersion": "0.4.0", "name": "mynet", "type": "bridge", "isGateway": true}\n'


def listed(*plugins: Mapping[str, Any], name: str = "net", indent: int | None = None) -> str:
    """Return the text of a network configuration list."""
    return json.dumps({"cniVersion": "1.0.0", "name": name, "plugins": list(plugins)}, indent=indent)


def done(files: Files, steps: Iterable[Step]) -> dict[str, bytes]:
    """Return the content of a folder after these steps."""
    result = dict(files)
    for step in steps:
        match step:
            case FileWrite(name, content, _):
                result[name] = content
            case FileRename(name, to):
                result[to] = result.pop(name)
            case FileRemoval(name):
                result.pop(name, None)
    return result


def types(content: bytes) -> list[str]:
    """Return the types of a list's plug-ins in their order."""
    return [plugin["type"] for plugin in json.loads(content)["plugins"]]


def test_text_of_other_authors_stays_byte_for_byte() -> None:
    """Adding and removing our entry restores the original text, with its spaces, numbers and order."""
    for text in (
        CALICO,
        listed(OTHER),
        listed(OTHER, OTHER, indent=4),
        listed({"type": "a", "plugins": [1]}),
    ):
        there = with_entry(text, OURS)
        assert without_entry(there) == text
        assert with_entry(there, OURS) == there
        assert types(there.encode()) == [*types(text.encode()), TYPE]
        assert json.loads(there) == {
            **json.loads(text),
            "plugins": [*json.loads(text)["plugins"], OURS],
        }


def test_entry_of_another_version_is_replaced_in_its_place() -> None:
    """A duplicate of our entry is removed, and a plug-in behind our entry keeps its place."""
    old = {"type": TYPE, "socket": "/elsewhere"}
    text = listed(OTHER, old, {"type": "istio-cni"}, old)
    assert json.loads(with_entry(text, OURS))["plugins"] == [OTHER, OURS, {"type": "istio-cni"}]
    assert without_entry(text) == listed(OTHER, {"type": "istio-cni"})
    assert without_entry(listed(old, OTHER)) == listed(OTHER)
    assert json.loads(without_entry(listed(old)))["plugins"] == []


def test_first_list_that_a_runtime_can_read_is_used() -> None:
    """Unreadable files before the used list are skipped, and lists behind it stay unchanged.

    A folder without a readable list is an error.
    """
    files = {
        "00-broken.conflist": b"{",
        "01-nan.conflist": b'{"name": "a", "x": NaN, "plugins": [{"type": "a"}]}',
        "02-empty.conflist": listed().encode(),
        "03-nameless.conflist": b'{"plugins": [{"type": "a"}]}',
        "04-list.conf": listed(OTHER).encode(),
        "05-typeless.conflist": listed({"name": "x"}).encode(),
        "06-deep.conflist": b"[" * 100000,
        "07-text.conflist": b"\xff\xfe",
        "09-notes.txt": listed(OTHER).encode(),
        "10-used.conflist": CALICO.encode(),
        "20-later.conflist": listed(OTHER).encode(),
    }
    assert used(files) == "10-used.conflist"
    steps = put_in(files, OURS)
    assert [step.name for step in steps] == ["10-used.conflist"]
    assert put_in(done(files, steps), OURS) == ()
    with pytest.raises(
        NoNetworkError, match="the node does not have a network configuration yet: the folder needs"
    ):
        put_in({"00-broken.conflist": b"{"}, OURS)


def test_single_plug_in_becomes_a_list_and_is_restored() -> None:
    """The runtime uses the new list.

    The original file is kept aside and restored on removal, and an installer may rewrite the file meanwhile.
    """
    files = {"10-net.conf": SINGLE.encode(), "99-loopback.conf": b'{"name": "lo", "type": "loopback"}'}
    there = done(files, put_in(files, OURS))
    assert sorted(there) == ["10-net.conf.meshwright", "10-net.conflist", "99-loopback.conf"]
    result = json.loads(there["10-net.conflist"])
    assert (result["name"], result["cniVersion"]) == ("mynet", "0.4.0")
    assert result["plugins"] == [json.loads(SINGLE), {**OURS, "replaces": "10-net.conf"}]
    assert put_in(there, OURS) == ()
    assert done(there, take_out(there)) == files
    anew = {**there, "10-net.conf": SINGLE.replace("true", "false").encode()}
    again = done(anew, put_in(anew, OURS))
    assert json.loads(again["10-net.conflist"])["plugins"][0]["isGateway"] is False
    assert done(again, take_out(again)) == {**files, "10-net.conf": anew["10-net.conf"]}
    assert done(anew, take_out(anew)) == {**files, "10-net.conf": anew["10-net.conf"]}


@pytest.mark.parametrize("other", ["10-net.conflist", "10-net.conf-a.conflist"])
def test_list_does_not_take_the_place_of_another_network(other: str) -> None:
    """A single plug-in's list must not overwrite another network's file, nor sort behind it.

    The runtime would then use the other network.
    """
    files = {"10-net.conf": SINGLE.encode(), other: CALICO.encode()}
    with pytest.raises(
        NoNetworkError, match=f"10-net.conf configures one plug-in, .* because {other} belongs to another"
    ):
        put_in(files, OURS)


def test_entry_moves_to_a_network_that_sorts_first() -> None:
    """When a list with an earlier name appears, our entry moves there.

    Every other file has its original content again.
    """
    files = {"10-a.conf": SINGLE.encode(), "20-b.conflist": CALICO.encode()}
    there = done(files, put_in(files, OURS))
    before = {**there, "05-c.conflist": listed(OTHER).encode()}
    after = done(before, put_in(before, OURS))
    assert types(after["05-c.conflist"])[-1] == TYPE
    assert {name: item for name, item in after.items() if name != "05-c.conflist"} == files


_TYPES = st.sampled_from(["bridge", "ptp", "tuning", "istio-cni"])
_PLUGINS = st.dictionaries(
    st.sampled_from(["a", "mtu", "plugins", "ipam"]),
    st.recursive(st.integers() | st.text(), st.lists),
    max_size=3,
).flatmap(lambda rest: _TYPES.map(lambda name: {**rest, "type": name}))
_LISTS = st.builds(
    lambda plugins, name, indent: listed(*plugins, name=name, indent=indent).encode(),
    st.lists(_PLUGINS, min_size=1, max_size=3),
    st.sampled_from(["a", "b"]),
    st.sampled_from([None, 0, 1, 4]),
)
_SINGLES = _PLUGINS.map(lambda item: json.dumps({**item, "name": "one"}).encode())
_ENDINGS = st.sampled_from([".conflist", ".conf", ".json", ""])
_NAMES = st.builds("{}-{}{}".format, st.integers(0, 3), st.sampled_from("ab"), _ENDINGS)
_FOLDERS = st.dictionaries(_NAMES, _LISTS | _SINGLES | st.just(b"{"), max_size=5)


@given(_FOLDERS, st.integers(0, 6), st.integers(0, 6))
def test_interrupted_changes_leave_one_entry_and_removal_restores_the_folder(
    files: dict[str, bytes], killed: int, again: int
) -> None:
    """A change that was killed between two steps is finished by the next run: exactly one entry is present.

    Removal, also an interrupted one, restores the original folder.
    """
    try:
        steps = put_in(files, OURS)
    except NoNetworkError:
        assert take_out(files) == ()
        return
    there = done(files, steps[:killed])
    there = done(there, put_in(there, OURS))
    assert there == done(files, steps)
    assert put_in(there, OURS) == ()
    assert types(there[used(there)]).count(TYPE) == 1
    assert sum(item.count(b'"type": "meshwright-cni"') for item in there.values()) == 1
    left = done(there, take_out(there)[:again])
    assert done(left, take_out(left)) == files
    assert done(there, take_out(there)) == files
