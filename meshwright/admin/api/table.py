"""Types for the table of API routes: a route, and the query parameters of a route."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from meshwright.admin.api.mesh import Api
from meshwright.admin.api.shape import TEXT, Shape
from meshwright.admin.jsonable import Document
from meshwright.admin.replicas.view import Scope

PREFIX: Final = "/api/v1"

Answer = Callable[[Api, web.Request], Awaitable[Document]]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the query, with an example.

    `required` parameters must be present. A parameter with `many` may be repeated.
    """

    name: str
    means: str
    example: str | int
    required: bool = False
    many: bool = False
    schema: Shape = field(default_factory=lambda: TEXT)


@dataclass(frozen=True, slots=True)
class Route:
    """A path below PREFIX with summary, handler, shape and parameters.

    `answer` raises NothingToShow, or an HTTP error with a sentence. `{name}` in the path is the name of a
    proxy. `scope` is the part of the answer that other servers of the mesh know better.
    """

    path: str
    shows: str
    answer: Answer
    shape: Shape
    parameters: tuple[Parameter, ...] = ()
    scope: Scope = Scope.OWN
