"""Leadership in etcd: candidates queue, and the one whose key was created first leads.

Each candidate has a key with a lease. The candidate with the earliest key leads, and the others only watch:
for example, a replica that is a candidate again after a failure goes to the end of the queue. A later leader
has a later key, so the revision of the creation is the epoch.
"""

import asyncio
from collections.abc import Callable, Coroutine

import structlog

from meshwright.etcd.client import Client
from meshwright.etcd.errors import EtcdError
from meshwright.etcd.feed import Difference, Feed
from meshwright.etcd.first_end import until_one_ends
from meshwright.etcd.lease import Lease, LeaseEndedError, Terms
from meshwright.records.contract import Epoch, ReplicaId
from meshwright.records.etcd.layout import Layout

Work = Callable[[Epoch], Coroutine[None, None, None]]

_log = structlog.get_logger("records.etcd")


class _Queue:
    """The candidates of a feed, and whether this candidate leads, or has lost the place in the queue."""

    def __init__(self, own: bytes) -> None:
        self._own = own
        self._created: dict[bytes, int] = {}
        self.leads = asyncio.Event()
        self.is_lost = asyncio.Event()

    def receive(self, difference: Difference) -> None:
        """Take a difference of the candidates' keys."""
        self._created |= {item.key: item.created for item in difference.items}
        for key in difference.removed:
            self._created.pop(key, None)
        own = self._created.get(self._own)
        is_first = own is not None and own == min(self._created.values())
        if is_first:
            self.leads.set()
        elif own is None or self.leads.is_set():
            self.is_lost.set()  # the key was deleted, or a restored store has an earlier candidate again

    async def until_lost(self) -> None:
        """Wait until the candidate has lost the place in the queue."""
        await self.is_lost.wait()


class Leadership:
    """Candidature of one replica, again and again."""

    def __init__(self, client: Client, layout: Layout, replica: ReplicaId, terms: Terms) -> None:
        self._client = client
        self._layout = layout
        self._replica = replica
        self._terms = terms
        self._left: Lease | None = None

    async def run(self, work: Work) -> None:
        """Run `work` whenever this replica leads, until cancelled."""
        failures = 0
        while True:
            try:
                await self._term(work)
                failures = 0
            except (EtcdError, LeaseEndedError) as error:
                failures += 1
                if failures == 1:  # one warning for an outage
                    _log.warning("no candidate for leadership now", replica=self._replica, error=str(error))
            await asyncio.sleep(self._terms.every)

    async def _term(self, work: Work) -> None:
        """Queue with a new lease, lead in turn, and leave the queue."""
        if self._left is not None:
            # Otherwise the former key of this replica would be in front until the end of the lease.
            await self._left.revoke()
            self._left = None
        lease = await Lease.grant(self._client, self._terms)
        try:
            key = self._layout.candidate(self._replica, lease.id)
            swap = await self._client.swap(key, self._replica.encode(), 0, lease.id)
            queue = _Queue(key)
            await until_one_ends(
                lease.keep(),
                Feed(self._client, self._layout.candidates, queue.receive).run(),
                queue.until_lost(),
                self._lead(queue, lease, Epoch(swap.revision), work),
            )
        finally:
            if not await lease.give_back():
                self._left = lease

    async def _lead(self, queue: _Queue, lease: Lease, epoch: Epoch, work: Work) -> None:
        """Wait for the turn of this candidate, and run the work once."""
        await queue.leads.wait()
        if not lease.is_sure:
            return
        _log.info("leadership begins", replica=self._replica, epoch=epoch)
        try:
            await work(epoch)
        except Exception:  # noqa: BLE001 - the next term begins all the same
            _log.exception("the work of a leader failed", replica=self._replica)
        finally:
            _log.info("leadership ends", replica=self._replica, epoch=epoch)
