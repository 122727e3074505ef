"""Which connections are ended: a table of them, and the bounds."""

import random
from dataclasses import replace

import pytest

from xds.connections.guard import until_next
from xds.connections.sockets import address
from xds.connections.table import Connections, Socket, _Known
from xds.server.hooks import Cause, Peer
from xds.server.limits import Limits

LIMITS = Limits(
    request_bytes=1000,
    idle_seconds=60.0,
    idle_bytes=100,
    calls_at_once=3,
    calls_per_second=1.0,
    received_bytes_per_second=100.0,
)
ONE = ("10.0.0.1", 4001)


def _socket(number: int, received: int = 0, quiet: float = 0.0) -> Socket:
    return Socket(number, ("10.0.0.1", 4000 + number), received, quiet)


def _peer(number: int, certificate: bytes | None = b"PEM") -> Peer:
    return Peer(certificate, f"ipv4:10.0.0.1:{4000 + number}")


def _ended(connections: Connections, now: float, *sockets: Socket) -> dict[int, Cause]:
    return {each.socket.number: each.cause for each in connections.look(now, sockets)}


def test_who_carries_a_call_is_left_alone_however_long() -> None:
    """The stream of a proxy stays for half an hour, and nothing is heard of it for as long."""
    connections = Connections(LIMITS, 0)
    assert connections.begun(0.0, ONE, _peer(1))
    assert _ended(connections, 1.0, _socket(1, 500)) == {}
    assert _ended(connections, 1800.0, _socket(1, 500)) == {}


def test_who_carries_none_for_long_is_ended_counted_from_its_last_call() -> None:
    """Also when that call came and went between two looks."""
    connections = Connections(LIMITS, 9)
    assert _ended(connections, 0.0, _socket(1)) == {}
    connections.begun(50.0, ONE, _peer(1))
    connections.finished(50.5, ONE)
    assert _ended(connections, 59.0, _socket(1)) == {}
    assert _ended(connections, 119.0, _socket(1)) == {}
    assert _ended(connections, 119.5, _socket(1)) == {1: Cause.IDLE}


def test_of_too_many_the_silent_go_first_and_of_these_the_oldest() -> None:
    """Who has spoken stays longest, and who carries a call stays at any rate."""
    connections = Connections(LIMITS, 2)
    connections.begun(0.0, ONE, _peer(1))
    sockets = [_socket(1), _socket(2, quiet=1.0), _socket(3, quiet=3.0), _socket(4, 50, 9.0), _socket(5, 50)]
    assert _ended(connections, 10.0, *sockets) == {2: Cause.CROWD, 3: Cause.CROWD}

    connections = Connections(LIMITS, 3)
    connections.begun(0.0, ONE, _peer(1))
    assert _ended(connections, 10.0, *sockets) == {2: Cause.CROWD, 3: Cause.CROWD}, "a fourth may be silent"

    connections = Connections(LIMITS, 4)
    connections.begun(0.0, ONE, _peer(1))
    assert _ended(connections, 10.0, *sockets) == {3: Cause.CROWD}


def test_who_has_only_just_come_may_still_be_about_to_speak() -> None:
    """After a restart thousands are accepted before the first of them is read; the bound on all stands."""
    connections = Connections(LIMITS, 40)
    fresh = [_socket(number, quiet=0.1) for number in range(40)]
    assert _ended(connections, 10.0, *fresh) == {}
    assert len(_ended(connections, 10.9, *fresh)) == 30, "a fourth may be silent for longer than a second"

    assert len(_ended(Connections(LIMITS, 30), 10.0, *fresh)) == 10


def test_a_verdict_over_one_that_was_idle_falls_with_its_first_call() -> None:
    """It began between the look and the end."""
    connections = Connections(LIMITS, 0)
    (verdict,) = connections.look(1.0, [_socket(1)])
    assert connections.stands(verdict)
    connections.begun(1.1, ONE, _peer(1))
    assert not connections.stands(verdict)


def test_what_an_idle_one_sends_is_bounded() -> None:
    """From the beginning, and again after each call: it has nothing to say."""
    connections = Connections(LIMITS, 9)
    assert _ended(connections, 0.0, _socket(1, 100)) == {}
    assert _ended(connections, 1.0, _socket(1, 101)) == {1: Cause.BYTES}
    connections = Connections(LIMITS, 9)
    connections.begun(0.0, ONE, _peer(1))
    assert _ended(connections, 1.0, _socket(1, 1000)) == {}
    connections.finished(1.5, ONE)
    assert _ended(connections, 2.0, _socket(1, 1000)) == {}
    assert _ended(connections, 3.0, _socket(1, 1101)) == {1: Cause.BYTES}


def test_what_any_one_sends_is_bounded_in_time() -> None:
    """Eight of the largest requests at once, and so much a second."""
    connections = Connections(LIMITS, 9)
    connections.begun(0.0, ONE, _peer(1))
    assert _ended(connections, 10.0, _socket(1, 8000)) == {}
    assert _ended(connections, 11.0, _socket(1, 8100)) == {}
    assert _ended(connections, 12.0, _socket(1, 8201)) == {1: Cause.BYTES}


