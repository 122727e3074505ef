"""Administrative actions: name and object of each changing request to the socket. Pure.

The fields of an object are not secret: a join token is named by id, a certificate by serial.
"""

from collections.abc import Callable, Mapping
from typing import Final

Object = Mapping[str, object]
Described = tuple[str, Object]
_Describe = Callable[[Object], Described]

MOST_CHARACTERS: Final = 300
"""Logged characters of each text in a request."""
MOST_NAMED: Final = 20
"""Logged names of a list. For a longer list, the first names and the number of the others are logged."""


def _one(action: str, *fields: str) -> _Describe:
    def described(body: Object) -> Described:
        return action, {field: _short(body[field]) for field in fields if body.get(field) not in (None, "")}

    return described


def _root_change(body: Object) -> Described:
    if body.get("abort") is True:
        return "abort root change", {}
    if body.get("give_up") or body.get("older_than_seconds") is not None:
        return _one("wait no longer for proxies", "give_up", "older_than_seconds")(body)
    return "begin or continue root change", {}


TAP: Final = "/api/v1/tap"
ACTIONS: Final[Mapping[tuple[str, str], _Describe]] = {
    ("POST", "/certs/issue-proxy"): _one(
        "issue proxy certificate", "uuid", "service", "namespace", "validity_days", "anyway"
    ),
    ("POST", "/certs/revoke"): _one("revoke proxy certificate", "serial", "reason"),
    ("POST", "/certs/tokens"): _one(
        "make join token", "service", "namespace", "uuid", "uses", "valid_seconds", "anyway"
    ),
    ("POST", "/certs/tokens/revoke"): lambda body: ("withdraw join token", {"id": _short(body.get("token"))}),
    ("POST", "/certs/rotate-root"): _root_change,
    ("POST", "/certs/rebuild-ledger"): _one("confirm proxy certificates", "serials"),
    ("POST", "/state/export"): _one("export state of the mesh"),
    ("POST", "/logging"): _one("set log level", "logger", "level"),
    ("POST", "/proxies/retry"): _one("offer proxy again", "proxy"),
    ("GET", TAP): _one("watch requests", "service", "proxy", "from", "method", "path", "status", "seconds"),
}
"""Changing requests, by method and path. Every other request to the socket only reads."""


def action(method: str, path: str, body: object) -> Described | None:
    """Return the action and object of a request, by body or query; None for a request that only reads."""
    describe = ACTIONS.get((method, path))
    return None if describe is None else describe(body if isinstance(body, Mapping) else {})


def result(status: int) -> str:
    """Return the result of an administrative action (`done`, `refused`, `failed`) by the HTTP status."""
    return "done" if status < 400 else "refused" if status < 500 else "failed"


def _short(value: object) -> object:
    match value:
        case str():
            return value[:MOST_CHARACTERS]
        case list() if len(value) > MOST_NAMED:
            return [*map(_short, value[:MOST_NAMED]), f"and {len(value) - MOST_NAMED} more"]
        case list():
            return [_short(item) for item in value]
        case bool() | int() | float():
            return value
        case _:
            return str(value)[:MOST_CHARACTERS]
