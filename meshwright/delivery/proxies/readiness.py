"""Admission of workloads to traffic by the progress of their proxies, kept in the ledger.

The ledger is the only source of truth, because several servers share it and a restart must not withdraw
traffic: events are written there first, and the admissions are read from it. Progress is written in every
mode, so a change of the mode finds it.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Final

import structlog

from catalog.store.settings import Admission, EndpointAdmission
from certs.errors import StateError
from certs.ledger.contract import Ledger
from certs.ledger.entry import LedgerEntry
from certs.ledger.progress import Progress, progress
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.values.picture import Picture
from xds.cache import NodeKey
from xds.protocol.resources.resource import LISTENER, TypeUrl

RETRY_SECONDS: Final = 1.0
"""Seconds until the next attempt after the ledger could not be written."""

PAUSE_SECONDS: Final = 0.1
"""Minimum seconds between two transactions, so proxies that connect together share one."""

_log = structlog.get_logger("delivery.proxies.readiness")


def admission(mode: EndpointAdmission, reached: Progress) -> Admission | None:
    """Return the admission of a workload by the progress of its proxy; `None` if nothing is known.

    For example, in mode READY a proxy that has only authenticated gives `None`, and its workload gets no
    traffic yet.
    """
    # In every mode: a workload without any certificate in force gets no traffic.
    if reached is Progress.REVOKED:
        return Admission.WITHDRAWN
    match mode:
        case EndpointAdmission.OFF:
            return None
        case EndpointAdmission.IDENTITY:
            return Admission.ADMITTED if reached >= Progress.AUTHENTICATED else None
        case EndpointAdmission.READY:
            return Admission.ADMITTED if reached >= Progress.READY else None


def progress_of_all(entries: Iterable[LedgerEntry]) -> dict[NodeKey, Progress]:
    """Return each proxy's progress towards traffic; `entries` of the ledger are sorted by common name."""
    grouped = itertools.groupby(entries, key=lambda entry: NodeKey(entry.common_name))
    return {node: progress(result) for node, result in grouped}


class EndpointReadiness:
    """Progress of proxies. Events arrive on the event loop, and `run` writes them to the ledger in a thread.

    Created with all entries of the ledger, before any stream is open.
    """

    def __init__(
        self,
        entries: Iterable[LedgerEntry],
        mode: EndpointAdmission,
        ready_types: frozenset[TypeUrl] = frozenset({LISTENER}),
    ) -> None:
        self._mode = mode
        self._ready_types = ready_types
        self._progress = progress_of_all(entries)
        self._admissions: Picture[ProxyName, Admission] = Picture(
            {
                ProxyName.parse(node): result
                for node, reached in self._progress.items()
                if (result := admission(mode, reached)) is not None
            }
        )
        self._noted: dict[NodeKey, bool] = {}  # proxies to be looked up; True if ready by a stream
        self._woken = asyncio.Event()
        self._logged_error = ""

    def admissions(self) -> Picture[ProxyName, Admission]:
        """Return the admitted and withdrawn workloads.

        In mode OFF only withdrawn ones, all others get traffic.
        """
        return self._admissions

    def opened(self, node: NodeKey) -> None:
        """Record that a proxy has authenticated; the authenticator has written this to the ledger."""
        if self._progress.get(node, Progress.NEW) < Progress.AUTHENTICATED:
            self._note(node, ready=False)

    def waits_for(self, node: NodeKey, type_url: TypeUrl) -> bool:
        """Return whether a proxy that was never ready becomes ready by an ACK of this type."""
        return type_url in self._ready_types and self._progress.get(node, Progress.NEW) < Progress.READY

    def acknowledged(self, node: NodeKey, type_url: TypeUrl) -> None:
        """Record a proxy as ready, if the accepted resources are of the type that its driver waits for."""
        if self.waits_for(node, type_url):
            self._note(node, ready=True)

    def revoked(self, entry: LedgerEntry) -> None:
        """Note a certificate revoked in the ledger, so the admission of the proxy is checked again."""
        self._note(NodeKey(entry.common_name), ready=False)

    def heard(self, entries: Iterable[LedgerEntry]) -> None:
        """Note certificates whose entries another server has changed, for example by an admission there."""
        for node in {NodeKey(entry.common_name) for entry in entries}:
            self._note(node, ready=False)

    async def run(self, ledger: Ledger, clock: Callable[[], datetime], changed: Callable[[], None]) -> None:
        """Write recorded events to the ledger until cancelled; call `changed` after a changed admission."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            # Events during the write go into a new dictionary; after an error the old ones are added to it.
            noted, self._noted = self._noted, {}
            try:
                result = await asyncio.to_thread(_write, ledger, clock(), noted)
            except StateError as error:
                if str(error) != self._logged_error:
                    ready = sum(noted.values())
                    _log.error(
                        "admissions cannot be written to the ledger; the server tries again",
                        reason=str(error),
                        proxies=ready,
                    )
                self._logged_error = str(error)
                for node, is_ready in noted.items():
                    self._note(node, ready=is_ready)
                await asyncio.sleep(RETRY_SECONDS)
                self._woken.set()
            else:
                self._logged_error = ""
                if self._take(result):
                    changed()
                # Proxies that connect meanwhile share the next transaction.
                await asyncio.sleep(PAUSE_SECONDS)

    def _note(self, node: NodeKey, *, ready: bool) -> None:
        # Ready once is ready: a later event of the same proxy must not take it back.
        self._noted[node] = ready or self._noted.get(node, False)
        self._woken.set()

    def _take(self, result: Mapping[NodeKey, Progress]) -> bool:
        """Apply the progress of proxies read from the ledger; return whether an admission has changed."""
        self._progress.update(result)
        before = self._admissions
        edits = {ProxyName.parse(node): admission(self._mode, reached) for node, reached in result.items()}
        self._admissions = before.changed(edits)
        for name, now in self._admissions.since(before).items():
            if now is Admission.ADMITTED:
                _log.info("endpoint admitted", proxy=str(name))
            elif now is Admission.WITHDRAWN:
                _log.info("endpoint withdrawn: all its certificates are revoked", proxy=str(name))
        return self._admissions is not before


def _write(ledger: Ledger, now: datetime, noted: Mapping[NodeKey, bool]) -> dict[NodeKey, Progress]:
    """Write ready proxies to the ledger, and return the progress of all; call this in a thread."""
    names = {node: ProxyName.parse(node) for node in noted}
    ledger.admit([names[node] for node, is_ready in noted.items() if is_ready], now)
    reached = progress_of_all(ledger.entries_of_all(names.values()))
    return {node: reached.get(node, Progress.NEW) for node in names}
