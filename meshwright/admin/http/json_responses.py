"""JSON answers computed in a thread, because long ones would block the event loop."""

import asyncio
from collections.abc import Callable, Mapping
from http import HTTPStatus

from aiohttp import web

from meshwright.admin.jsonable import Document, pieces


async def answered(
    make: Callable[[], Document], headers: Mapping[str, str], status: int = HTTPStatus.OK
) -> web.Response:
    """Return an HTTP answer with the JSON document from `make`, which runs in a thread; errors are raised."""
    text = await asyncio.to_thread(lambda: "".join(pieces(make())))
    return web.Response(text=text, content_type="application/json", headers=headers, status=status)
