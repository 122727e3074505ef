"""Presence of this server among the servers of the mesh, and its leadership."""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from importlib.metadata import version
from typing import Final

import structlog

from certs.errors import StateError
from meshwright.controller.sharing.store.server_loop import ServerLoop
from meshwright.records.content import NEWEST
from meshwright.records.contract import Epoch, RecordStore, ReplicaId
from meshwright.replicas.leadership import Leadership
from meshwright.replicas.membership import Membership
from meshwright.replicas.newer_first import NewerFirst, has_newer
from meshwright.replicas.state import ReplicaState

_LOOK_SECONDS: Final = 0.2
"""Seconds after which a start that waits for its announcement notices the end of the server."""

_log = structlog.get_logger("controller.sharing")


class ServerPresence:
    """The announcement of this server, and its candidacy for the leadership.

    `membership` and `leadership` belong to the server's event loop. `announce` and `lead` are for the event
    loop of the store, and run until they are cancelled.
    """

    def __init__(
        self, records: RecordStore, replica: ReplicaId, clock: Callable[[], datetime], server_loop: ServerLoop
    ) -> None:
        self._records = records
        self._server_loop = server_loop
        self._announced = threading.Event()
        self._newer_first = NewerFirst()
        own = ReplicaState(version("meshwright"), clock().isoformat(), form=NEWEST)
        self.membership = Membership(replica, own)
        self.leadership = Leadership(lambda epoch: self.membership.set_facts(epoch=epoch))

    async def announce(self) -> None:
        """Show this server to the others, and hear which others are here."""
        await self._records.announce(self.membership.encoded, self._hear_replicas)

    def wait_until_announced(
        self, seconds: float, has_answered: Callable[[], bool], is_stopping: Callable[[], bool]
    ) -> None:
        """Wait in a thread until the other servers see this one; raise StateError.

        A store that has not answered at all cannot show this server. The start goes on with what was followed
        last, and takes over the steps of other servers when the store is back.
        """
        end = time.monotonic() + seconds
        while has_answered() and not self._announced.wait(_LOOK_SECONDS):
            if is_stopping():
                raise StateError("the server is stopping")
            if time.monotonic() > end:
                raise StateError(
                    f"the shared store has not shown this server to the others within {seconds:g} s; "
                    "see the log"
                )

    async def lead(self) -> None:
        """Lead whenever the store lets this server lead."""
        await self._records.lead(self._term)

    def _hear_replicas(self, contents: Mapping[ReplicaId, bytes]) -> None:
        self._announced.set()
        self._server_loop.call(self.membership.hear, contents)

    async def _term(self, epoch: Epoch) -> None:
        """Lead until the term ends, or a work of the leader fails."""
        given_up, loop = asyncio.Event(), asyncio.get_running_loop()
        if self._newer_first.declines(loop.time(), has_newer=self._has_newer()):
            _log.info("a server of a newer version may lead first", replica=self.membership.replica)
            return

        def give_up() -> None:
            loop.call_soon_threadsafe(given_up.set)

        self._server_loop.call(self.leadership.begin, epoch, give_up)
        try:
            await given_up.wait()
        finally:
            self._server_loop.call(self.leadership.end)

    def _has_newer(self) -> bool:
        own = self.membership.own
        return has_newer(own, self.membership.states.values())
