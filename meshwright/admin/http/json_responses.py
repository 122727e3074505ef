"""Long answers in JSON, made and written where they hold nobody up."""

import asyncio
from collections.abc import Callable, Mapping
from http import HTTPStatus

from aiohttp import web

from meshwright.admin.jsonable import Document, pieces


async def answered(
    make: Callable[[], Document], headers: Mapping[str, str], status: int = HTTPStatus.OK
) -> web.Response:
    """Answer with a document, which is made and written in a thread; raises what `make` does."""
    text = await asyncio.to_thread(lambda: "".join(pieces(make())))
    return web.Response(text=text, content_type="application/json", headers=headers, status=status)
