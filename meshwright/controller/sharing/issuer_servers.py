"""The other servers of the mesh while a new issuer's roots are distributed to all sidecars."""

import asyncio
from collections.abc import Sequence

from certs.report_records.sidecar_reports import SidecarReports
from meshwright.controller.sharing.store.store_thread import StoreThread
from meshwright.replicas.departures import Departures
from meshwright.replicas.leadership import Leadership
from meshwright.replicas.membership import Membership


class IssuerServers:
    """The other servers, as `meshwright.controller.issuing.roots_taken.OtherServers`; for one event loop."""

    def __init__(
        self,
        taken: SidecarReports,
        membership: Membership,
        leadership: Leadership,
        departures: Departures,
    ) -> None:
        self._taken, self._membership = taken, membership
        self._leadership, self._departures = leadership, departures

    def start(self, thread: StoreThread) -> None:
        """Follow the records."""
        thread.start("sidecars without an issuer's roots", self._taken.follow)

    async def lacking(self, roots: str, ours: Sequence[str]) -> tuple[str, ...] | None:
        """Tell the other servers who of ours lacks these roots, and return who of all does.

        Return None at a server that does not lead. Raises StateError.
        """
        await asyncio.to_thread(self._taken.write, roots, ours)
        if not self._leadership.epoch:
            return None
        result = (*ours, *self._taken.lacking(roots, self._membership.states.keys()))
        if self._departures.are_recent:
            return (*result, "sidecars of a server that ended a moment ago, or before this server began")
        return result

    async def done(self) -> None:
        """Forget the reports of this server, and of ended ones, because no roots are awaited.

        Raises StateError.
        """
        gone = self._taken.servers() - self._membership.states.keys() if self._leadership.epoch else ()
        await asyncio.to_thread(self._taken.remove, (self._membership.replica, *gone))
