"""Who has been here: from what streams do to which workloads get traffic, remembered in the ledger.

The ledger alone is the truth: what streams do is written there first, and what is in force is read from it.
It is written whatever the mode, so that another mode finds what it asks for.
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
"""How long to wait before a ledger that failed is written to again."""

PAUSE_SECONDS: Final = 0.1
"""The least time from one transaction to the next: while many come, those who came meanwhile share one."""

_log = structlog.get_logger("delivery.proxies.readiness")


def admission(mode: EndpointAdmission, reached: Progress) -> Admission | None:
    """Return what there is to know of the workload of a proxy that has come so far; None before anything."""
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
    """Return how far each proxy has come, by a ledger's entries sorted by common name."""
    grouped = itertools.groupby(entries, key=lambda entry: NodeKey(entry.common_name))
    return {node: progress(found) for node, found in grouped}


class EndpointReadiness:
    """Told what streams do, on the event loop; `run` writes it down, and says when that changes who counts.

    Made with all that the ledger says, before anything runs.
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
                ProxyName.parse(node): found
                for node, reached in self._progress.items()
                if (found := admission(mode, reached)) is not None
            }
        )
        self._noted: dict[NodeKey, bool] = {}  # whom to look up; True: ready, by its stream
        self._woken = asyncio.Event()
        self._said = ""

    def admissions(self) -> Picture[ProxyName, Admission]:
        """Return whose workloads get traffic and whose none; in mode OFF the latter alone: all others do."""
        return self._admissions

    def opened(self, node: NodeKey) -> None:
        """Take note that a proxy has authenticated: the authenticator has written that down."""
        if self._progress.get(node, Progress.NEW) < Progress.AUTHENTICATED:
            self._note(node, ready=False)

    def waits_for(self, node: NodeKey, type_url: TypeUrl) -> bool:
        """Return whether a proxy that was never ready becomes ready by a response of this type."""
        return type_url in self._ready_types and self._progress.get(node, Progress.NEW) < Progress.READY

    def acknowledged(self, node: NodeKey, type_url: TypeUrl) -> None:
        """Note that a proxy accepted all of its inbound listeners, by its driver's ready type."""
        if self.waits_for(node, type_url):
            self._note(node, ready=True)

    def revoked(self, entry: LedgerEntry) -> None:
        """Take note that a certificate was revoked; the ledger has it already."""
        self._note(NodeKey(entry.common_name), ready=False)

    async def run(self, ledger: Ledger, clock: Callable[[], datetime], changed: Callable[[], None]) -> None:
        """Write down what was noted, and call `changed` where that admits or withdraws somebody."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            # What is noted while the disk is written is for the next turn; what fails comes back beside it.
            noted, self._noted = self._noted, {}
            try:
                found = await asyncio.to_thread(_written, ledger, clock(), noted)
            except StateError as error:
                if str(error) != self._said:
                    ready = sum(noted.values())
                    _log.error("admissions not written; tried again soon", reason=str(error), proxies=ready)
                self._said = str(error)
                for node, is_ready in noted.items():
                    self._note(node, ready=is_ready)
                await asyncio.sleep(RETRY_SECONDS)
                self._woken.set()
            else:
                self._said = ""
                if self._take(found):
                    changed()
                await asyncio.sleep(PAUSE_SECONDS)

    def _note(self, node: NodeKey, *, ready: bool) -> None:
        self._noted[node] = ready or self._noted.get(node, False)
        self._woken.set()

    def _take(self, found: Mapping[NodeKey, Progress]) -> bool:
        """Take over what the ledger says of some proxies; say whether anybody else gets traffic now."""
        self._progress.update(found)
        before = self._admissions
        edits = {ProxyName.parse(node): admission(self._mode, reached) for node, reached in found.items()}
        self._admissions = before.changed(edits)
        for name, now in self._admissions.since(before).items():
            if now is Admission.ADMITTED:
                _log.info("endpoint admitted", proxy=str(name))
            elif now is Admission.WITHDRAWN:
                _log.info("endpoint withdrawn: all its certificates are revoked", proxy=str(name))
        return self._admissions is not before


def _written(ledger: Ledger, now: datetime, noted: Mapping[NodeKey, bool]) -> dict[NodeKey, Progress]:
    """Write to the ledger who is ready, and return what it says of all; for a thread."""
    names = {node: ProxyName.parse(node) for node in noted}
    ledger.admit([names[node] for node, is_ready in noted.items() if is_ready], now)
    reached = progress_of_all(ledger.entries_of_all(names.values()))
    return {node: reached.get(node, Progress.NEW) for node in names}
