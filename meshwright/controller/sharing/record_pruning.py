"""Pruning of the records of proxies, by the leader of several servers, so that they do not grow for ever."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final, Protocol

import structlog

from certs.errors import StateError
from certs.ledger.entry import LedgerEntry
from certs.ledger.retention import Retention
from meshwright.mesh.identity import ProxyName
from meshwright.records.contract import Epoch

LOOK_SECONDS: Final = 600.0
"""Seconds between two looks at all records."""

PAUSE_SECONDS: Final = 0.1
"""Seconds between two writes, so that joins and renewals are not delayed by many of them."""

AT_ONCE: Final = 50
"""Number of records that are judged in one turn of the event loop."""

_log = structlog.get_logger("controller.sharing")

HasWorkload = Callable[[ProxyName, tuple[LedgerEntry, ...]], bool]
"""Return whether a Pod or machine with the proxy of these certificates exists, or may exist."""


class PrunableLedger(Protocol):
    """A ledger that can forget certificates, for example `certs.ledger.records.ledger.RecordedLedger`."""

    def names(self) -> tuple[ProxyName, ...]:
        """Return the names of all proxies with a record, in a fixed order."""

    def entries_of(self, name: ProxyName) -> tuple[LedgerEntry, ...]:
        """Return the certificates of one proxy; does not wait."""

    def is_forgettable(self, name: ProxyName, retention: Retention) -> bool:
        """Return whether `forget` would change the record of a proxy; does not wait."""

    async def forget(self, name: ProxyName, retention: Retention) -> bool:
        """Drop the certificates that a proxy does not need any more; raise StateError."""


class RecordPruning:
    """Pruning of the records of proxies while this server leads. For one event loop.

    `workloads` returns the function that knows mesh and cluster now, or None while a part cannot be read.
    `keeps_revoked` is True if revoked certificates never vanish. Two servers that both believe to lead do no
    harm, because each write is compared.
    """

    def __init__(
        self,
        ledger: PrunableLedger,
        workloads: Callable[[], HasWorkload | None],
        clock: Callable[[], datetime],
        *,
        keeps_revoked: bool,
        pause_seconds: float = PAUSE_SECONDS,
    ) -> None:
        self._ledger = ledger
        self._workloads = workloads
        self._clock = clock
        self._keeps_revoked = keeps_revoked
        self._pause_seconds = pause_seconds
        self._gone_since: dict[ProxyName, datetime] = {}

    async def run(self, epoch: Epoch) -> None:
        """Look at all records again and again, until this server does not lead any more."""
        del epoch  # other servers write the same records too, so only the comparison of a write counts
        self._gone_since.clear()
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> int:
        """Forget what may be forgotten now; return the number of changed records."""
        names = await asyncio.to_thread(self._ledger.names)
        known = set(names)
        self._gone_since = {name: at for name, at in self._gone_since.items() if name in known}
        changed = 0
        try:
            for start in range(0, len(names), AT_ONCE):
                changed += await self._slice(names[start : start + AT_ONCE])
                await asyncio.sleep(0)
        except StateError as error:  # the next look goes on
            _log.warning("old proxy certificates are not forgotten now", reason=str(error), changed=changed)
        if changed:
            _log.info("old proxy certificates are forgotten", proxies=changed)
        return changed

    async def _slice(self, names: Iterable[ProxyName]) -> int:
        has_workload = self._workloads()
        if has_workload is None:
            return 0
        now, changed = self._clock(), 0
        for name in names:
            gone_since = self._note(name, now, here=has_workload(name, self._ledger.entries_of(name)))
            retention = Retention(now, gone_since, keeps_revoked=self._keeps_revoked)
            if self._ledger.is_forgettable(name, retention):
                changed += await self._ledger.forget(name, retention)
                await asyncio.sleep(self._pause_seconds)
        return changed

    def _note(self, name: ProxyName, now: datetime, *, here: bool) -> datetime | None:
        """Return the time since which this proxy has no workload, as seen in this term.

        For example, a Pod that ended before this server led counts as gone since the first look.
        """
        if here:
            self._gone_since.pop(name, None)
            return None
        return self._gone_since.setdefault(name, now)
