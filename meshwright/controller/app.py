"""Runs the server: what must be right first, then its parts; and says what keeps it from starting."""

import asyncio
import contextlib
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog

from certs.custody import AuthorityWithLedger, opened
from certs.ledger.rebuilding import REBUILT
from certs.renewal import CA_ENDS_SOON
from meshwright.admin.http.servers import SOCKET_NAME
from meshwright.controller.drivers import MeshDrivers
from meshwright.controller.errors import StartupError
from meshwright.controller.issuing.issuing import custody, issuing
from meshwright.controller.process import descriptors, lock
from meshwright.controller.process.handshakes import FailedHandshakes
from meshwright.controller.process.listening import Addresses, bound
from meshwright.controller.process.memory import tended
from meshwright.controller.process.service_manager import ServiceManager
from meshwright.controller.process.tasks import TaskEnded
from meshwright.controller.server import BoundAddresses, Server, explained
from meshwright.controller.settings.reload import Reload
from meshwright.controller.settings.settings import Settings
from meshwright.controller.wiring import join
from meshwright.mesh.names import TrustDomain
from meshwright.sidecars.registry import DriverRegistry

CLOCK_BEHIND: Final = timedelta(minutes=5)
"""By how much the newest certificate may be ahead of the clock: machines differ a little."""

_log = structlog.get_logger("controller.app")


def utc_now() -> datetime:
    """Return the time; the only clock that knows the date."""
    return datetime.now(UTC)


async def run(
    settings: Settings,
    stop: asyncio.Event,
    clock: Callable[[], datetime] = utc_now,
    started: Callable[[BoundAddresses], None] = lambda _: None,
    handshakes: FailedHandshakes | None = None,
    reload: Reload | None = None,
    manager: ServiceManager | None = None,
) -> None:
    """Run the server until `stop` is set; `started` is told where it listens once it is ready.

    `handshakes` are those that fail meanwhile, as far as somebody reads of them. Settings are read again as
    `reload` says. `manager` is told how the server is.

    Raises StartupError for whatever keeps it from starting, TaskEnded if a part of it fails later.
    """
    with explained():
        lock.prepare(settings.state, shared=settings.shared_state)
        if settings.mesh is not None and not settings.mesh.is_dir():
            raise StartupError(f"the mesh directory {settings.mesh} is not there, or is no directory")
    descriptors.raise_limit()
    with lock.held(settings.state, lock.COMMAND_SECONDS), tended(), contextlib.ExitStack() as stack:
        with explained():
            found = stack.enter_context(_opened(settings, clock()))
            _say(found, settings, clock())
            drivers = MeshDrivers(DriverRegistry.discover().drivers, os.environ)
            if (signs := await issuing(settings, found, clock(), stop)) is None:
                return
            stack.callback(signs.close)
            parts = join(settings, found, signs, drivers, clock)
            sockets = stack.enter_context(bound(_addresses(settings)))
        try:
            server = Server(
                parts, sockets, handshakes or FailedHandshakes(), reload, manager or ServiceManager()
            )
            await server.run(stop, started)
        except ExceptionGroup as failed:
            # No `except*`: what is raised in one comes in a group again before Python 3.11.4 (the images').
            said, others = failed.split((StartupError, TaskEnded))
            if said is None or others is not None:
                raise
            raise first(said) from failed


def _addresses(settings: Settings) -> Addresses:
    """Return where the server listens, as far as settings say it: MeshConfig may name the ADS port."""
    ads = {"ads_address": settings.ads_address} if "ads_address" in settings.model_fields_set else {}
    joining = {"enrolment_address": settings.enrolment_address, "renewal_address": settings.renewal_address}
    return Addresses(
        grpc=ads | {name: address for name, address in joining.items() if address is not None},
        http=settings.http_address,
        debug=settings.debug_address,
        unix=settings.state / SOCKET_NAME,
        webhook=settings.webhook_address,
    )


def _opened(settings: Settings, now: datetime) -> contextlib.AbstractContextManager[AuthorityWithLedger]:
    domain = TrustDomain(settings.trust_domain)
    usual = timedelta(days=settings.proxy_certificate_days)
    anew, rebuild = settings.begin_anew, settings.rebuild_ledger
    return opened(settings.state, domain, now, anew, rebuild, usual, custody(settings))


def _say(found: AuthorityWithLedger, settings: Settings, now: datetime) -> None:
    """Say what whoever starts the server should know of its CA and clock."""
    if found.made:
        _log.info("a new CA was made", state=str(settings.state))
    if found.rebuilding is not None:
        _log.warning(REBUILT, do="meshwright certs rebuild-ledger")
    if (left := found.authority.not_after - now) < CA_ENDS_SOON:
        _log.warning("the CA ends soon: no certificate outlives it", days=left.days)
    last = found.ledger.last_issued_at()
    if last is not None and last > now + CLOCK_BEHIND:
        said = {"clock": now.isoformat(), "issued": last.isoformat()}
        _log.warning("the clock is behind: a proxy certificate was issued later than that", **said)


def first(group: BaseExceptionGroup[Exception]) -> Exception:
    """Return the first single error of a group of groups."""
    error = group.exceptions[0]
    return first(error) if isinstance(error, BaseExceptionGroup) else error
