"""The Unix socket: private, never taken from a living server, taken over from a dead one."""

import asyncio
import contextlib
import socket
from pathlib import Path

import pytest
from aiohttp import web

from meshwright.admin.http.servers import CONNECTIONS, SocketError, serving, unix_socket


def test_the_socket_is_for_its_owner_alone(tmp_path: Path) -> None:
    """0600, from the first moment."""
    path = tmp_path / "s"
    with unix_socket(path):
        assert path.stat().st_mode & 0o777 == 0o600


def test_the_file_of_a_dead_server_is_replaced(tmp_path: Path) -> None:
    """What nobody listens on is no server."""
    path = tmp_path / "s"
    unix_socket(path).close()
    assert path.exists()
    with unix_socket(path), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))


def test_the_socket_of_a_living_server_is_not_taken(tmp_path: Path) -> None:
    """And the living one goes on."""
    path = tmp_path / "s"
    with unix_socket(path):
        with pytest.raises(SocketError, match="another server already listens on the socket"):
            unix_socket(path)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    """It may be somebody's."""
    path = tmp_path / "s"
    path.write_text("mine")
    with pytest.raises(SocketError, match="exists and is not a socket"):
        unix_socket(path)
    assert path.read_text() == "mine"


def test_a_path_that_is_too_long_is_said(tmp_path: Path) -> None:
    """The kernel would only say that it is wrong."""
    with pytest.raises(SocketError, match="longer than 107 bytes"):
        unix_socket(tmp_path / ("x" * 120))


async def test_the_oldest_of_too_many_connections_ends(tmp_path: Path) -> None:
    """A client that holds connections open keeps no other client out."""
    path = tmp_path / "s"
    async with serving(web.Application(), unix_socket(path)), contextlib.AsyncExitStack() as opened:
        readers = list[asyncio.StreamReader]()
        for _ in range(CONNECTIONS + 1):
            reader, writer = await asyncio.open_unix_connection(path)
            opened.callback(writer.close)
            readers.append(reader)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        async with asyncio.timeout(20):
            assert await readers[-1].readline() == b"HTTP/1.1 404 Not Found\r\n"
            assert await readers[0].read() == b""
        assert not any(each.at_eof() for each in readers[1:])
