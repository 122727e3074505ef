"""Choosing a mode, networks and users: the pure parts of interception."""

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
    """Destinations of all kinds of routes; a default route has none."""
    assert routes(TABLE) == [
        IPv4Network("10.222.0.0/16"),
        IPv4Network("192.0.2.0/24"),
        IPv4Network("192.0.2.255/32"),
        IPv4Network("127.0.0.0/8"),
    ]


def test_a_free_network_overlaps_no_route() -> None:
    """The first free /24 is taken; where all are taken, that is said."""
    assert free_network([], _any) == "10.222.0"
    assert free_network(routes(TABLE), _any) == "10.223.0"
    assert free_network([IPv4Network("0.0.0.0/0"), IPv4Network("10.222.0.128/25")], _any) == "10.222.1"
    with pytest.raises(DemoError, match="no network is free"):
        free_network([IPv4Network("10.0.0.0/8")], _any)


def test_two_demos_never_take_the_same_place() -> None:
    """What one holds, another does not get, until it is given back."""
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
def test_privilege_decides(monkeypatch: pytest.MonkeyPatch, wanted: str, lacking: str, mode: Mode) -> None:
    """Auto is transparent where it can be had, and says why not elsewhere."""
    monkeypatch.setattr(interception, "missing_for_transparent", lambda: lacking)
    chosen, why = interception.choose(wanted)
    assert chosen is mode
    assert lacking in why


def test_transparent_is_refused_where_it_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for by name, it never falls back silently."""
    monkeypatch.setattr(interception, "missing_for_transparent", lambda: "it needs root")
    with pytest.raises(DemoError, match="it needs root"):
        interception.choose("transparent")


def test_batches_join_each_place_to_the_switch() -> None:
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


def test_reading_past_permissions_only_where_needed(tmp_path: Path) -> None:
    """A place's user gets the one capability only where what it needs stands in a closed directory."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "program").write_text("")
    assert is_closed_to_others(closed / "program")
    assert not is_closed_to_others(Path("/usr/bin/env"))
    assert "--ambient-caps" in as_user(1500, ["x"], [closed / "program"])
    assert "--ambient-caps" not in as_user(1500, ["x"], [Path("/usr/bin/env")])
