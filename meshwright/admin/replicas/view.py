"""A view of pages or API that other servers of the mesh know in part, and the interface to all of them."""

import enum
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from aiohttp import web

from meshwright.admin.jsonable import Document
from meshwright.admin.readers import MeshReading

if TYPE_CHECKING:
    from meshwright.admin.replicas.pulse import Pulse

PARAMETER: Final = "replica"
"""Parameter of a query that names the only server to ask."""

Query = Sequence[tuple[str, str]]

Compute = Callable[[MeshReading], Awaitable[Document]]
"""Function that computes the document of a view from a reading."""


class Scope(enum.Enum):
    """The part of a view that other servers know better.

    OWN: nothing, because every server computes the view from the same input, or about itself. FACTS: facts
    about proxies. TRAFFIC: these, and traffic statistics. PROXY: everything about one proxy, if the proxy is
    at another server. STREAMS, PUSHES, PUBLISHED and CONNECTIVITY: the same view of every other server.
    """

    OWN = "own"
    FACTS = "facts"
    TRAFFIC = "traffic"
    PROXY = "proxy"
    STREAMS = "streams"
    PUSHES = "pushes"
    PUBLISHED = "published"
    CONNECTIVITY = "connectivity"


@dataclass(frozen=True, slots=True)
class View:
    """A view to answer, with path and query of the request.

    `proxy` is the proxy that the view is about, in any of its names, and `proxy_path` returns path and query
    by the common name. `seconds` is the window of the traffic statistics.
    """

    scope: Scope
    path: str
    query: Query
    compute: Compute
    proxy: str | None = None
    proxy_path: Callable[[str], tuple[str, Query]] | None = None
    seconds: float = 0.0


class AllReplicas(Protocol):
    """The servers of one mesh, as pages and API need them."""

    async def answer(self, view: View, only: str | None) -> Document:
        """Return a view over all servers, or the view of the server `only`."""

    async def read(self, seconds: float | None = None) -> tuple[MeshReading, Mapping[str, str]]:
        """Return a reading over all servers, and the reason of each server that is missing.

        With `seconds`, the reading has the traffic statistics of all servers for a window of this length.
        """

    async def pulses(self) -> "Mapping[str, Pulse]":
        """Return the pulses of the other servers; a silent one keeps its last pulse while it is here."""

    async def replicas(self) -> Document:
        """Return the servers of the mesh."""


def asked(request: web.Request) -> tuple[web.Request, Query, str | None]:
    """Return a request without the parameter `replica`, its query, and the value of the parameter."""
    query = [(name, value) for name, value in request.query.items() if name != PARAMETER]
    only = request.query.get(PARAMETER)
    if only is None:
        return request, query, None
    return request.clone(rel_url=request.rel_url.with_query(query)), query, only
