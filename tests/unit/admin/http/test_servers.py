"""The Unix socket: private, never taken from a living server, taken over from a dead one."""

import socket
from pathlib import Path

import pytest

from admin.http.servers import SocketError, unix_socket


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
        with pytest.raises(SocketError, match="another server answers at"):
            unix_socket(path)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    """It may be somebody's."""
    path = tmp_path / "s"
    path.write_text("mine")
    with pytest.raises(SocketError, match="is there and is no socket"):
        unix_socket(path)
    assert path.read_text() == "mine"


def test_a_path_that_is_too_long_is_said(tmp_path: Path) -> None:
    """The kernel would only say that it is wrong."""
    with pytest.raises(SocketError, match="longer than 107 bytes"):
        unix_socket(tmp_path / ("x" * 120))
