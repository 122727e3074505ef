"""Commands for the root change of the mesh, for the command line, over the Unix socket only."""

import math
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Protocol

from aiohttp import web

from certs.roots.evidence import BlockingPart, Holdout
from certs.roots.rotation import Rotation, Stage
from meshwright.admin.http.commands import CommandError, body_of
from meshwright.admin.http.json_responses import answered
from meshwright.admin.jsonable import Document, Json, jsonable

_FIELDS: Final = frozenset({"abort", "give_up", "older_than_seconds"})


class ChangeStatus(Protocol):
    """Status of a root change: the rotation, and the proxies and parts blocking the next step."""

    @property
    def rotation(self) -> Rotation | None:
        """Return the root rotation in progress; None without one."""

    @property
    def holdouts(self) -> tuple[Holdout, ...]:
        """Return the proxies blocking the next step of the root rotation."""

    @property
    def behind(self) -> tuple[BlockingPart, ...]:
        """Return the parts of the server blocking the next step of the root rotation."""

    @property
    def other_servers(self) -> tuple[str, ...]:
        """Return the other servers of the mesh that are here; empty for the only one."""


class RootChange(Protocol):
    """Control of a server's root rotation. Each method raises CertificateError."""

    async def status(self) -> ChangeStatus:
        """Return the status of the root rotation."""

    async def begin(self) -> ChangeStatus:
        """Begin a root rotation, and return the status."""

    async def abort(self) -> ChangeStatus:
        """Abort the root rotation, and return the status."""

    async def give_up(self, proxies: Collection[str], older_than: timedelta | None = None) -> ChangeStatus:
        """Stop waiting for these proxies, and for proxies silent for `older_than`, in a root rotation."""


@dataclass(frozen=True, slots=True)
class Request:
    """Request about a root rotation: abort, give up proxies, or (without fields) begin."""

    abort: bool = False
    give_up: tuple[str, ...] = ()
    older_than: timedelta | None = None


def read_request(body: object) -> Request:
    """Read the JSON of a root-rotation request. Raises CommandError, which names the field."""
    if not isinstance(body, dict):
        raise CommandError("the body must be a JSON object")
    if unknown := sorted(body.keys() - _FIELDS):  # without them it would begin a change
        raise CommandError(f"unknown field {unknown[0][:80]!r}: must be one of {', '.join(sorted(_FIELDS))}")
    abort, names, seconds = body.get("abort", False), body.get("give_up", []), body.get("older_than_seconds")
    if not isinstance(abort, bool):
        raise CommandError("abort must be true or false")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise CommandError("give_up must be a list of proxy names, for example <uuid>.<service>.<namespace>")
    if seconds is not None and not _is_age(seconds):
        raise CommandError("older_than_seconds must be a number of seconds, 0 or more")
    older = None if seconds is None else timedelta(seconds=seconds)
    if abort and (names or older is not None):
        raise CommandError("abort must not be combined with give_up or older_than_seconds: send two requests")
    return Request(abort, tuple(names), older)


def _is_age(seconds: object) -> bool:
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    return is_number and math.isfinite(seconds) and 0 <= seconds <= 10**9  # type: ignore[operator, arg-type]


def document(status: ChangeStatus) -> Document:
    """Return the status of a root rotation as JSON. `stage` is null without a rotation."""
    rotation = status.rotation
    if rotation is None:
        return {"stage": None}
    waiting: list[Json] = [
        {
            "proxy": str(holdout.proxy),
            "why": [why.value for why in holdout.why],
            "last_seen": jsonable(holdout.seen),
        }
        for holdout in status.holdouts
    ]
    servers: Document = {"other_servers": list(status.other_servers)} if status.other_servers else {}
    return {
        "stage": rotation.stage.value,
        "number": rotation.stage.number,
        "stages": len(Stage),
        "aborted": rotation.aborted,
        "began": jsonable(rotation.began),
        "since": jsonable(rotation.since),
        "signer": rotation.signer,
        "other": rotation.other,
        "trusted": list(rotation.trusted),
        "waiting_for": waiting,
        "also_waiting_for": [
            {
                "part": blocking_part.part.value,
                "why": blocking_part.why.value,
                "reason": blocking_part.detail or None,
            }
            for blocking_part in status.behind
        ],
        "given_up": {name: jsonable(at) for name, at in rotation.given_up.items()},
        **servers,
    }


def add_roots(app: web.Application, change: RootChange | None, why_not: str) -> None:
    """Add GET and POST /certs/rotate-root. `why_not` is the error if `change` is None."""

    def required() -> RootChange:
        if change is None:
            raise CommandError(why_not)
        return change

    async def status(_: web.Request) -> web.Response:
        change_status = await required().status()
        return await answered(lambda: document(change_status), {})

    async def asked(request: web.Request) -> web.Response:
        wanted = read_request(await body_of(request))
        result = await _act(required(), wanted)()
        return await answered(lambda: document(result), {})

    app.router.add_get("/certs/rotate-root", status)
    app.router.add_post("/certs/rotate-root", asked)


def _act(change: RootChange, wanted: Request) -> Callable[[], Awaitable[ChangeStatus]]:
    if wanted.abort:
        return change.abort
    if wanted.give_up or wanted.older_than is not None:
        return lambda: change.give_up(wanted.give_up, wanted.older_than)
    return change.begin
