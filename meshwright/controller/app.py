"""Start of the server: checks, the CA, the parts; errors that prevent the start become one sentence."""

import asyncio
import contextlib
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

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
from meshwright.controller.settings.store_kind import StoreKind
from meshwright.controller.wiring import join
from meshwright.mesh.names import TrustDomain
from meshwright.sidecars.registry import DriverRegistry

if TYPE_CHECKING:
    from meshwright.controller.sharing.shared_store import SharedStore

CLOCK_BEHIND: Final = timedelta(minutes=5)
"""Maximum time by which the newest certificate may be ahead of the clock, since machines differ."""

_log = structlog.get_logger("controller.app")


def utc_now() -> datetime:
    """Return the current date and time; no other function reads this clock."""
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
    """Run the server until `stop` is set.

    `started` receives the bound addresses when the server is ready. `handshakes` counts failed TLS
    handshakes. `reload` triggers a new reading of the settings. `manager` is notified of the server's state.

    Raises StartupError if the server cannot start, and TaskEnded if a part fails later.
    """
    with explained():
        lock.prepare(settings.state, shared=settings.shared_state)
        if settings.mesh is not None and not settings.mesh.is_dir():
            raise StartupError(f"the mesh directory {settings.mesh} does not exist, or is not a directory")
    descriptors.raise_limit()
    # The lock before the CA: two processes must not create a CA in one directory.
    with lock.hold_lock(settings.state, lock.COMMAND_SECONDS), tended(), contextlib.ExitStack() as stack:
        with explained():
            shared = _shared(settings, clock, stack)
            if shared is None:
                authority = stack.enter_context(_open(settings, clock()))
            else:
                waited = await shared.opened(stop)
                if waited is None:
                    return
                authority = waited
            _log_facts(authority, settings, clock())
            drivers = MeshDrivers(DriverRegistry.discover().drivers, os.environ)
            # `None`: stopped while waiting for a remote issuer.
            if (signs := await issuing(settings, authority, clock(), stop)) is None:
                return
            stack.callback(signs.close)
            parts = join(settings, authority, signs, drivers, clock, shared)
            # Before anything runs, so a port in use is reported at once.
            sockets = stack.enter_context(bound(_addresses(settings)))
        try:
            server = Server(
                parts, sockets, handshakes or FailedHandshakes(), reload, manager or ServiceManager()
            )
            await server.run(stop, started)
        except ExceptionGroup as failed:
            # No `except*`: before Python 3.11.4 (in the images) an error raised in it becomes a group again.
            group, others = failed.split((StartupError, TaskEnded))
            if group is None or others is not None:
                raise
            raise first(group) from failed


def _addresses(settings: Settings) -> Addresses:
    """Return the configured addresses; the ADS port may be in MeshConfig instead.

    For example, a default `ads_address` is not bound here, because MeshConfig may name another port.
    """
    ads = {"ads_address": settings.ads_address} if "ads_address" in settings.model_fields_set else {}
    joining = {"enrolment_address": settings.enrolment_address, "renewal_address": settings.renewal_address}
    return Addresses(
        grpc=ads | {name: address for name, address in joining.items() if address is not None},
        http=settings.http_address,
        debug=settings.debug_address,
        unix=settings.state / SOCKET_NAME,
        webhook=settings.webhook_address,
    )


def _open(settings: Settings, now: datetime) -> contextlib.AbstractContextManager[AuthorityWithLedger]:
    domain = TrustDomain(settings.trust_domain)
    usual = timedelta(days=settings.proxy_certificate_days)
    anew, rebuild = settings.begin_anew, settings.rebuild_ledger
    return opened(settings.state, domain, now, anew, rebuild, usual, custody(settings))


def _shared(
    settings: Settings, clock: Callable[[], datetime], stack: contextlib.ExitStack
) -> "SharedStore | None":
    """Return the store that several servers share, or None; it is closed with the stack."""
    if settings.store is StoreKind.DIRECTORY:
        return None
    # Imported only here, so that a server with a directory does not need the memory.
    from meshwright.controller.sharing.shared_store import SharedStore

    result = SharedStore(settings, clock)
    stack.callback(result.close)
    return result


def _log_facts(authority: AuthorityWithLedger, settings: Settings, now: datetime) -> None:
    """Log the facts about the CA and the clock for the operator, such as an early expiry of the CA."""
    if authority.made:
        _log.info("CA created", state=str(settings.state))
    if authority.rebuilding is not None:
        _log.warning(REBUILT, do="meshwright certs rebuild-ledger")
    if (left := authority.authority.not_after - now) < CA_ENDS_SOON:
        _log.warning(
            "CA expires soon, and all its certificates with it; rotate the root (meshwright certs "
            "rotate-root)",
            days=left.days,
        )
    last = authority.ledger.last_issued_at()
    if last is not None and last > now + CLOCK_BEHIND:
        fields = {"clock": now.isoformat(), "issued": last.isoformat()}
        _log.warning("clock is behind the last issued proxy certificate; correct the clock", **fields)


def first(group: BaseExceptionGroup[Exception]) -> Exception:
    """Return the first error in an exception group, also if groups are nested."""
    error = group.exceptions[0]
    return first(error) if isinstance(error, BaseExceptionGroup) else error
