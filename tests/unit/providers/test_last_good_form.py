"""Tests of last good forms: an unreadable object stays in force, and a deleted one is removed."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from meshwright.mesh import kinds
from meshwright.mesh.kinds import Kind
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import InFile
from meshwright.providers.directory.file_form import read_file
from meshwright.providers.directory.manifests import Manifests
from meshwright.providers.objects import read_form
from meshwright.specs.kinds import READ
from meshwright.specs.reader import ManifestReading, UnreadManifest
from tests.meshes.texts import account, account_key, workload, workload_key
from tests.tools.hypothesis_profiles import examples
from tests.unit.providers.directory.test_foreign_kinds import BODIES, KEPT


def _text(kind: Kind, head: tuple[str, str] | None = None, *, name: str = "db") -> str:
    api_version, word = head or (READ[kind].api_versions[-1], kind.name)
    namespace = "" if kind == kinds.NAMESPACE else ", namespace: shop"
    labels = "{kubernetes.io/service-name: db}" if kind == kinds.ENDPOINT_SLICE else "{}"
    metadata = f"{{name: {name}{namespace}, labels: {labels}}}"
    return f"apiVersion: {api_version}\nkind: {word}\nmetadata: {metadata}\n{BODIES[kind]}\n"


def _slips(word: str) -> Iterator[str]:
    """Yield a word with each letter left out, doubled or swapped with the next, and in the wrong case.

    Each run applies one of the three to every second letter, in turn; `make fuzz` applies all to each letter.
    """
    for at in range(0, len(word), examples(2, fresh=1)):
        ways = (
            word[:at] + word[at + 1 :],
            word[:at] + word[at] + word[at:],
            word[:at] + word[at + 1 : at + 2] + word[at] + word[at + 2 :],
        )
        yield from ways if examples(1, fresh=3) > 1 else (ways[at % 3],)
    yield from (word.lower(), word.upper(), word.swapcase(), f"{word}s")


def _heads(kind: Kind) -> list[tuple[str, str]]:
    api_version = READ[kind].api_versions[-1]
    misspelt = [(slip, kind.name) for slip in _slips(api_version)]
    misspelt += [(api_version, slip) for slip in _slips(kind.name)]
    readable = {(version, item.name) for item, reader in READ.items() for version in reader.api_versions}
    return [head for head in dict.fromkeys(misspelt) if head not in readable and all(head)]


_NOT_KEPT = (
    kinds.HTTP_ROUTE,
    kinds.GRPC_ROUTE,
    kinds.TLS_ROUTE,
    kinds.GATEWAY_TCP_ROUTE,
    kinds.REFERENCE_GRANT,
)
GATEWAY = """\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: shop}
spec: {gatewayClassName: meshwright, listeners: [{name: https, port: 443, protocol: TCP}]}
"""


def test_only_routes_and_grants_have_no_last_good_form() -> None:
    """Each of them opens a way: a form that is kept would keep a way open that its owner may have closed."""
    assert {kind for kind in BODIES if kind not in KEPT} == {*_NOT_KEPT}


def test_refused_edit_of_a_live_gateway_keeps_its_listeners() -> None:
    """An impossible port in the place of a good one is an error, and the gateway goes on as before."""
    good = Manifests().apply("edge.yaml", GATEWAY)
    (key,) = good.objects()
    bad = good.apply("edge.yaml", GATEWAY.replace("443", "70000"))
    assert bad.objects()[key] == replace(good.objects()[key], stale=True)
    assert [str(problem) for problem in bad.problems()] == [
        (
            "MW1013 edge.yaml:1 (document 1): Gateway shop/public: "
            "spec.listeners[0].port is 70000: must be a whole number from 1 to 65535"
        ),
        (
            "MW1107 edge.yaml:1 (document 1): Gateway shop/public: cannot be read "
            "here; the last good form of the object, from edge.yaml:1 (document 1), stays in force. Correct "
            "the document, or remove it to remove the object"
        ),
    ]
    assert dict(bad.apply("edge.yaml", "").objects()) == {}


@pytest.mark.parametrize("kind", _NOT_KEPT, ids=str)
def test_refused_edit_of_a_route_or_grant_removes_it_at_once(kind: Kind) -> None:
    """A rule or permission that its owner replaces has no effect, even if the new one is refused."""
    good = Manifests().apply("x.yaml", account("a") + "---\n" + _text(kind))
    (key,) = good.objects().keys() - {account_key("a")}
    for broken in (_text(kind).replace("spec:", "sepc:"), _text(kind, (f"{kind.group}/v99", kind.name))):
        state = good.apply("x.yaml", account("a") + "---\n" + broken)
        assert state.objects().keys() == {account_key("a")}, broken
        assert "error" in {problem.severity.value for problem in state.problems()}
    # A text that cannot be parsed at all can be the file of any object, so it is no edit of this one.
    assert key in good.apply("x.yaml", account("a") + "---\nx: [\n").objects()


@pytest.mark.fuzzed
@pytest.mark.parametrize("kind", KEPT, ids=str)
def test_typing_error_in_kind_or_api_version_keeps_the_object(kind: Kind) -> None:
    """The error is reported, and a warning names the object and the place of the document."""
    good = Manifests().apply("x.yaml", account("a") + "---\n" + _text(kind))
    (key,) = good.objects().keys() - {account_key("a")}
    for head in _heads(kind):
        state = good.apply("x.yaml", account("a") + "---\n" + _text(kind, head))
        assert key in state.objects(), head
        assert state.objects()[key].stale, head
        problems = [problem for problem in state.problems() if problem.code != "MW1031"]
        assert [problem.severity.value for problem in problems][:1] == ["error"], (head, problems)
        (held,) = [problem for problem in problems if problem.code == "MW1107"]
        assert (held.key, str(held.origin)) == (key, "x.yaml:5 (document 2)")
        assert state.apply("x.yaml", account("a")).objects().keys() == {account_key("a")}


BROKEN = {
    "an empty kind": "apiVersion: meshwright.dev/v1alpha1\nkind:\nmetadata: {name: w, namespace: shop}\n",
    "no head": "metadata: {name: w, namespace: shop}\n",
    "metadata misspelt": workload("w", "10.0.0.1").replace("metadata", "metdata"),
    "name misspelt": workload("w", "10.0.0.1").replace("name:", "nmae:", 1),
    "no name of Kubernetes": workload("w", "10.0.0.1").replace("name: w", "name: W_1"),
    "a bad namespace": workload("w", "10.0.0.1").replace("namespace: shop", "namespace: Shop"),
    "another name, and another fault": workload("v", "10.0.0"),
    "another name of no kind": workload("v", "10.0.0.1").replace("Workload", "Thing"),
    "indented by one": workload("w", "10.0.0.1").replace("\nkind", "\n kind"),
    "nothing but an opened list": "[\n",
    "a list": "- " + workload("w", "10.0.0.1").replace("\n", "\n  "),
    "a tab": workload("w", "10.0.0.1").replace("kind: ", "kind:\t\t[x"),
    "a merge conflict": "<<<<<<< ours\n" + workload("w", "10.0.0.1") + "=======\n>>>>>>> theirs\n",
    "its marker lost": None,
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=list(BROKEN))
@pytest.mark.parametrize("first", ["", account("new") + "---\n"], ids=["at its place", "one further"])
def test_unreadable_document_keeps_the_missing_object(broken: str | None, first: str) -> None:
    """This holds at any place in the file.

    A correction makes the object fresh, and it is removed without the document.
    """
    good = Manifests().apply("x.yaml", account("a") + "---\n" + workload("w", "10.0.0.1"))
    newest = account("a") + ("---\n" + broken if broken is not None else workload("w", "10.0.0.1"))
    state = good.apply("x.yaml", first + newest)
    assert state.objects()[workload_key("w")].stale
    assert account_key("a") in state.objects()
    assert "MW1107" in [problem.code for problem in state.problems()]
    again = state.apply("x.yaml", account("other") + "---\n" + first + newest)
    assert again.objects()[workload_key("w")].stale
    mended = again.apply("x.yaml", workload("w", "10.0.0.2"))
    assert [(str(key), sourced_object.stale) for key, sourced_object in mended.objects().items()] == [
        ("Workload shop/w", False)
    ]
    assert mended.problems() == ()
    assert workload_key("w") not in again.apply("x.yaml", account("a")).objects()


@pytest.mark.parametrize("beside", ["just text\n", "apiVersion: v1\nkind: Wrkload\nmetadata: {name: v}\n"])
def test_older_unreadable_document_does_not_keep_a_deleted_object(beside: str) -> None:
    """The document was unreadable before the deletion, so it is not the deleted object, even if it moved."""
    both = account("a") + "---\n" + workload("w", "10.0.0.1") + "---\n" + beside
    good = Manifests().apply("x.yaml", both)
    state = good.apply("x.yaml", account("n") + "---\n" + beside + "---\n" + account("a"))
    assert set(state.objects()) == {account_key("a"), account_key("n")}
    broken = good.apply("x.yaml", both.replace("10.0.0.1", "10.0.0"))
    assert broken.objects()[workload_key("w")].stale


def test_invalid_object_with_another_key_does_not_keep_a_deleted_object() -> None:
    """The kind and name of the invalid object are readable and differ from the deleted one's."""
    good = Manifests().apply("x.yaml", account("a") + "---\n" + workload("w", "10.0.0.1"))
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: shop}\nspec: []\n"
    state = good.apply("x.yaml", account("a") + "---\n" + service)
    assert set(state.objects()) == {account_key("a")}


