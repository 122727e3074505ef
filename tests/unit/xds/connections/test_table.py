"""Tests of the table of connections: which connections are ended, and for which bound."""

import random
from dataclasses import replace

import pytest

from xds.connections.guard import LOOK_SECONDS, until_next
from xds.connections.sockets import address
from xds.connections.table import AT_LEAST, IN_TURN, Connections, Socket, _KnownConnection
from xds.hooks import Cause, Peer
from xds.limits import Limits

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
    return {
        verdict.socket.number: verdict.cause
        for verdict in connections.look(now, sockets, tuple(connections._known))
    }


def test_connection_with_a_call_is_never_ended_as_idle() -> None:
    """The stream of a proxy lasts for half an hour, and may receive no byte in this time."""
    connections = Connections(LIMITS, 0)
    assert connections.begun(0.0, ONE, _peer(1))
    assert _ended(connections, 1.0, _socket(1, 500)) == {}
    assert _ended(connections, 1800.0, _socket(1, 500)) == {}


def test_idle_connection_is_ended_60_seconds_after_its_last_call() -> None:
    """The time counts from the end of the last call, also if the call began and ended between two looks."""
    connections = Connections(LIMITS, 9)
    assert _ended(connections, 0.0, _socket(1)) == {}
    connections.begun(50.0, ONE, _peer(1))
    connections.finished(50.5, ONE)
    assert _ended(connections, 59.0, _socket(1)) == {}
    assert _ended(connections, 119.0, _socket(1)) == {}
    assert _ended(connections, 119.5, _socket(1)) == {1: Cause.IDLE}


def test_too_many_connections_end_silent_ones_first_and_of_these_the_oldest() -> None:
    """Connections that have sent data are kept longer, and a connection with a call is always kept."""
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


def test_new_silent_connections_get_a_second_before_they_are_ended() -> None:
    """After a restart thousands of connections are accepted before any is read.

    The bound on all connections still applies.
    """
    connections = Connections(LIMITS, 40)
    fresh = [_socket(number, quiet=0.1) for number in range(40)]
    assert _ended(connections, 10.0, *fresh) == {}
    assert len(_ended(connections, 10.9, *fresh)) == 30, "a fourth may be silent for longer than a second"

    assert len(_ended(Connections(LIMITS, 30), 10.0, *fresh)) == 10


def test_crowd_of_new_connections_is_looked_at_soon_despite_the_cost() -> None:
    """Until the next look, more silent connections remain than allowed.

    The normal interval returns when they have sent data or are ended.
    """
    fresh, dear = [_socket(number, quiet=0.1) for number in range(11)], 0.5
    connections, crowded = Connections(LIMITS, 40), []
    for now, ended in ((10.0, 0), (11.0, 1)):
        assert len(_ended(connections, now, *fresh)) == ended
        crowded.append(connections.crowded)
    assert crowded == [True, False]
    assert [until_next(dear, item) for item in crowded] == [LOOK_SECONDS, until_next(dear)]
    assert until_next(dear) > LOOK_SECONDS

    spoke = Connections(LIMITS, 40)
    assert _ended(spoke, 10.0, *fresh) == _ended(spoke, 11.0, _socket(0, 50), *fresh[1:]) == {}
    assert not spoke.crowded


def test_verdict_on_an_idle_connection_is_void_after_its_first_call() -> None:
    """The call began between the look and the end of the connection."""
    connections = Connections(LIMITS, 0)
    (verdict,) = connections.look(1.0, [_socket(1)], ())
    assert connections.is_still_valid(verdict)
    connections.begun(1.1, ONE, _peer(1))
    assert not connections.is_still_valid(verdict)


def test_bytes_on_an_idle_connection_are_bounded() -> None:
    """The bound applies from the beginning and again after each call.

    An idle connection has no reason to send.
    """
    connections = Connections(LIMITS, 9)
    assert _ended(connections, 0.0, _socket(1, 100)) == {}
    assert _ended(connections, 1.0, _socket(1, 101)) == {1: Cause.BYTES}
    connections = Connections(LIMITS, 9)
    connections.begun(0.0, ONE, _peer(1))
    assert _ended(connections, 1.0, _socket(1, 1000)) == {}
    connections.finished(1.5, ONE)
    assert _ended(connections, 2.0, _socket(1, 1000)) == {}
    assert _ended(connections, 3.0, _socket(1, 1101)) == {1: Cause.BYTES}


def test_bytes_per_second_on_any_connection_are_bounded() -> None:
    """The bound allows eight of the largest requests at once, and then 100 bytes each second."""
    connections = Connections(LIMITS, 9)
    connections.begun(0.0, ONE, _peer(1))
    assert _ended(connections, 10.0, _socket(1, 8000)) == {}
    assert _ended(connections, 11.0, _socket(1, 8100)) == {}
    assert _ended(connections, 12.0, _socket(1, 8201)) == {1: Cause.BYTES}


