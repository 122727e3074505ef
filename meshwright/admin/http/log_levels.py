"""Log levels on request: what they are, and to change them; for who is on the same machine."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

from aiohttp import web

PATH: Final = "/logging"

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Levels(Protocol):
    """The log levels of a program."""

    def levels(self) -> Mapping[str, str]:
        """Return the levels by logger; that of everything else under the empty name."""

    def set_level(self, logger: str, level: str | None) -> None:
        """Set one, or take it away (None); raise ValueError with what would be right."""


def add_log_levels(
    levels: Levels, app: web.Application, guarded: Callable[[_Handler], _Handler] = lambda handler: handler
) -> None:
    """Add GET and POST /logging: `{"logger": "delivery", "level": "debug"}`, null for no level of its own.

    Both answer with all levels; a request that makes no sense is answered 400 with `error`.
    """

    async def show(_request: web.Request) -> web.Response:
        return web.json_response({"levels": dict(levels.levels())})

    async def change(request: web.Request) -> web.Response:
        try:
            levels.set_level(*_read(await request.read()))
        except ValueError as error:
            return web.json_response({"error": str(error)}, status=400)
        return await show(request)

    app.router.add_get(PATH, guarded(show))
    app.router.add_post(PATH, guarded(change))


def _read(body: bytes) -> tuple[str, str | None]:
    """Read the request's logger and level; raise ValueError, which says what would be right."""
    try:
        said = json.loads(body)
    except ValueError:
        said = None
    match said:
        case {"logger": str() as logger, "level": (str() | None) as level}:
            return logger, level
        case _:
            raise ValueError('the body must be such as {"logger": "delivery", "level": "debug"}')
