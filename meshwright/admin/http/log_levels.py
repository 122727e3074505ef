"""Reading and changing log levels at run time, for users of the same machine."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

from aiohttp import web

PATH: Final = "/logging"

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Levels(Protocol):
    """The log levels of a program."""

    def levels(self) -> Mapping[str, str]:
        """Return the levels by logger. The empty name is the level of all other loggers."""

    def set_level(self, logger: str, level: str | None) -> None:
        """Set the level of a logger; None removes it. Raises ValueError, which names the valid values."""


def add_log_levels(
    levels: Levels, app: web.Application, guarded: Callable[[_Handler], _Handler] = lambda handler: handler
) -> None:
    """Add GET and POST /logging, for example with `{"logger": "delivery", "level": "debug"}`.

    The level null removes the level of the logger. Both answer with all levels. An invalid request is
    answered with 400 and `error`.
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
    """Read the logger and the level of a request. Raises ValueError, which names the valid form."""
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    match document:
        case {"logger": str() as logger, "level": (str() | None) as level}:
            return logger, level
        case _:
            raise ValueError(
                'the body must be a JSON object, for example {"logger": "delivery", "level": "debug"}'
            )
