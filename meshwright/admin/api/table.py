"""What a line of the API's table is."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from meshwright.admin.api.mesh import Api
from meshwright.admin.api.shape import TEXT, Shape
from meshwright.admin.jsonable import Document

PREFIX: Final = "/api/v1"

Answer = Callable[[Api, web.Request], Awaitable[Document]]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the query, with an example; `required`: it must be there, `many`: it may be often."""

    name: str
    means: str
    example: str | int
    required: bool = False
    many: bool = False
    schema: Shape = field(default_factory=lambda: TEXT)


@dataclass(frozen=True, slots=True)
class Route:
    """A path below PREFIX, what it shows, what answers it, of which shape, and what may be asked.

    `answer` raises NotShown, or an HTTP error with its sentence. A name in the path is that of a proxy.
    """

    path: str
    shows: str
    answer: Answer
    shape: Shape
    parameters: tuple[Parameter, ...] = ()
