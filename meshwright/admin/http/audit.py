"""Log of administrative actions, one event each: user, action, object and result.

The kernel names the user at the other end of the socket (SO_PEERCRED), so a client cannot claim to be another
user.
"""

import json
import pwd
import socket
import struct
from dataclasses import asdict, dataclass
from typing import Final

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from meshwright.admin.http.actions import TAP, action, result

AUDIT: Final = "admin.audit"
"""The logger of these events. The level is fixed (controller.process.levels)."""
EVENT: Final = "administrative action"
NAMED: Final = web.RequestKey("what a handler adds to the object", dict[str, object])
"""Fields of the object known only after the action, such as the id of a new join token."""

_CREDENTIALS: Final = struct.Struct("3i")
_MOST_BODY: Final = 256 * 1024
"""Maximum size in bytes of a logged body. For a longer body the logged object is empty."""

_log = structlog.get_logger(AUDIT)


@dataclass(frozen=True, slots=True)
class User:
    """The user at the other end of a Unix socket; all numbers are -1 on a TCP connection."""

    user: str = ""
    uid: int = -1
    gid: int = -1
    pid: int = -1


def user_of(request: web.Request) -> User:
    """Return the user at the other end of the socket according to the kernel; an empty User for TCP."""
    outcome = None if request.transport is None else request.transport.get_extra_info("socket")
    if outcome is None or outcome.family != socket.AF_UNIX:
        return User()
    size = _CREDENTIALS.size
    pid, uid, gid = _CREDENTIALS.unpack(outcome.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return User(user_name(uid), uid, gid, pid)


def user_name(uid: int) -> str:
    """Return the name of a user on this machine, for example `root`; `user 4711` without a name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def name_object(request: web.Request, **fields: object) -> None:
    """Add fields to the object of an administrative action in the audit log."""
    request[NAMED] = fields


@web.middleware
async def audited(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Log an administrative action after the answer, and a tap after the end of the stream."""
    found = action(request.method, request.path, await _audited_content(request))
    if found is None:
        return await handler(request)
    what, fields = found
    who = user_of(request)  # before the handler, because the client may be gone afterwards
    status, error = 500, ""
    try:
        response = await handler(request)
        status, error = response.status, _error(response)
        return response
    except web.HTTPException as raised:
        status, error = raised.status, raised.reason
        raise
    finally:
        outcome = {"result": result(status), "status": status, **({"error": error} if error else {})}
        named = {**fields, **request.get(NAMED, {})}
        _log.info(EVENT, action=what, object=named, **outcome, **asdict(who))


async def _audited_content(request: web.Request) -> object:
    """Return the query of a tap, or the JSON body; None for an invalid body, which the handler refuses."""
    if request.method == "GET":
        if request.path != TAP:
            return None
        return {item: ", ".join(request.query.getall(item)) for item in request.query}
    if action(request.method, request.path, None) is None or (request.content_length or 0) > _MOST_BODY:
        return None
    try:
        return json.loads(await request.read())
    except (ValueError, RecursionError):
        return None


def _error(response: web.StreamResponse) -> str:
    """Return the sentence in the field `error` of an error answer; empty for other answers."""
    if response.status < 400 or not isinstance(response, web.Response):
        return ""
    try:
        answer = json.loads(response.text or "")
    except ValueError:
        return ""
    return str(answer.get("error", "")) if isinstance(answer, dict) else ""