def test_renamed_object_replaces_the_old_one() -> None:
    """Its document is valid, so the removal of the old name is intended."""
    good = Manifests().apply("x.yaml", account("a"))
    assert set(good.apply("x.yaml", account("b")).objects()) == {account_key("b")}


def _listed(*items: str) -> str:
    return '{"apiVersion": "v1", "kind": "List", "items": [' + ", ".join(items) + "]}\n"


def _item(name: str, kind: str = "ServiceAccount") -> str:
    return f'{{"apiVersion": "v1", "kind": "{kind}", "metadata": {{"name": "{name}", "namespace": "shop"}}}}'


def test_items_of_a_list_are_treated_like_documents() -> None:
    """A misspelt item or list keeps its objects, and a removed item is removed."""
    good = Manifests().apply("x.json", _listed(_item("a"), _item("b")))
    for text in (
        _listed(_item("a"), _item("b", "ServiceAcount")),
        _listed(_item("a"), _item("b").replace('"b"', "7")),
        _listed(_item("a"), _item("b")).replace('"List"', '"Lst"'),
        _listed(_item("a"), _item("b")).replace('"items"', '"itms"'),
        _listed(_item("a"), _item("b")).replace('"v1", "kind": "List"', '"v2", "kind": "List"'),
        _listed(_item("a"), _item("b"))[:-3],
    ):
        state = good.apply("x.json", text)
        assert set(state.objects()) == {account_key("a"), account_key("b")}, text
        assert state.objects()[account_key("b")].stale
    assert set(good.apply("x.json", _listed(_item("a"))).objects()) == {account_key("a")}


