"""Connections that are broken off: nothing of them is left, however dead the server is."""

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
from tests.unit.kube.scripted_api import SERVICES

BEGUN: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n"
)
SECONDS: Final = 20.0
"""Less than a client waits that closes TLS in order: 30 s (asyncio's ssl_shutdown_timeout)."""


class Dead:
    """A server that is `asked`, says something, and does not take leave; `gone` once its client has."""

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
            # What comes below TLS: its word of farewell is read, and not answered.
            with socket.socket(fileno=os.dup(shown.fileno())) as below, contextlib.suppress(TimeoutError):
                below.settimeout(SECONDS)
                with contextlib.suppress(ConnectionResetError):
                    while below.recv(65536):
                        pass
                self.gone.set()


def connection(keys: Path, dead: Dead) -> Connection:
    """Return the way to it."""
    return Connection(lambda: Access(Server("dead", dead.url, keys / "ca.crt"), User()))


async def has_gone(dead: Dead) -> bool:
    """Say whether its client has taken leave in time."""
    return await asyncio.to_thread(dead.gone.wait, SECONDS + 1)


async def test_a_watch_that_is_broken_off_leaves_no_connection(keys: Path) -> None:
    """Its socket is closed with the session: a server that does not answer TLS' farewell keeps nothing."""
    with Dead(keys, BEGUN) as dead:
        async with (
            Api(connection(keys, dead)) as api,
            api.watch(SERVICES, None, {}, SECONDS) as batches,
        ):
            assert await anext(aiter(batches)) == [b"{}"]
        assert await has_gone(dead)


async def test_a_request_that_is_given_up_before_its_answer_leaves_no_connection(keys: Path) -> None:
    """Who watches ends in the midst of asking, too."""
    with Dead(keys, b"") as dead:
        async with Api(connection(keys, dead)) as api:
            asking = asyncio.create_task(api.list(SERVICES))
            assert await asyncio.to_thread(dead.asked.wait, SECONDS)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        assert await has_gone(dead)
