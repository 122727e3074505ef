"""The JSON API of a reading, at the socket of a state directory, as the command line uses it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from aiohttp import web

from meshwright.admin.api.mesh import Api
from meshwright.admin.api.routes import add_api
from meshwright.admin.http.servers import SOCKET_NAME, serving, unix_socket
from meshwright.admin.pages.trial_runner import TrialRunner
from meshwright.admin.readers import MeshReading
from meshwright.controller.sources import as_read


@asynccontextmanager
async def answering(reading: MeshReading, state: Path) -> AsyncIterator[None]:
    """Serve the API of a reading at the socket of a state directory."""
    app = web.Application()
    add_api(app, Api(reading, lambda: datetime.now(UTC), TrialRunner(reading, as_read)))
    async with serving(app, unix_socket(state / SOCKET_NAME)):
        yield
