"""Listeners for all clients except proxies: probes, pages, commands, the webhook, and enrolment."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

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
from meshwright.admin.http.state import StateCommands, add_state_commands
from meshwright.admin.http.tokens import TokenCommands, add_token_commands
from meshwright.admin.pages import routes, site
from meshwright.admin.pages.driver_pages import of_drivers
from meshwright.admin.pages.trial_runner import TrialRunner
from meshwright.controller.process.levels import LogLevels
from meshwright.controller.process.listening import Sockets
from meshwright.controller.sources import as_read
from meshwright.controller.wiring import Parts
from meshwright.delivery.proxies.identity import MeshAuthenticator, contradiction
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName, is_proxy_name
from meshwright.sidecars.contract.events import CertificateRevoked
from meshwright.sidecars.type_words import short_type
from xds.cache import NodeKey
from xds.protocol.resources.resource import Reference

if TYPE_CHECKING:
    from meshwright.controller.identity.enrolment import EnrolmentPorts

PEER_REVOCATION_SECONDS: Final = 1.0
"""Seconds to wait for the store when another server asks for a revocation, which is in force before."""

_log = structlog.get_logger("controller.doors")


@contextlib.asynccontextmanager
async def probes(parts: Parts, sockets: Sockets, health: Health) -> AsyncIterator[HostPort]:
    """Serve probes and metrics in a thread of their own, so they answer while the event loop is blocked."""
    which = {"name": "meshwright", "version": version("meshwright")}
    thread = HttpThread(
        lambda: application(health, parts.core.metrics, which),
        sockets.http,
    )
    thread.start()
    try:
        yield HostPort(parts.core.settings.http_address.host, thread.port)
    finally:
        # In a thread, because waiting for the HTTP thread would block the event loop.
        await asyncio.to_thread(thread.stop)


@contextlib.asynccontextmanager
async def pages(parts: Parts, sockets: Sockets) -> AsyncIterator[HostPort]:
    """Serve the debug pages."""
    settings, clock, reading = parts.core.settings, parts.core.clock, parts.reading
    address, trying = settings.debug_address, TrialRunner(reading, as_read)
    app = site.application(
        routes.pages(reading, clock, trying, parts.replicas),
        (address.host, *settings.debug_hosts),
        clock,
        of_drivers(reading, parts.proxies.pages.pages, parts.replicas),
    )
    add_api(app, Api(reading, clock, trying, parts.replicas))
    port = sockets.debug.getsockname()[1]
    async with serving(app, sockets.debug):
        yield HostPort(address.host, port)


@contextlib.asynccontextmanager
async def webhook(parts: Parts, sockets: Sockets) -> AsyncIterator[HostPort | None]:
    """Serve API servers if a webhook is configured; the mesh must have been read before."""
    answering, address = parts.in_cluster.webhook, parts.core.settings.webhook_address
    if answering is None or address is None or sockets.webhook is None:
        yield None
        return
    port = sockets.webhook.getsockname()[1]
    async with answering.serving(sockets.webhook):
        yield HostPort(address.host, port)


def enrolling(parts: Parts) -> "EnrolmentPorts | None":
    """Return the enrolment ports, or `None` if none is configured."""
    core, identity, monitors = parts.core, parts.identity, parts.monitors
    if core.settings.enrolment_address is None and core.settings.renewal_address is None:
        return None
    from meshwright.controller.identity.enrolment import EnrolmentPorts

    authenticator = MeshAuthenticator(
        identity.opened.ledger,
        core.view,
        core.clock,
        trusts=identity.opened.authority.trusts,
        shown=core.delivery.shown_certificates,
        unknown_serials=identity.unknown_serials,
    )
    return EnrolmentPorts(
        core.settings,
        identity.proxy_certificates,
        authenticator,
        core.clock,
        lambda name: contradiction(name, core.view()),
        identity.confirmations,
        monitors.ejections,
        monitors.traffic,
        core.metrics.enrolled,
        identity.open_tokens,
        parts.in_cluster.proofs,
    )


@contextlib.asynccontextmanager
async def commands(parts: Parts, sockets: Sockets) -> AsyncIterator[None]:
    """Serve the command line over the socket in the state directory."""
    core, identity, reading = parts.core, parts.identity, parts.reading

    def exported(passphrase: bytes) -> str:
        """Return the state of the mesh in the state directory, encrypted."""
        # Imported only here, because few servers export their state.
        from meshwright.controller.sharing.migration.own_mesh import export_open

        return export_open(core.settings, identity.opened, passphrase, core.clock())

    app = web.Application(middlewares=[audited, guarded, explained])
    trying = TrialRunner(reading, as_read)
    further = of_drivers(reading, parts.proxies.pages.pages, parts.replicas)
    all_pages = routes.pages(reading, core.clock, trying, parts.replicas)
    site.add_pages(app, all_pages, core.clock, further)
    add_tap(app, reading, parts.monitors.taps, None if parts.peers is None else parts.peers.client)
    add_api(app, Api(reading, core.clock, trying, parts.replicas))
    add_log_levels(LogLevels(), app)
    add_commands(
        app,
        Commands(
            reading,
            identity.proxy_certificates,
            partial(_revoked, parts),
            partial(_retried, parts),
            None if parts.peers is None else parts.peers.acts,
        ),
    )
    add_rebuild_commands(app, RebuildCommands(identity.opened.rebuilding, reading))
    add_roots(app, identity.roots, identity.opened.opened_authority.why_not)
    add_token_commands(app, TokenCommands(identity.tokens, reading, core.clock))
    add_state_commands(app, StateCommands(exported))
    logging.getLogger(AUDIT).setLevel(
        logging.INFO
    )  # the audit log is always written, whatever the configured level
    async with serving(app, sockets.unix):
        yield


@contextlib.asynccontextmanager
async def peers(parts: Parts) -> AsyncIterator[HostPort | None]:
    """Serve the other servers of the mesh, if there may be any."""
    if parts.peers is None:
        yield None
        return
    from meshwright.controller.sharing.peers.door import PeerSubjects

    reading, core = parts.reading, parts.core
    subjects = PeerSubjects(
        reading=reading,
        trying=TrialRunner(reading, as_read),
        taps=parts.monitors.taps,
        clock=core.clock,
        own_problems=parts.own_problems,
        server=parts.peers.server,
        revoke=partial(_revoke_for_peer, parts),
        retry=partial(_retry_for_peer, parts),
        progress=parts.progress,
        further=of_drivers(reading, parts.proxies.pages.pages),
    )
    async with parts.peers.serving(subjects) as at:
        yield at


async def _revoke_for_peer(parts: Parts, serial: str, why: str) -> bool:
    """Bring a revocation of another server in force here; return whether it is."""
    from meshwright.controller.sharing.peers.parts import revoked_within

    ledger = parts.identity.opened.ledger

    def is_in_force() -> bool:
        entry = ledger.entry(serial)
        return entry is not None and entry.revoked_at is not None

    revoke = partial(parts.identity.proxy_certificates.revoke, serial, why)
    done = await revoked_within(revoke, is_in_force, PEER_REVOCATION_SECONDS)
    if done and (entry := ledger.entry(serial)) is not None:
        _revoked(parts, entry)
    return done


def _retry_for_peer(parts: Parts, proxy: str) -> list[str]:
    """Offer a proxy the rejected resources again for another server; return them as text."""
    offered = _retried(parts, ProxyName.parse(proxy)) if is_proxy_name(proxy) else ()
    return [f"{short_type(kind)} {resource}" for kind, resource in offered]


def _revoked(parts: Parts, entry: LedgerEntry) -> None:
    """Bring a revocation in force: withdraw the admission, and end the streams."""
    _log.info("proxy certificate revoked", proxy=entry.common_name, serial=entry.serial)
    parts.core.delivery.readiness.revoked(entry)
    parts.proxies.events.publish(CertificateRevoked(entry.common_name, entry.serial))


def _retried(parts: Parts, name: ProxyName) -> tuple[Reference, ...]:
    """Offer the rejected resources to a proxy again; return the references of these resources."""
    return parts.core.delivery.answers.retry(NodeKey(str(name)))
