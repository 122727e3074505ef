"""Client of the running server, through the server's Unix socket.

`api` and `follow` read the JSON API. `ask` is for requests that change state, and for answers only for the
state directory's owner.
"""

import contextlib
import http.client
import json
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urlencode

from meshwright.cli.errors import NegativeAnswer, ServerNotRunning, ServerRefused, UnexpectedResponse
from meshwright.cli.socket.unix_http import UnixConnection

API: Final = "/api/v1"
SOCKET_NAME: Final = "meshwright.sock"
_TIMEOUT_SECONDS: Final = 60.0
_HEADERS: Final = {"Content-Type": "application/json"}

Query = Mapping[str, str] | Iterable[tuple[str, str]]


def api(state: Path, path: str, query: Query = (), seconds: float = _TIMEOUT_SECONDS) -> dict[str, object]:
    """Return the answer of the server of `state` at a path of the JSON API; wait at most `seconds`.

    Example: `api(state, "/proxies")` requests `/api/v1/proxies`. Raises ServerNotRunning, ServerRefused, and
    UnexpectedResponse if the server is older and lacks the path.
    """
    at = API + path
    status, answer = _answer(state, "GET", at, query, None, seconds)
    match answer:
        case dict() if _is_fine(status):
            return answer
        case _ if _is_fine(status):
            raise UnexpectedResponse(
                f"the server's answer to {unquote(at)} is not a JSON object, because the server has another "
                "version"
            )
        case _:
            raise _exception_of(state, at, status, answer)


def proxy_path(name: str) -> str:
    """Return the API's path of one proxy, by any of its names; special characters are quoted.

    Raises ServerRefused for an empty name, `.` and `..`, because these would lead to another path.
    """
    if name in ("", ".", ".."):
        raise ServerRefused(f"proxy {name!r} does not exist: `meshwright proxies` lists all")
    return f"/proxies/{quote(name, safe='')}"


def ask(
    state: Path,
    method: str,
    path: str,
    query: Query = (),
    body: object = None,
    seconds: float = _TIMEOUT_SECONDS,
) -> object:
    """Send one request to the server of `state`, and return the JSON answer; wait at most `seconds`.

    Raises ServerNotRunning if no server answers. With the server's reason, raises NegativeAnswer for status
    409, and ServerRefused for any other status but 2xx.
    """
    status, answer = _answer(state, method, path, query, body, seconds)
    if not _is_fine(status):
        raise _refused(status, answer)
    return answer


def _answer(
    state: Path, method: str, path: str, query: Query, body: object, seconds: float
) -> tuple[int, object]:
    """Return the status and JSON of an answer; the JSON of an error is None if invalid."""
    connection = UnixConnection(state / SOCKET_NAME, seconds)
    asked = urlencode(list(query.items() if isinstance(query, Mapping) else query))
    sent = None if body is None else json.dumps(body)
    with _asking(state, connection):
        connection.request(method, f"{path}?{asked}" if asked else path, sent, _HEADERS)
        response = connection.getresponse()
        return response.status, _read(response.status, response.read())


@contextlib.contextmanager
def _asking(state: Path, connection: http.client.HTTPConnection) -> Iterator[None]:
    """Turn errors of a connection to the server into errors for the user; close the connection at the end."""
    try:
        yield
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError) as error:
        raise ServerNotRunning(f"no server is running with the state directory {state}") from error
    except PermissionError as error:
        raise ServerRefused(
            f"cannot open {state / SOCKET_NAME}: run the command as the server's user or as root"
        ) from error
    except TimeoutError as error:
        raise ServerRefused(
            f"the server has not answered within {connection.timeout:g} s: try again; `meshwright check` "
            "shows its state"
        ) from error
    except (ConnectionError, http.client.IncompleteRead) as error:
        raise ServerRefused("the server stopped before it answered: try again when it runs") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise ServerRefused(f"the server did not answer as expected: {error}") from error
    finally:
        connection.close()


def _read(status: int, body: bytes) -> object:
    try:
        return json.loads(body)
    except ValueError:
        if _is_fine(status):
            raise
        return None


def _is_fine(status: int) -> bool:
    return 200 <= status < 300


def _unknown_path_answer(path: str) -> str:
    """Return a server's answer for an unknown path.

    The text must never change: by this text a command recognises a server that is too old to have the path.
    """
    return f"there is nothing at {unquote(path)}"


def _exception_of(state: Path, at: str, status: int, answer: object) -> Exception:
    """Return the exception for a server's answer with an HTTP status of an error."""
    match answer:
        # A 404 has two meanings: the requested object does not exist, or an old server lacks the path.
        case {"error": str(reason)} if status == HTTPStatus.NOT_FOUND and reason != _unknown_path_answer(at):
            return ServerRefused(reason)
        case _ if status == HTTPStatus.NOT_FOUND:
            return UnexpectedResponse(
                f"the server of {state} has no {unquote(at)}, because the server is older than this command"
            )
        case _:
            return _refused(status, answer)


def _refused(status: int, answer: object) -> NegativeAnswer | ServerRefused:
    reason = answer.get("error") if isinstance(answer, dict) else None
    if status == HTTPStatus.CONFLICT and reason:
        return NegativeAnswer(str(reason))
    return ServerRefused(reason or f"status {status}")


def follow(
    state: Path, path: str, query: Iterable[tuple[str, str]], seconds: float
) -> Iterator[Mapping[str, object]]:
    """Yield the JSON objects of an answer of the API, one per line, until the answer ends.

    A pause longer than `seconds` ends the answer too. Raises the errors of `api`.
    """
    at = API + path
    connection = UnixConnection(state / SOCKET_NAME, seconds)
    with _asking(state, connection):
        connection.request("GET", f"{at}?{urlencode(list(query))}")
        response = connection.getresponse()
        if response.status != HTTPStatus.OK:
            answer = _read(response.status, response.read())
            raise _exception_of(state, at, response.status, answer)
        for line in response:
            result = json.loads(line)
            if isinstance(result, dict):
                yield result
