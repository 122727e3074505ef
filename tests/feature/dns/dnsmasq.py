"""A real DNS server on loopback: Debian's dnsmasq with a zone that a test writes."""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tools.ports import can_bind, free_port

PROGRAM = shutil.which("dnsmasq", path=os.environ.get("PATH", "") + ":/usr/sbin")
DEADLINE = 30.0

needs_dnsmasq = pytest.mark.skipif(PROGRAM is None, reason="dnsmasq is not installed (make system)")


class Dnsmasq:
    """A server of `mesh.test` from a hosts file and further records.

    Every other name is refused. `ttl` is for records without their own TTL. A log has all queries.
    """

    def __init__(self, folder: Path, ttl: int = 0) -> None:
        folder.mkdir()
        self._hosts, self._log = folder / "hosts", folder / "log"
        self._hosts.touch()
        self._log.touch()
        self._ttl = ttl
        self._process: subprocess.Popen[bytes] | None = None
        self.records: Sequence[str] = ()
        self.port = free_port("127.0.0.1")

    @property
    def nameserver(self) -> str:
        """Return the address as in the setting."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server, and return when it answers."""
        assert PROGRAM is not None
        read = self._read()
        self._process = subprocess.Popen(
            [
                *(PROGRAM, "--keep-in-foreground", "--conf-file=/dev/null", "--pid-file=", "--no-resolv"),
                *("--no-hosts", f"--addn-hosts={self._hosts}", "--local=/mesh.test/"),
                *(f"--port={self.port}", "--listen-address=127.0.0.1", "--bind-interfaces"),
                *(f"--user={getpass.getuser()}", f"--local-ttl={self._ttl}"),
                *("--log-queries", f"--log-facility={self._log}", *self.records),
            ]
        )
        for _ in self._until_read(read):
            assert self._process.poll() is None, self._log.read_text()
        socket.create_connection(("127.0.0.1", self.port), DEADLINE).close()

    def stop(self) -> None:
        """Stop the server if it runs.

        Its zone stays for the next start. Return when the port is free, because a child process for a TCP
        connection may hold the port for longer.
        """
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None
            until = time.monotonic() + DEADLINE
            while not can_bind("127.0.0.1", self.port):
                assert time.monotonic() < until, "dnsmasq does not give its port back"
                time.sleep(0.005)

    def zone(self, **addresses: Sequence[str]) -> None:
        """Set the addresses of `<name>.mesh.test`, and return when they are in force."""
        lines = [f"{address} {name}.mesh.test\n" for name, item in addresses.items() for address in item]
        self._hosts.write_text("".join(lines))
        if self._process is not None:
            read = self._read()
            self._process.send_signal(signal.SIGHUP)
            for _ in self._until_read(read):
                pass

    def _read(self) -> int:
        """Return how many times the server has read the zone."""
        return self._log.read_text().count(f"read {self._hosts}")

    def _until_read(self, before: int) -> Iterator[None]:
        """Yield until the server has read the zone again."""
        until = time.monotonic() + DEADLINE
        while self._read() == before:
            assert time.monotonic() < until, "dnsmasq does not read its zone"
            yield
            time.sleep(0.005)

    def asked(self, question: str) -> int:
        """Return the number of queries such as `A] db.mesh.test`."""
        return self._log.read_text().count(f"query[{question} ")


@contextlib.contextmanager
def running(folder: Path, ttl: int = 0) -> Iterator[Dnsmasq]:
    """Run a server within the context."""
    server = Dnsmasq(folder, ttl)
    try:
        server.start()
        yield server
    finally:
        server.stop()
