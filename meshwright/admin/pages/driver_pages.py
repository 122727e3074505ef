"""Adapter for pages of drivers: a proxy can be named in the same ways as on all other pages."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from aiohttp import web

from meshwright.admin.jsonable import Document
from meshwright.admin.pages.site import Answer, Page
from meshwright.admin.proxy_names import find
from meshwright.admin.readers import MeshReading, ProxyReading
from meshwright.admin.replicas.view import AllReplicas, Scope, View, asked


def of_drivers(
    reading: ProxyReading, pages: Callable[[], Iterable[Page]], replicas: AllReplicas | None = None
) -> Callable[[], tuple[Page, ...]]:
    """Return a function that returns the pages, each with `proxy` replaced by the proxy's common name.

    An unknown or ambiguous name is an error as on other pages, and the driver is not called. With several
    `replicas`, the server that has the proxy answers.
    """

    def named() -> tuple[Page, ...]:
        return tuple(replace(page, answer=_answer_of_all(reading, page, replicas)) for page in pages())

    return named


def _answer_of_all(reading: ProxyReading, page: Page, replicas: AllReplicas | None) -> Answer:
    if replicas is None:
        return _answer(reading, page)

    async def answer(request: web.Request) -> Document:
        request, query, only = asked(request)
        wanted = request.query.get("proxy")

        async def compute(of_all: MeshReading) -> Document:
            return await _answer(of_all, page)(request)

        scope = Scope.OWN if wanted is None else Scope.PROXY
        return await replicas.answer(View(scope, request.path, query, compute, wanted), only)

    return answer


def _answer(reading: ProxyReading, page: Page) -> Answer:
    async def answer(request: web.Request) -> Document:
        if (wanted := request.query.get("proxy")) is not None:
            name = str(find(reading, wanted).name)
            request = request.clone(rel_url=request.rel_url.update_query(proxy=name))
        return await page.answer(request)

    return answer