def test_unchanged_connections_with_calls_are_not_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a thousand unchanged connections only the two that changed are examined. The test counts them."""
    looked: list[int] = []
    seen = Connections._seen

    def counted(
        self: Connections, now: float, socket: Socket, known: _KnownConnection | None
    ) -> _KnownConnection:
        looked.append(socket.number)
        return seen(self, now, socket, known)

    monkeypatch.setattr(Connections, "_seen", counted)
    connections = Connections(LIMITS, 9)
    sockets = [_socket(number, 10) for number in range(1000)]
    for item in sockets:
        connections.begun(0.0, item.address, Peer(str(item.number).encode()))
    assert _ended(connections, 1.0, *sockets) == {}
    looked.clear()
    sockets[7] = _socket(7, 11)
    connections.finished(1.5, sockets[9].address)
    connections.begun(1.5, sockets[11].address, Peer(b"12"))
    assert _ended(connections, 2.0, *sockets) == {}
    assert looked == [7, 9]


def test_equal_socket_objects_lead_to_the_same_verdicts() -> None:
    """Verdicts depend on a socket's values, not on its identity, for random calls and bytes."""
    chance = random.Random(7)  # noqa: S311 - no secret
    for _ in range(50):
        one, other = Connections(LIMITS, 2), Connections(LIMITS, 2)
        sockets = [_socket(number) for number in range(5)]
        for now in range(40):
            for number, socket in enumerate(sockets):
                if chance.random() < 0.3:
                    sockets[number] = replace(
                        socket, received=socket.received + chance.choice((50, 90, 9000))
                    )
                use = one._uses.get(socket.address)
                if use is not None and use.open and chance.random() < 0.3:
                    one.finished(now, socket.address)
                    other.finished(now, socket.address)
                elif chance.random() < 0.3:
                    begun = [c.begun(now, socket.address, _peer(number)) for c in (one, other)]
                    assert begun[0] == begun[1]
            assert _ended(one, now, *sockets) == _ended(other, now, *map(replace, sockets))


def _carrying(many: int) -> tuple[Connections, list[Socket]]:
    """Return a table of connections that each carry a call, and their sockets, after a first look."""
    connections, sockets = Connections(LIMITS, 9), [_socket(number, 10) for number in range(many)]
    for socket in sockets:
        connections.begun(0.0, socket.address, Peer(str(socket.number).encode()))
    assert _ended(connections, 1.0, *sockets) == {}
    return connections, sockets


def _looked(connections: Connections, now: float, sockets: list[Socket]) -> tuple[set[int], dict[int, Cause]]:
    """Look at the due sockets; return their numbers, and the connections to end with the causes."""
    due = connections.due()
    seen = [socket for socket in sockets if socket.number in due]
    ended = {verdict.socket.number: verdict.cause for verdict in connections.look(now, seen, due)}
    return {socket.number for socket in seen}, ended


def test_each_of_many_calm_connections_is_looked_at_in_its_turn() -> None:
    """Four thousand connections are looked at in eight parts.

    A connection that sent too much is found in its turn. Few connections are all looked at.
    """
    connections, sockets = _carrying(4000)
    sockets[1234] = _socket(1234, 1_000_000)
    parts = [_looked(connections, 2.0 + turn, sockets) for turn in range(IN_TURN)]
    assert {len(seen) for seen, _ in parts} == {500, 501}, "the one that was found is calm no more"
    assert set.union(*(seen for seen, _ in parts)) == set(range(4000))
    assert next(ended for _, ended in parts if ended) == {1234: Cause.BYTES}
    few, there = _carrying(AT_LEAST)
    assert len(_looked(few, 2.0, there)[0]) == AT_LEAST, "of few all are"


def test_connection_with_an_ended_or_refused_call_is_looked_at_next() -> None:
    """The connection is idle or must be ended, so it does not wait for its turn."""
    connections, sockets = _carrying(4000)
    connections.finished(1.5, sockets[3998].address)
    begun = [connections.begun(1.5, sockets[3999].address, Peer(b"3999")) for _ in range(4)]
    assert begun[-1] is False
    seen, ended = _looked(connections, 2.0, sockets)
    assert {3998, 3999} < seen
    assert ended == {3999: Cause.CALLS}
    for now in range(3, 40):
        seen, _ = _looked(connections, now, sockets)
        assert 3998 in seen, "as long as it is idle"


