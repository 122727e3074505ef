"""Tests of the Unix socket: its mode, and its takeover from a dead server only."""

import asyncio
import contextlib
import socket
from pathlib import Path

import pytest
from aiohttp import web

from meshwright.admin.http.servers import CONNECTIONS, SocketError, serving, unix_socket


def test_socket_is_accessible_to_its_owner_only(tmp_path: Path) -> None:
    """The socket's mode is 0600."""
    path = tmp_path / "s"
    with unix_socket(path):
        assert path.stat().st_mode & 0o777 == 0o600


def test_socket_of_a_dead_server_is_replaced(tmp_path: Path) -> None:
    """A socket file on which no process listens is replaced."""
    path = tmp_path / "s"
    unix_socket(path).close()
    assert path.exists()
    with unix_socket(path), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))


def test_socket_of_a_running_server_is_not_replaced(tmp_path: Path) -> None:
    """A second server fails, and the first one still accepts connections."""
    path = tmp_path / "s"
    with unix_socket(path):
        with pytest.raises(SocketError, match="another server already listens on the socket"):
            unix_socket(path)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))


def test_file_that_is_not_a_socket_is_kept(tmp_path: Path) -> None:
    """A file that is not a socket is an error and is kept, because it may be a user's file."""
    path = tmp_path / "s"
    path.write_text("mine")
    with pytest.raises(SocketError, match="exists and is not a socket"):
        unix_socket(path)
    assert path.read_text() == "mine"


def test_too_long_path_is_an_error_with_the_limit(tmp_path: Path) -> None:
    """The error gives the limit of 107 bytes, because the kernel's error would not."""
    with pytest.raises(SocketError, match="longer than 107 bytes"):
        unix_socket(tmp_path / ("x" * 120))


async def test_oldest_of_too_many_connections_is_closed(tmp_path: Path) -> None:
    """The oldest connection is closed.

    A client with many open connections can therefore not keep other clients out.
    """
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
        assert not any(stream_reader.at_eof() for stream_reader in readers[1:])
