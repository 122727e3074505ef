"""Pages of drivers, asked as all others are: which proxy is meant is found in one way."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from aiohttp import web

from meshwright.admin.jsonable import Document
from meshwright.admin.pages.site import Answer, Page
from meshwright.admin.proxy_names import find
from meshwright.admin.readers import ProxyReading


def of_drivers(reading: ProxyReading, pages: Callable[[], Iterable[Page]]) -> Callable[[], tuple[Page, ...]]:
    """Return what returns the pages, each of which is told of a `proxy` the common name, however it was said.

    Of nobody, or of one that may be several, it is not asked: that is told as on every page.
    """

    def named() -> tuple[Page, ...]:
        return tuple(replace(each, answer=_answer(reading, each)) for each in pages())

    return named


def _answer(reading: ProxyReading, page: Page) -> Answer:
    async def answer(request: web.Request) -> Document:
        if (wanted := request.query.get("proxy")) is not None:
            name = str(find(reading, wanted).name)
            request = request.clone(rel_url=request.rel_url.update_query(proxy=name))
        return await page.answer(request)

    return answer