def test_skipping_calm_connections_does_not_change_the_verdicts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two tables give the same verdicts, one of which skips calm connections.

    Calls, sockets and bytes are random.
    """
    monkeypatch.setattr("xds.connections.table.AT_LEAST", 1)
    chance = random.Random(11)  # noqa: S311 - no secret
    for _ in range(30):
        whole, part = Connections(LIMITS, 4), Connections(LIMITS, 4)
        sockets, numbers, passed = dict[int, Socket](), iter(range(1000)), 0
        for now in range(60):
            for number, socket in list(sockets.items()):
                use, rolled = whole._uses.get(socket.address), chance.random()
                carries = use is not None and use.open > 0
                if carries and rolled < 0.1:
                    whole.finished(now, socket.address)
                    part.finished(now, socket.address)
                elif rolled < 0.3:
                    for table in (whole, part):
                        table.begun(now, socket.address, _peer(number, str(number).encode()))
                elif not carries and rolled < 0.5:
                    sockets[number] = replace(socket, received=socket.received + 50)
                elif not carries and rolled < 0.6:
                    del sockets[number]
            if chance.random() < 0.7:
                new = next(numbers)
                sockets[new] = _socket(new)
            due = part.due()
            seen = [
                socket
                for socket in sockets.values()
                if socket.number in due or socket.number not in part._known
            ]
            passed += len(sockets) - len(seen)
            result = [
                {(verdict.socket.number, verdict.cause) for verdict in verdicts}
                for verdicts in (
                    whole.look(now, sockets.values(), tuple(whole._known)),
                    part.look(now, seen, due),
                )
            ]
            assert result[0] == result[1]
            assert whole._known.keys() == part._known.keys() == sockets.keys()
        assert passed, "else nothing was shown"


def test_calls_of_one_certificate_are_bounded_on_all_its_connections() -> None:
    """Three calls at once and one each second are allowed. Another certificate is another client."""
    connections = Connections(LIMITS, 9)
    for number in (1, 2, 1):
        assert connections.begun(10.0, ("10.0.0.1", 4000 + number), _peer(number))
        connections.finished(10.0, ("10.0.0.1", 4000 + number))
    assert not connections.begun(10.0, ("10.0.0.1", 4003), _peer(3))
    assert connections.begun(10.0, ("10.0.0.1", 4004), _peer(4, b"OTHER"))
    ended = connections.look(10.1, [_socket(number) for number in (1, 2, 3, 4)], ())
    assert [(verdict.socket.number, verdict.peer, verdict.cause) for verdict in ended] == [
        (3, _peer(3), Cause.CALLS)
    ]
    assert not connections.begun(11.9, ("10.0.0.1", 4005), _peer(5))
    assert connections.begun(14.0, ("10.0.0.1", 4006), _peer(6))


def test_client_beyond_the_call_rate_waits_a_bounded_time() -> None:
    """The penalty of a thousand excess calls is capped: a new call is accepted after 8 seconds."""
    connections = Connections(LIMITS, 9)
    for _ in range(1000):
        connections.begun(0.0, ONE, _peer(1))
    assert not connections.begun(3.9, ("10.0.0.1", 4002), _peer(2))
    assert connections.begun(8.0, ("10.0.0.1", 4003), _peer(3))


def test_calls_without_a_certificate_are_bounded_per_connection() -> None:
    """Without a certificate, the address of the connection is the only identity of the client."""
    connections = Connections(LIMITS, 9)
    begun = [connections.begun(0.0, ("10.0.0.1", port), _peer(1, None)) for port in (1, 1, 1, 2, 1)]
    assert begun == [True, True, True, True, False]


def test_calls_without_a_rate_bound_are_all_accepted() -> None:
    """Relays need no bound, because their one certificate represents many clients."""
    connections = Connections(replace(LIMITS, calls_per_second=None), 9)
    assert all(connections.begun(0.0, ONE, _peer(1)) for _ in range(1000))


def test_closed_connections_leave_nothing_in_the_table() -> None:
    """All maps of the table are empty after the connections have closed, so the table cannot grow."""
    connections = Connections(LIMITS, 9)
    for number in range(1000):
        client = ("10.0.0.2", number)
        connections.begun(1.0, client, Peer(str(number).encode(), "ipv4:10.0.0.2:1"))
        connections.finished(1.0, client)
    connections.look(1.0, [], ())
    assert len(connections._uses) == len(connections._calls) == 1000, "what is begun during a look stays"
    connections.look(1000.0, [], ())
    assert (connections._uses, connections._calls, connections._known) == ({}, {}, {})
    there, sockets = _carrying(20)
    for socket in sockets:
        there.finished(2.0, socket.address)
    there.look(1000.0, [], there.due())
    assert not any(vars(there)[var] for var in vars(there) if var not in ("_limits", "_idle", "crowded"))


@pytest.mark.parametrize(("spent", "seconds"), [(0.0, 1.0), (0.004, 1.0), (0.012, 2.4), (0.5, 4.0)])
def test_next_look_is_later_when_a_look_takes_long(spent: float, seconds: float) -> None:
    """Looks take at most half a percent of a CPU, but the next one follows within four seconds."""
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
def test_peer_addresses_of_grpc_are_normalised(peer: str, expected: tuple[str, int]) -> None:
    """An address has one spelling, whatever the family of the accepted socket."""
    assert address(peer) == expected
