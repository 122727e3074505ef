"""Tests of the choice of mode, network and user: the pure parts of interception."""

import uuid
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from demo import interception
from demo.interception import Reservations, free_network
from demo.supervisor import DemoError
from demo.topology import PLACES, Mode, TransparentAddresses
from demo.transparent import as_user, is_closed_to_others, place_batch, routes, switch_batch

TABLE = """\
default via 192.0.2.1 dev eth0
10.222.0.0/16 dev tun0 proto kernel scope link src 10.222.3.4
192.0.2.0/24 dev eth0 proto kernel scope link src 192.0.2.2
broadcast 192.0.2.255 dev eth0 table local proto kernel scope link src 192.0.2.2
local 127.0.0.0/8 dev lo table local proto kernel scope host src 127.0.0.1
"""


def _any(_name: str) -> bool:
    return True


def test_routes_are_read_from_every_table() -> None:
    """Destinations of all kinds of routes are returned; a default route has none."""
    assert routes(TABLE) == [
        IPv4Network("10.222.0.0/16"),
        IPv4Network("192.0.2.0/24"),
        IPv4Network("192.0.2.255/32"),
        IPv4Network("127.0.0.0/8"),
    ]


def test_free_network_overlaps_no_route() -> None:
    """The first free /24 is taken. If none is free, an error is raised."""
    assert free_network([], _any) == "10.222.0"
    assert free_network(routes(TABLE), _any) == "10.223.0"
    assert free_network([IPv4Network("0.0.0.0/0"), IPv4Network("10.222.0.128/25")], _any) == "10.222.1"
    with pytest.raises(DemoError, match="no network is free"):
        free_network([IPv4Network("10.0.0.0/8")], _any)


def test_two_demos_never_reserve_the_same_network() -> None:
    """A reserved network is not given to another demo until it is released."""
    name = f"test-{uuid.uuid4()}"
    first, second = Reservations(), Reservations()
    assert first.take(name)
    assert not second.take(name)
    assert free_network([], lambda octets: octets != "10.222.0") == "10.222.1"
    first.release()
    assert second.take(name)
    second.release()


@pytest.mark.parametrize(
    ("wanted", "lacking", "mode"),
    [
        ("auto", "", Mode.TRANSPARENT),
        ("auto", "it needs root", Mode.EXPLICIT),
        ("explicit", "", Mode.EXPLICIT),
        ("transparent", "", Mode.TRANSPARENT),
    ],
)
def test_privilege_decides_the_automatic_mode(
    monkeypatch: pytest.MonkeyPatch, wanted: str, lacking: str, mode: Mode
) -> None:
    """Auto is transparent if possible, and otherwise explicit with the reason."""
    monkeypatch.setattr(interception, "missing_for_transparent", lambda: lacking)
    chosen, why = interception.choose(wanted)
    assert chosen is mode
    assert lacking in why


def test_transparent_mode_without_its_requirements_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mode that was requested by name has no silent fallback."""
    monkeypatch.setattr(interception, "missing_for_transparent", lambda: "it needs root")
    with pytest.raises(DemoError, match="it needs root"):
        interception.choose("transparent")


def test_batches_connect_each_place_to_the_switch() -> None:
    """Every place gets a port of the bridge, an address and a default route."""
    batch = switch_batch([(PLACES[0], 77)])
    assert batch.splitlines()[-3:] == [
        "link add port1 type veth peer name eth0 netns 77",
        "link set port1 master bridge0",
        "link set port1 up",
    ]
    assert place_batch(TransparentAddresses("10.222.5"), PLACES[1]) == (
        "link set lo up\n"
        "link set eth0 up\n"
        "address add 10.222.5.12/24 dev eth0\n"
        "route add default via 10.222.5.1 dev eth0\n"
    )


def test_read_capability_is_added_only_for_closed_directories(tmp_path: Path) -> None:
    """A place's user gets the capability only if a needed file is in a closed directory."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "program").write_text("")
    assert is_closed_to_others(closed / "program")
    assert not is_closed_to_others(Path("/usr/bin/env"))
    assert "--ambient-caps" in as_user(1500, ["x"], [closed / "program"])
    assert "--ambient-caps" not in as_user(1500, ["x"], [Path("/usr/bin/env")])
