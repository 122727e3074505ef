"""Test of a server's notifications to a service manager."""

import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.forked_cli import Typed
from tests.tools.program import Program


@pytest.fixture
def program(tmp_path: Path, typed: Typed) -> Iterator[Program]:
    """The program with a small mesh."""
    made = Program(tmp_path / "state", tmp_path, typed)
    yield made
    made.end()


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[socket.socket]:
    """A socket that receives notifications, as systemd's."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(str(tmp_path / "notify"))
        made.setblocking(False)
        yield made


def test_service_manager_is_notified_of_each_state_of_the_server(
    program: Program, listening: socket.socket
) -> None:
    """The server reports readiness, watchdog, reload and stop."""
    program.environment |= {"NOTIFY_SOCKET": str(listening.getsockname()), "WATCHDOG_USEC": "400000"}
    messages = list[str]()

    def heard(words: str) -> bool:
        try:
            while True:
                messages.append(listening.recv(4096).decode())
        except BlockingIOError:
            return any(item.startswith(words) for item in messages)

    server = program.serve()
    server.until(lambda: heard("READY=1") and heard("STATUS=ready"))
    assert server.get("/healthz/ready")[1].startswith("ready\n")
    server.until(lambda: heard("WATCHDOG=1"))
    messages.clear()
    server.process.send_signal(signal.SIGHUP)
    server.until(lambda: heard("RELOADING=1\nMONOTONIC_USEC=") and heard("READY=1"))
    assert [item.partition("=")[0] for item in messages if not item.startswith("WATCHDOG")] == [
        "RELOADING",
        "READY",
    ]
    server.stop()
    assert heard("STOPPING=1\nSTATUS=stopping")