def test_list_with_a_misspelt_group_or_kind_deletes_nothing() -> None:
    """The objects of an EndpointSliceList stay in force as stale."""
    text = (
        "apiVersion: discovery.k8s.io/v1\nkind: EndpointSliceList\nitems:\n"
        "- metadata: {name: db, namespace: shop, labels: {kubernetes.io/service-name: db}}\n"
        "  addressType: IPv4\n  endpoints: [{addresses: [10.0.0.1]}]\n  ports: [{port: 1}]\n"
    )
    good = Manifests().apply("x.yaml", text)
    (key,) = good.objects()
    assert key == ObjectKey(kinds.ENDPOINT_SLICE, key.namespace, "db")
    for slip in (text.replace("discovery", "discvery"), text.replace("EndpointSlice", "EndpointSlic")):
        assert good.apply("x.yaml", slip).objects()[key].stale


class _Counted(ObjectKey):
    """A key that counts the reads of its claim."""

    thoughts = 0

    @property
    def claim(self) -> ObjectKey:
        """The key under which a source stores the object."""
        _Counted.thoughts += 1
        return ObjectKey(self.kind, self.namespace, self.name)


def _thoughts(number: int) -> int:
    _Counted.thoughts = 0
    good = "---\n".join(_text(kinds.SERVICE, name=f"s{item}") for item in range(number))
    keys = [_Counted(kinds.WORKLOAD, Namespace("shop"), f"w{item}") for item in range(number)]
    bad = [(InFile("x.yaml", 1, 1), ManifestReading(unread=(UnreadManifest(key, key.name),))) for key in keys]
    assert not read_form("", bad, read_file("x.yaml", good, None)).objects
    return _Counted.thoughts


def test_cost_of_unreadable_documents_grows_linearly() -> None:
    """A generator may write thousands of bad documents at once.

    Each of them must not be compared with every missing object.
    """
    assert _thoughts(40) <= 4 * _thoughts(10)
