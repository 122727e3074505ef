"""Table of the debug pages: path, purpose, handler and look of each page."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final

from aiohttp import web

from meshwright.admin.html.looks import (
    access,
    certificates,
    connectivity,
    explain,
    mesh,
    policies,
    proxies,
    pushes,
    topology,
    traffic,
    trial,
    versions,
)
from meshwright.admin.html.looks.look import PageLook
from meshwright.admin.html.tones import Verdict
from meshwright.admin.jsonable import Document
from meshwright.admin.pages.handlers import Answers
from meshwright.admin.pages.mesh.traffic import window_seconds
from meshwright.admin.pages.overview import Glances
from meshwright.admin.pages.site import Answer as PageAnswer
from meshwright.admin.pages.site import FormRefused, Page
from meshwright.admin.pages.trial_runner import TrialRunner, TrialUnavailable, manifests_of
from meshwright.admin.readers import MeshReading
from meshwright.admin.replicas.view import AllReplicas, Scope, View, asked


@dataclass(frozen=True, slots=True)
class _Route:
    """A debug page without data; the method `page` adds the handlers of a mesh reading.

    `scope` is the part of the page that other servers of the mesh know better, and `scope_of_one` the one of
    the page of a single proxy.
    """

    path: str
    shows: str
    answer: Callable[[Answers, web.Request], Awaitable[Document]]
    look: PageLook
    glance: Callable[[Glances], Awaitable[Verdict]] | None = None
    scope: Scope = Scope.OWN
    scope_of_one: Scope | None = None

    def page(self, answers: Answers, glances: Glances, replicas: AllReplicas | None) -> Page:
        """Return the page with the handlers and verdicts of one mesh reading, or of all `replicas`."""
        glance: Callable[[], Awaitable[Verdict]] | None = None
        if self.glance is not None and (replicas is None or self.scope is Scope.OWN):
            glance = partial(self.glance, glances)
        elif self.glance is not None and replicas is not None:
            glance = partial(self._glance_of_all, self.glance, glances, replicas)
        answer: PageAnswer = partial(self.answer, answers)
        if replicas is not None:
            answer = partial(self._answer_of_all, answers, replicas)
        return Page(self.path, self.shows, answer, self.look, glance)

    async def _answer_of_all(self, answers: Answers, replicas: AllReplicas, request: web.Request) -> Document:
        request, query, only = asked(request)

        async def compute(reading: MeshReading) -> Document:
            return await self.answer(replace(answers, reading=reading), request)

        wanted, scope, seconds = request.query.get("proxy"), self.scope, 0.0
        if wanted is not None and self.scope_of_one is not None:
            scope = self.scope_of_one
        if scope is Scope.TRAFFIC:
            seconds = window_seconds(request.query, answers.reading.traffic())
        return await replicas.answer(View(scope, request.path, query, compute, wanted, None, seconds), only)

    async def _glance_of_all(
        self, glance: Callable[[Glances], Awaitable[Verdict]], glances: Glances, replicas: AllReplicas
    ) -> Verdict:
        seconds = None
        if self.scope is Scope.TRAFFIC:
            seconds = window_seconds({}, glances.reading.traffic())
        reading, _ = await replicas.read(seconds)
        return await glance(replace(glances, reading=reading))


_ROUTES: Final = (
    _Route(
        "/debug/proxy",
        "every proxy, and why its configuration is outdated; ?proxy=: configuration of one proxy",
        Answers.proxies,
        proxies.PROXIES,
        Glances.proxies,
        scope=Scope.FACTS,
        scope_of_one=Scope.PROXY,
    ),
    _Route(
        "/debug/proxy/show",
        "configuration of one proxy, described in words; ?proxy=&section=",
        Answers.proxy_description,
        proxies.TOLD,
        scope_of_one=Scope.PROXY,
    ),
    _Route(
        "/debug/xds",
        "streams by type; ?proxy=[&resource=TYPE/NAME]: last pushes to one proxy",
        Answers.streams,
        pushes.STREAMS,
        Glances.streams,
        scope=Scope.STREAMS,
        scope_of_one=Scope.PROXY,
    ),
    _Route(
        "/debug/xds/diff",
        "two versions of a resource; ?proxy=&type=&name=[&from=&to=]",
        Answers.difference,
        versions.DIFFERENCE,
        scope_of_one=Scope.PROXY,
    ),
    _Route(
        "/debug/published",
        "resources of each proxy, by version",
        Answers.published,
        versions.PUBLISHED,
        scope=Scope.PUBLISHED,
    ),
    _Route(
        "/debug/policies",
        "objects in force, and problems",
        Answers.policies,
        policies.POLICIES,
        Glances.policies,
        scope=Scope.FACTS,
    ),
    _Route(
        "/debug/traffic",
        "statistics of requests and connections; "
        "?of=edges|services|routes|backends|proxies&window=&namespace=&from=&to=&service=",
        Answers.traffic,
        traffic.TRAFFIC,
        Glances.traffic,
        scope=Scope.TRAFFIC,
    ),
    _Route(
        "/debug/topology",
        "graph of allowed and observed traffic; ?service=&namespace=&by=service|namespace&window=",
        Answers.topology,
        topology.TOPOLOGY,
        scope=Scope.TRAFFIC,
    ),
    _Route(
        "/debug/access",
        "allowed requests of every identity, and the objects that allow them",
        Answers.access,
        access.ACCESS,
    ),
    _Route(
        "/debug/explain",
        "why a request is allowed or denied; ?from=&to=&method=&path=&header=, or ?gateway=&host=",
        Answers.explain,
        explain.EXPLAIN,
        scope=Scope.FACTS,
    ),
    _Route(
        "/debug/connectivity",
        "state of every part that a request passes; parameters as for /debug/explain",
        Answers.connectivity,
        connectivity.CONNECTIVITY,
        scope=Scope.CONNECTIVITY,
    ),
    _Route(
        "/debug/certs",
        "issued certificates",
        Answers.certificates,
        certificates.CERTIFICATES,
        Glances.certificates,
        scope=Scope.FACTS,
    ),
    _Route("/debug/config", "MeshConfig and settings", Answers.config, mesh.CONFIG),
    _Route(
        "/debug/loop",
        "moments at which the event loop was blocked, with the cause",
        Answers.loop,
        mesh.LOOP,
        Glances.loop,
    ),
    _Route(
        "/debug/sources",
        "sources: age and objects",
        Answers.sources,
        mesh.SOURCES,
        Glances.sources,
    ),
)


def pages(
    reading: MeshReading,
    clock: Callable[[], datetime],
    trying: TrialRunner | None = None,
    replicas: AllReplicas | None = None,
) -> tuple[Page, ...]:
    """Return all debug pages for one mesh reading; with `trying` also the page for trials of manifests.

    With `replicas`, the pages are about all servers of the mesh, and one more page lists the servers.
    """
    answers, glances = Answers(reading, clock), Glances(reading, clock)
    result = tuple(route.page(answers, glances, replicas) for route in _ROUTES)
    if replicas is not None:
        result = (*result, _members(replicas))
    return result if trying is None else (*result, _try(trying))


def _members(replicas: AllReplicas) -> Page:
    """Return the page of the servers of the mesh."""
    # Imported only here, because a single server does not need the memory.
    from meshwright.admin.html.looks.replicas import MEMBERS, of_members

    async def answer(_request: web.Request) -> Document:
        return await replicas.replicas()

    async def glance() -> Verdict:
        return of_members(await replicas.replicas())

    return Page("/debug/replicas", "the servers of the mesh", answer, MEMBERS, glance)


def _try(trying: TrialRunner) -> Page:
    """Return the page for trials of manifests."""

    async def empty(_request: web.Request) -> Document:
        return {}

    async def posted(request: web.Request) -> Document:
        given = await manifests_of(request)
        try:
            return await trying.tried(given) | {"manifests": given}
        except TrialUnavailable as error:  # keeps the text of the user
            raise FormRefused({"error": str(error), "manifests": given}, error.status) from error

    return Page(
        "/debug/try",
        "POST manifests=YAML: proxies that the manifests would affect",
        empty,
        trial.TRIAL,
        posted=posted,
    )
