"""Table of the debug pages: path, purpose, handler and look of each page."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
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
from meshwright.admin.pages.overview import Glances
from meshwright.admin.pages.site import FormRefused, Page
from meshwright.admin.pages.trial_runner import TrialRunner, TrialUnavailable, manifests_of
from meshwright.admin.readers import MeshReading


@dataclass(frozen=True, slots=True)
class _Route:
    """A debug page without data; the method `page` adds the handlers of a mesh reading."""

    path: str
    shows: str
    answer: Callable[[Answers, web.Request], Awaitable[Document]]
    look: PageLook
    glance: Callable[[Glances], Awaitable[Verdict]] | None = None

    def page(self, answers: Answers, glances: Glances) -> Page:
        """Return the page with the handlers and verdicts of one mesh reading."""
        glance = None if self.glance is None else partial(self.glance, glances)
        return Page(self.path, self.shows, partial(self.answer, answers), self.look, glance)


_ROUTES: Final = (
    _Route(
        "/debug/proxy",
        "every proxy, and why its configuration is outdated; ?proxy=: configuration of one proxy",
        Answers.proxies,
        proxies.PROXIES,
        Glances.proxies,
    ),
    _Route(
        "/debug/proxy/show",
        "configuration of one proxy, described in words; ?proxy=&section=",
        Answers.proxy_description,
        proxies.TOLD,
    ),
    _Route(
        "/debug/xds",
        "streams by type; ?proxy=[&resource=TYPE/NAME]: last pushes to one proxy",
        Answers.streams,
        pushes.STREAMS,
        Glances.streams,
    ),
    _Route(
        "/debug/xds/diff",
        "two versions of a resource; ?proxy=&type=&name=[&from=&to=]",
        Answers.difference,
        versions.DIFFERENCE,
    ),
    _Route(
        "/debug/published",
        "resources of each proxy, by version",
        Answers.published,
        versions.PUBLISHED,
    ),
    _Route(
        "/debug/policies",
        "objects in force, and problems",
        Answers.policies,
        policies.POLICIES,
        Glances.policies,
    ),
    _Route(
        "/debug/traffic",
        "statistics of requests and connections; "
        "?of=edges|services|routes|backends|proxies&window=&namespace=&from=&to=&service=",
        Answers.traffic,
        traffic.TRAFFIC,
        Glances.traffic,
    ),
    _Route(
        "/debug/topology",
        "graph of allowed and observed traffic; ?service=&namespace=&by=service|namespace&window=",
        Answers.topology,
        topology.TOPOLOGY,
    ),
    _Route(
        "/debug/access",
        "allowed requests of every identity, and the objects that allow them",
        Answers.access,
        access.ACCESS,
    ),
    _Route(
        "/debug/explain",
        "why a request is allowed or denied; ?from=&to=&method=&path=&header=",
        Answers.explain,
        explain.EXPLAIN,
    ),
    _Route(
        "/debug/connectivity",
        "state of every part that a request passes; parameters as for /debug/explain",
        Answers.connectivity,
        connectivity.CONNECTIVITY,
    ),
    _Route(
        "/debug/certs",
        "issued certificates",
        Answers.certificates,
        certificates.CERTIFICATES,
        Glances.certificates,
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
    reading: MeshReading, clock: Callable[[], datetime], trying: TrialRunner | None = None
) -> tuple[Page, ...]:
    """Return all debug pages for one mesh reading; with `trying` also the page for trials of manifests."""
    answers, glances = Answers(reading, clock), Glances(reading, clock)
    result = tuple(route.page(answers, glances) for route in _ROUTES)
    return result if trying is None else (*result, _try(trying))


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
