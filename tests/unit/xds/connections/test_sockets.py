"""Tests of the list of sockets accepted at a port, as Linux shows them in /proc."""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from xds.connections import sockets
from xds.connections.sockets import AcceptedSockets

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")

_Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def accepted() -> Iterator[tuple[int, list[_Pair]]]:
    """Provide a port, and four connections to it: each with the client's and the accepted socket."""
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


def test_sockets_that_are_not_due_cause_no_system_call(
    accepted: tuple[int, list[_Pair]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the due socket is read from the system. The test counts the reads, because they cost CPU time."""
    port, pairs = accepted
    look, numbers = AcceptedSockets(port), [_number(server) for _, server in pairs]
    first = look.look(())
    assert [item.number for item in first] == numbers
    asked: list[int] = []
    heard = sockets._received

    def counted(descriptor: int) -> tuple[int, float] | None:
        asked.append(os.fstat(descriptor).st_ino)
        return heard(descriptor)

    monkeypatch.setattr(sockets, "_received", counted)
    assert look.look(numbers[3:]) == (first[3],)
    assert asked == [numbers[3]]
    again = look.look(numbers)
    assert all(one is other for one, other in zip(first, again, strict=True)), "what it was, it is still"


def test_socket_that_is_not_due_can_be_ended(accepted: tuple[int, list[_Pair]]) -> None:
    """The descriptor is known from the previous look, so the connection can be closed without another one."""
    port, pairs = accepted
    look = AcceptedSockets(port)
    first = look.look(())
    assert look.look(()) == ()
    assert look.end(first[0])
    assert [item.number for item in look.look([item.number for item in first])] == [
        _number(server) for _, server in pairs[1:]
    ]


def test_reused_descriptor_at_another_port_is_not_taken_for_the_old_socket(
    accepted: tuple[int, list[_Pair]],
) -> None:
    """The new socket belongs to another port, so it is not listed when the old one is due."""
    port, pairs = accepted
    look, (_, server) = AcceptedSockets(port), pairs[0]
    first, *others = look.look(())
    descriptor = server.fileno()
    server.close()
    with socket.create_server(("127.0.0.1", 0)) as another:
        assert another.fileno() == descriptor
        assert look.look([first.number]) == ()
        assert look.look([item.number for item in others]) == tuple(others)


def test_descriptor_of_another_file_by_now_is_left_alone(tmp_path: Path) -> None:
    """The server has closed the connection, and the next file that is opened gets its number."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        accepted, _ = listening.accept()
        sockets = AcceptedSockets(listening.getsockname()[1])
        (seen,) = sockets.look(())
        number = accepted.detach()
        with (tmp_path / "file").open("wb") as file:
            os.dup2(file.fileno(), number)
        before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - of descriptors, as the code does
        assert not sockets.end(seen)
        assert len(os.listdir("/proc/self/fd")) == before, "no duplicate is left"  # noqa: PTH208
        os.close(number)
        client.close()
