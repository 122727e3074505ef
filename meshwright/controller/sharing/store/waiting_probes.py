"""Probes of a server that waits for the shared store, before its parts exist.

Without them, a kubelet would restart a container that waits longer than its start-up probe allows.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from importlib.metadata import version
from typing import Final

from meshwright.admin.http.health import Health, HttpThread, application
from meshwright.admin.metrics.registry import Metrics
from meshwright.controller.process.listening import listen
from meshwright.mesh.host_port import HostPort

_WAITING: Final = ("an answer of the shared store",)


@contextlib.asynccontextmanager
async def waiting_probes(address: HostPort) -> AsyncIterator[None]:
    """Answer probes within the context: the server is alive, and not ready. Raises StartupError."""
    health = Health(alive=lambda: True, waiting=lambda: _WAITING)
    which = {"name": "meshwright", "version": version("meshwright")}
    thread = HttpThread(lambda: application(health, Metrics(), which), listen("http_address", address))
    thread.start()
    try:
        yield
    finally:
        await asyncio.to_thread(thread.stop)
