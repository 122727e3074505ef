"""Look-up of certificates in a shared ledger before a client is refused as unknown.

A proxy may join at one server and connect to another a moment later, before the other server has received the
entry of the certificate. The server therefore asks the store once before it refuses an unknown serial.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from certs.errors import StateError
from certs.keys.material import PeerCertificate
from certs.ledger.contract import Ledger, SharedLedger
from certs.ledger.entry import LedgerEntry
from meshwright.mesh.identity import ProxyName, is_proxy_name
from xds.connections.table import Bucket
from xds.hooks import AuthenticationUnavailable

PER_SECOND: Final = 50.0
"""Limit of look-ups per second, over all clients: clients must not cost the store more than the mesh does."""

AWAY: Final = "ledger_unavailable"
BUSY: Final = "too_many_unknown"

_log = structlog.get_logger("delivery.proxies.unknown_serials")


class UnknownSerials:
    """Look-ups of unknown serials; use on one event loop. `monotonic` is in seconds."""

    def __init__(self, ledger: SharedLedger, monotonic: Callable[[], float]) -> None:
        self._ledger = ledger
        self._monotonic = monotonic
        self._bucket = Bucket(PER_SECOND, PER_SECOND, at=monotonic())
        self._asked: dict[ProxyName, asyncio.Task[tuple[LedgerEntry, ...]]] = {}

    async def look_up(self, shown: PeerCertificate, address: str) -> None:
        """Ask the store for a client's certificate, if its serial is unknown here.

        Raises AuthenticationUnavailable if the store cannot be asked now. A certificate that cannot be a
        proxy's is left to the authenticator, which refuses the client.
        """
        if self._ledger.entry(shown.serial) is not None or not is_proxy_name(shown.common_name):
            return
        task = self._task(ProxyName.parse(shown.common_name))
        try:
            # Several streams of one proxy wait for one answer; the end of one does not end it for the others.
            await asyncio.shield(task)
        except StateError as error:
            _log.warning("unknown certificate cannot be looked up", peer=address, reason=str(error))
            raise AuthenticationUnavailable(AWAY) from error

    def _task(self, name: ProxyName) -> "asyncio.Task[tuple[LedgerEntry, ...]]":
        """Return the look-up of a proxy that is under way, or begin one."""
        if (task := self._asked.get(name)) is not None:
            return task
        now = self._monotonic()
        self._bucket.fill(now, 0)
        if self._bucket.level + 1 > self._bucket.size:
            raise AuthenticationUnavailable(BUSY)
        self._bucket.fill(now, 1)
        task = self._asked[name] = asyncio.create_task(self._look_up(name), name="ledger-look-up")
        return task

    async def _look_up(self, name: ProxyName) -> tuple[LedgerEntry, ...]:
        try:
            return await self._ledger.fetch(name)
        finally:
            del self._asked[name]


def unknown_serials(ledger: Ledger, monotonic: Callable[[], float]) -> UnknownSerials | None:
    """Return the look-up for a ledger, or None for a ledger that is not shared."""
    return UnknownSerials(ledger, monotonic) if isinstance(ledger, SharedLedger) else None
