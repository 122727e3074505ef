"""Tests that abandoned connections are closed, even if the server no longer answers."""

import asyncio
import contextlib
import os
import socket
import ssl
import threading
from pathlib import Path
from typing import Final, Self

from meshwright.kube.api import Api
from meshwright.kube.connection.access import Access, Server, User
from meshwright.kube.connection.connection import Connection
from tests.tools.deadline import until
from tests.unit.kube.scripted_api import SERVICES

BEGUN: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n"
)
SECONDS: Final = 20.0
"""Less than a client waits that closes TLS in order: 30 s (asyncio's ssl_shutdown_timeout)."""


KEEPALIVE: Final = 2
"""Kind of a connection's timer in /proc/net/tcp."""


class UnfinishedServer:
    """A server that receives a request (`asked`), sends some bytes, and never closes TLS.

    `gone` is set once its client has closed the connection.
    """

    def __init__(self, keys: Path, said: bytes) -> None:
        self._said = said
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._tls.load_cert_chain(keys / "server.crt", keys / "server.key")
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self._listening.getsockname()[1]}"
        self.asked, self.gone = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._serve, name="dead server")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()
        self._thread.join()

    def _serve(self) -> None:
        connection, _ = self._listening.accept()
        with self._tls.wrap_socket(connection, server_side=True) as shown:
            shown.recv(65536)
            shown.sendall(self._said)
            self.asked.set()
            # Reads below TLS: the client's close_notify is read and not answered.
            with socket.socket(fileno=os.dup(shown.fileno())) as below, contextlib.suppress(TimeoutError):
                below.settimeout(SECONDS)
                with contextlib.suppress(ConnectionResetError):
                    while below.recv(65536):
                        pass
                self.gone.set()


def connection(keys: Path, dead: UnfinishedServer) -> Connection:
    """Return a connection to the server."""
    return Connection(lambda: Access(Server("dead", dead.url, keys / "ca.crt"), User()))


async def has_gone(dead: UnfinishedServer) -> bool:
    """Return whether the client has closed the connection in time."""
    return await asyncio.to_thread(dead.gone.wait, SECONDS + 1)


async def test_abandoned_watch_leaves_no_connection(keys: Path) -> None:
    """The socket is closed with the session, because a dead server never answers the close_notify of TLS."""
    with UnfinishedServer(keys, BEGUN) as dead:
        async with (
            Api(connection(keys, dead)) as api,
            api.watch(SERVICES, None, {}, SECONDS) as batches,
        ):
            assert await anext(aiter(batches)) == [b"{}"]
        assert await has_gone(dead)


async def test_cancelled_request_leaves_no_connection(keys: Path) -> None:
    """A watcher may also end while it waits for an answer."""
    with UnfinishedServer(keys, b"") as dead:
        async with Api(connection(keys, dead)) as api:
            asking = asyncio.create_task(api.list(SERVICES))
            assert await asyncio.to_thread(dead.asked.wait, SECONDS)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        assert await has_gone(dead)


async def test_kernel_looks_for_a_vanished_api_server(keys: Path) -> None:
    """A watch is silent for a minute, so only keepalive notices soon that the machine has vanished.

    The kernel's timer of the connection is one of keepalive, and ends within ten seconds.
    """
    with UnfinishedServer(keys, BEGUN) as dead:
        async with Api(connection(keys, dead)) as api:
            asking = asyncio.create_task(api.get(SERVICES, "shop", "cart"))
            await asyncio.to_thread(dead.asked.wait, SECONDS)
            port = int(dead.url.rpartition(":")[2])
            await until(lambda: [kind for kind, _ in _timers(port)] == [KEEPALIVE], 5)
            [(_, seconds)] = _timers(port)
            asking.cancel()
            await asyncio.wait((asking,))
        assert await has_gone(dead)
    assert 0 < seconds <= 10.0


def _timers(port: int) -> list[tuple[int, float]]:
    """Return the kind and the seconds of the timer of each connection to a port of this machine."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    found = [line[5].split(":") for line in lines if line[2].endswith(f":{port:04X}") and line[3] == "01"]
    return [(int(kind), int(ticks, 16) / os.sysconf("SC_CLK_TCK")) for kind, ticks in found]
