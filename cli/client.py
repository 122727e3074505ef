"""Asking the running server through its Unix socket."""

import http.client
import json
import socket
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from cli.errors import AnsweredNo, NotRunning, ServerRefused

SOCKET_NAME: Final = "meshwright.sock"
_TIMEOUT_SECONDS: Final = 60.0


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over the socket at `path`; the host name is only for the header."""

    def __init__(self, path: Path, seconds: float) -> None:
        super().__init__("localhost", timeout=seconds)
        self._path = path
        self._seconds = seconds

    def connect(self) -> None:
        """Connect to the socket's path."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self._seconds)
        self.sock.connect(str(self._path))


def ask(
    state: Path,
    method: str,
    path: str,
    query: Mapping[str, str] | None = None,
    body: object = None,
    seconds: float = _TIMEOUT_SECONDS,
) -> object:
    """Send one request to the server of `state` and return its JSON answer; wait for it so long.

    Raises NotRunning when nobody answers there, and with the server's reason AnsweredNo for what it has
    found out to be a no, ServerRefused for any other status but 2xx.
    """
    connection = _UnixConnection(state / SOCKET_NAME, seconds)
    target = path + ("?" + urlencode(query) if query else "")
    sent = None if body is None else json.dumps(body)
    try:
        connection.request(method, target, sent, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = json.loads(response.read())
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError) as error:
        raise NotRunning(f"no meshwright serve is running with the state directory {state}") from error
    except PermissionError as error:
        raise ServerRefused(f"{state / SOCKET_NAME} belongs to another user") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise ServerRefused(f"the server did not answer as expected: {error}") from error
    finally:
        connection.close()
    reason = answer.get("error") if isinstance(answer, dict) else None
    if response.status == HTTPStatus.CONFLICT and reason:
        raise AnsweredNo(str(reason))
    if not 200 <= response.status < 300:
        raise ServerRefused(str(reason or f"status {response.status}"))
    return answer
