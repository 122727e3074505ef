"""The sockets that were accepted at a port, as the system shows them."""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from xds.connections import sockets
from xds.connections.sockets import AcceptedSockets

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")

_Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def accepted() -> Iterator[tuple[int, list[_Pair]]]:
    """Return a port, and connections to it: who made each, and what was accepted."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        pairs = []
        for _ in range(4):
            client = stack.enter_context(socket.create_connection(listener.getsockname()[:2], timeout=60))
            server, _ = listener.accept()
            pairs.append((client, stack.enter_context(server)))
        yield listener.getsockname()[1], pairs


def _number(connection: socket.socket) -> int:
    return os.fstat(connection.fileno()).st_ino


def test_of_those_that_stay_unseen_nothing_is_asked(
    accepted: tuple[int, list[_Pair]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted: the system is asked of the one that is not among them, and of all when that is over."""
    port, pairs = accepted
    look, numbers = AcceptedSockets(port), [_number(server) for _, server in pairs]
    first = look.look()
    assert [each.number for each in first] == numbers
    asked: list[int] = []
    heard = sockets._heard

    def counted(descriptor: int) -> tuple[int, float] | None:
        asked.append(os.fstat(descriptor).st_ino)
        return heard(descriptor)

    monkeypatch.setattr(sockets, "_heard", counted)
    assert look.look(frozenset(numbers[:3])) == (first[3],)
    assert asked == [numbers[3]]
    again = look.look()
    assert all(one is other for one, other in zip(first, again, strict=True)), "what it was, it is still"


def test_one_that_stayed_unseen_is_ended_as_any_other(accepted: tuple[int, list[_Pair]]) -> None:
    """Its descriptor is known from the look before."""
    port, pairs = accepted
    look = AcceptedSockets(port)
    first = look.look()
    assert look.look(frozenset(each.number for each in first)) == ()
    assert look.end(first[0])
    assert [each.number for each in look.look()] == [_number(server) for _, server in pairs[1:]]


def test_one_that_came_is_seen_whoever_stays_unseen(accepted: tuple[int, list[_Pair]]) -> None:
    """Also where another was before: its number is another."""
    port, pairs = accepted
    look, (gone, come) = AcceptedSockets(port), pairs[:2]
    look.look()
    there = frozenset(_number(server) for _, server in pairs[1:])
    gone[1].close()
    assert look.look(there) == ()
    assert _number(come[1]) in {each.number for each in look.look()}
