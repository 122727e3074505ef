"""The other servers of the mesh in a change of the root: their steps, their reports, and their leader."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterator
from functools import partial
from typing import Final

import structlog

from certs.authority_records.store import RecordedAuthority
from certs.errors import StateError
from certs.report_records.store import RecordedReports
from certs.roots.authority_store import FormerLeaderError
from certs.roots.rotation import Rotation
from certs.roots.server_report import Reports, ServerReport
from meshwright.controller.roots.change import LOOK_SECONDS, RootChange
from meshwright.controller.roots.declared import DeclaredRoots
from meshwright.controller.sharing.store.store_thread import StoreThread
from meshwright.records.contract import Epoch
from meshwright.replicas.departures import Departures
from meshwright.replicas.leadership import Leadership
from meshwright.replicas.membership import Membership

TIDY_SECONDS: Final = 60.0
"""Seconds between two removals of reports of servers that have ended."""

_log = structlog.get_logger("controller.sharing")


class RootServers:
    """The other servers, as `meshwright.controller.roots.change.OtherServers`.

    For the server's event loop, except the methods that are for threads. `issued` returns the serials of the
    proxy certificates that this server has issued last.
    """

    def __init__(
        self,
        authority: RecordedAuthority,
        issued: Callable[[], tuple[str, ...]],
        reports: RecordedReports,
        membership: Membership,
        leadership: Leadership,
        departures: Departures,
    ) -> None:
        self._authority, self._reports, self.issued = authority, reports, issued
        self._membership, self._leadership = membership, leadership
        self._departures = departures
        self._changed = asyncio.Event()

    def start(self, thread: StoreThread, call: Callable[[Callable[[], None]], None]) -> None:
        """Follow the authority and the reports; `call` runs a function on the server's event loop."""
        thread.start("shared authority", lambda: self._authority.follow(lambda: call(self._changed.set)))
        thread.start("reports of the servers", self._reports.follow)

    def reports(self, rotation: Rotation) -> Reports:
        """Return the reports of the other servers that are here; does not wait."""
        return self._reports.others(self._membership.states.keys(), rotation)

    def give(self, own: ServerReport, rotation: Rotation) -> None:
        """Give the others the report of this server. Call in a thread; raises StateError."""
        self._reports.write(own, rotation)

    def take_back(self) -> None:
        """Remove the report of this server after a change. Call in a thread; raises StateError."""
        self._reports.remove((self._membership.replica,))

    def has_ended_recently(self) -> bool:
        """Return whether another server has ended a moment ago, or may have."""
        return self._departures.are_recent

    def announce(self, step: str, holdouts: Collection[str]) -> None:
        """Announce the step that this server has taken over, and proxies here that hold up the next one."""
        self._membership.set_facts(authority=step, holdouts=tuple(holdouts))

    def works(
        self, change: RootChange | None, declared: DeclaredRoots
    ) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield the names and coroutines of all tasks for the server's event loop."""
        yield "declared roots", declared.run_among_others()
        if change is not None:
            yield "root change", change.following(self._changed)
            yield "root change of the leader", self._leadership.lead(partial(self._lead, change, declared))
            yield "old reports of the servers", self._leadership.lead(self._tidy)

    async def _lead(self, change: RootChange, declared: DeclaredRoots, epoch: Epoch) -> None:
        """Take the steps of a root change, until cancelled."""
        while True:
            try:
                declared.leading = store = await asyncio.to_thread(self._authority.lead, epoch)
                await change.stepping(store)
            except FormerLeaderError as error:
                _log.warning("another server has begun to lead the root change", reason=str(error))
            except StateError as error:
                _log.warning("root change has no leader yet; the server tries again", reason=str(error))
            finally:
                declared.leading = None
            await asyncio.sleep(LOOK_SECONDS)

    async def _tidy(self, epoch: Epoch) -> None:
        """Remove the reports of servers that have ended, until cancelled."""
        del epoch  # a server that is here writes its report again
        while True:
            await asyncio.sleep(TIDY_SECONDS)
            if gone := self._reports.servers() - self._membership.states.keys():
                try:
                    await asyncio.to_thread(self._reports.remove, gone)
                except StateError as error:
                    _log.warning("report of a server that has ended is not removed yet", reason=str(error))
