"""Where the server is asked besides by proxies: probes, pages, commands, and API servers."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from importlib.metadata import version

import structlog
from aiohttp import web

from certs.ledger.entry import LedgerEntry
from meshwright.admin.api.mesh import Api
from meshwright.admin.api.routes import add_api
from meshwright.admin.api.tap import add_tap
from meshwright.admin.http.audit import AUDIT, audited
from meshwright.admin.http.commands import Commands, add_commands, explained
from meshwright.admin.http.commands_guard import guarded
from meshwright.admin.http.health import Health, HttpThread, application
from meshwright.admin.http.log_levels import add_log_levels
from meshwright.admin.http.rebuilding import RebuildCommands, add_rebuild_commands
from meshwright.admin.http.roots import add_roots
from meshwright.admin.http.servers import serving
from meshwright.admin.http.tokens import TokenCommands, add_token_commands
from meshwright.admin.pages import routes, site
from meshwright.admin.pages.driver_pages import of_drivers
from meshwright.admin.pages.trying import Trying
from meshwright.controller.process.levels import LogLevels
from meshwright.controller.process.listening import Sockets
from meshwright.controller.sources import as_read
from meshwright.controller.wiring import Parts
from meshwright.mesh.host_port import HostPort
from meshwright.sidecars.contract.events import CertificateRevoked

_log = structlog.get_logger("controller.doors")


@contextlib.asynccontextmanager
async def probes(parts: Parts, sockets: Sockets, health: Health) -> AsyncIterator[HostPort]:
    """Answer probes and Prometheus, in a thread of its own: also while the event loop is held."""
    which = {"name": "meshwright", "version": version("meshwright")}
    thread = HttpThread(
        lambda: application(health, parts.metrics, which),
        sockets.http,
    )
    thread.start()
    try:
        yield HostPort(parts.settings.http_address.host, thread.port)
    finally:
        await asyncio.to_thread(thread.stop)


@contextlib.asynccontextmanager
async def pages(parts: Parts, sockets: Sockets) -> AsyncIterator[HostPort]:
    """Show the debug pages."""
    address, trying = parts.settings.debug_address, Trying(parts.reading, as_read)
    app = site.application(
        routes.pages(parts.reading, parts.clock, trying),
        (address.host, *parts.settings.debug_hosts),
        parts.clock,
        of_drivers(parts.reading, parts.pages.pages),
    )
    add_api(app, Api(parts.reading, parts.clock, trying))
    port = sockets.debug.getsockname()[1]
    async with serving(app, sockets.debug):
        yield HostPort(address.host, port)


@contextlib.asynccontextmanager
async def webhook(parts: Parts, sockets: Sockets) -> AsyncIterator[HostPort | None]:
    """Answer API servers, if they are to ask: once the mesh has been read, of which they ask."""
    answering, address = parts.webhook, parts.settings.webhook_address
    if answering is None or address is None or sockets.webhook is None:
        yield None
        return
    port = sockets.webhook.getsockname()[1]
    async with answering.serving(sockets.webhook):
        yield HostPort(address.host, port)


@contextlib.asynccontextmanager
async def commands(parts: Parts, sockets: Sockets) -> AsyncIterator[None]:
    """Answer the command line, over the socket in the state directory."""

    def revoked(entry: LedgerEntry) -> None:
        _log.info("proxy certificate revoked", proxy=entry.common_name, serial=entry.serial)
        parts.delivery.readiness.revoked(entry)
        parts.events.publish(CertificateRevoked(entry.common_name, entry.serial))

    app = web.Application(middlewares=[audited, guarded, explained])
    trying = Trying(parts.reading, as_read)
    further = of_drivers(parts.reading, parts.pages.pages)
    site.add_pages(app, routes.pages(parts.reading, parts.clock, trying), parts.clock, further)
    add_tap(app, parts.reading, parts.taps)
    add_api(app, Api(parts.reading, parts.clock, trying))
    add_log_levels(LogLevels(), app)
    add_commands(app, Commands(parts.reading, parts.proxies, revoked, parts.retried))
    add_rebuild_commands(app, RebuildCommands(parts.opened.rebuilding, parts.reading))
    add_roots(app, parts.roots, parts.opened.whose.why_not)
    add_token_commands(app, TokenCommands(parts.tokens, parts.reading, parts.clock))
    logging.getLogger(AUDIT).setLevel(logging.INFO)  # whatever the level of everything else is
    async with serving(app, sockets.unix):
        yield