def test_who_carries_a_call_and_says_nothing_costs_a_glance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted: of a thousand that are what they were those are looked at that are not."""
    looked: list[int] = []
    seen = Connections._seen

    def counted(self: Connections, now: float, socket: Socket, known: _Known | None) -> _Known:
        looked.append(socket.number)
        return seen(self, now, socket, known)

    monkeypatch.setattr(Connections, "_seen", counted)
    connections = Connections(LIMITS, 9)
    sockets = [_socket(number, 10) for number in range(1000)]
    for each in sockets:
        connections.begun(0.0, each.address, Peer(str(each.number).encode()))
    assert _ended(connections, 1.0, *sockets) == {}
    looked.clear()
    sockets[7] = _socket(7, 11)
    connections.finished(1.5, sockets[9].address)
    connections.begun(1.5, sockets[11].address, Peer(b"12"))
    assert _ended(connections, 2.0, *sockets) == {}
    assert looked == [7, 9]


def test_it_makes_no_difference_whether_a_socket_is_the_same_object() -> None:
    """Whatever it carries, sends, and how often it is looked at."""
    chance = random.Random(7)  # noqa: S311 - no secret
    for _ in range(50):
        one, other = Connections(LIMITS, 2), Connections(LIMITS, 2)
        sockets = [_socket(number) for number in range(5)]
        for now in range(40):
            for number, each in enumerate(sockets):
                if chance.random() < 0.3:
                    sockets[number] = replace(each, received=each.received + chance.choice((50, 90, 9000)))
                use = one._uses.get(each.address)
                if use is not None and use.open and chance.random() < 0.3:
                    one.finished(now, each.address)
                    other.finished(now, each.address)
                elif chance.random() < 0.3:
                    begun = [c.begun(now, each.address, _peer(number)) for c in (one, other)]
                    assert begun[0] == begun[1]
            assert _ended(one, now, *sockets) == _ended(other, now, *map(replace, sockets))


def test_calls_of_one_certificate_are_bounded_on_all_its_connections() -> None:
    """Three at once, and one a second; another certificate is another client."""
    connections = Connections(LIMITS, 9)
    for number in (1, 2, 1):
        assert connections.begun(10.0, ("10.0.0.1", 4000 + number), _peer(number))
        connections.finished(10.0, ("10.0.0.1", 4000 + number))
    assert not connections.begun(10.0, ("10.0.0.1", 4003), _peer(3))
    assert connections.begun(10.0, ("10.0.0.1", 4004), _peer(4, b"OTHER"))
    ended = connections.look(10.1, [_socket(number) for number in (1, 2, 3, 4)])
    assert [(each.socket.number, each.peer, each.cause) for each in ended] == [(3, _peer(3), Cause.CALLS)]
    assert not connections.begun(11.9, ("10.0.0.1", 4005), _peer(5))
    assert connections.begun(14.0, ("10.0.0.1", 4006), _peer(6))


def test_who_goes_too_far_waits_the_longer_but_not_for_ever() -> None:
    """A thousand calls beyond the bound cost no more than as many again as are allowed."""
    connections = Connections(LIMITS, 9)
    for _ in range(1000):
        connections.begun(0.0, ONE, _peer(1))
    assert not connections.begun(3.9, ("10.0.0.1", 4002), _peer(2))
    assert connections.begun(8.0, ("10.0.0.1", 4003), _peer(3))


def test_calls_without_a_certificate_are_bounded_by_connection() -> None:
    """There is nothing else to know them by."""
    connections = Connections(LIMITS, 9)
    begun = [connections.begun(0.0, ("10.0.0.1", port), _peer(1, None)) for port in (1, 1, 1, 2, 1)]
    assert begun == [True, True, True, True, False]


def test_without_a_bound_any_number_of_calls_may_begin() -> None:
    """For relays, whose one certificate stands for many."""
    connections = Connections(replace(LIMITS, calls_per_second=None), 9)
    assert all(connections.begun(0.0, ONE, _peer(1)) for _ in range(1000))


def test_nothing_is_remembered_of_those_who_went() -> None:
    """However many there were."""
    connections = Connections(LIMITS, 9)
    for number in range(1000):
        client = ("10.0.0.2", number)
        connections.begun(1.0, client, Peer(str(number).encode(), "ipv4:10.0.0.2:1"))
        connections.finished(1.0, client)
    connections.look(1.0, [])
    assert len(connections._uses) == len(connections._calls) == 1000, "what is begun during a look stays"
    connections.look(1000.0, [])
    assert (connections._uses, connections._calls, connections._known) == ({}, {}, {})


@pytest.mark.parametrize(("spent", "seconds"), [(0.0, 1.0), (0.004, 1.0), (0.012, 2.4), (0.5, 4.0)])
def test_of_very_many_connections_the_next_look_comes_later(spent: float, seconds: float) -> None:
    """So that it takes no more than half a percent of a CPU, but within four seconds."""
    assert until_next(spent) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("peer", "expected"),
    [
        ("ipv4:127.0.0.1:4711", ("127.0.0.1", 4711)),
        ("ipv6:%5B::1%5D:4711", ("::1", 4711)),
        ("ipv6:[2001:db8:0::7]:4711", ("2001:db8::7", 4711)),
        ("ipv6:%5B::ffff:127.0.0.1%5D:4711", ("127.0.0.1", 4711)),
        ("ipv6:%5Bfe80::1%25eth0%5D:4711", ("fe80::1", 4711)),
        ("unix:", ("unix:", 0)),
    ],
)
def test_addresses_are_read_as_grpc_writes_them(peer: str, expected: tuple[str, int]) -> None:
    """In one spelling, whatever the family of the socket that was accepted."""
    assert address(peer) == expected
