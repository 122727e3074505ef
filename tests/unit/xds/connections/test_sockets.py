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


def test_of_those_that_are_not_due_nothing_is_asked(
    accepted: tuple[int, list[_Pair]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted: the system is asked of the one that is, and then of all."""
    port, pairs = accepted
    look, numbers = AcceptedSockets(port), [_number(server) for _, server in pairs]
    first = look.look(())
    assert [each.number for each in first] == numbers
    asked: list[int] = []
    heard = sockets._heard

    def counted(descriptor: int) -> tuple[int, float] | None:
        asked.append(os.fstat(descriptor).st_ino)
        return heard(descriptor)

    monkeypatch.setattr(sockets, "_heard", counted)
    assert look.look(numbers[3:]) == (first[3],)
    assert asked == [numbers[3]]
    again = look.look(numbers)
    assert all(one is other for one, other in zip(first, again, strict=True)), "what it was, it is still"


def test_one_that_was_not_due_is_ended_as_any_other(accepted: tuple[int, list[_Pair]]) -> None:
    """Its descriptor is known from the look before."""
    port, pairs = accepted
    look = AcceptedSockets(port)
    first = look.look(())
    assert look.look(()) == ()
    assert look.end(first[0])
    assert [each.number for each in look.look([each.number for each in first])] == [
        _number(server) for _, server in pairs[1:]
    ]


def test_of_another_that_has_the_descriptor_of_one_that_went_nothing_is_taken(
    accepted: tuple[int, list[_Pair]],
) -> None:
    """It is at another port, as soon as the one that went is due."""
    port, pairs = accepted
    look, (_, server) = AcceptedSockets(port), pairs[0]
    first, *others = look.look(())
    descriptor = server.fileno()
    server.close()
    with socket.create_server(("127.0.0.1", 0)) as another:
        assert another.fileno() == descriptor
        assert look.look([first.number]) == ()
        assert look.look([each.number for each in others]) == tuple(others)
