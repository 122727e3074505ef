"""Presence of replicas in etcd: a key for each replica, with the state and a lease."""

import asyncio
from collections.abc import Callable, Mapping

import structlog

from meshwright.etcd.client import Client
from meshwright.etcd.errors import EtcdError, UnavailableError
from meshwright.etcd.feed import Difference, Feed
from meshwright.etcd.first_end import until_one_ends
from meshwright.etcd.lease import Lease, LeaseEndedError, Terms
from meshwright.records.contract import ReplicaId
from meshwright.records.etcd.layout import Layout

State = Callable[[], bytes]
Receive = Callable[[Mapping[ReplicaId, bytes]], None]

_log = structlog.get_logger("records.etcd")


class Presence:
    """Presence of one replica, and view of all replicas."""

    def __init__(self, client: Client, layout: Layout, replica: ReplicaId, terms: Terms) -> None:
        self._client = client
        self._layout = layout
        self._replica = replica
        self._key = layout.replica(replica)
        self._terms = terms
        self._shown: bytes | None = None
        self._is_seen = False

    async def run(self, state: State, receive: Receive) -> None:
        """Show this replica until cancelled, and call `receive` with all replicas after each change."""
        states: dict[ReplicaId, bytes] = {}
        self._is_seen = False

        def deliver(difference: Difference) -> None:
            before = dict(states)
            states.update({self._layout.replica_of(item.key): item.value for item in difference.items})
            for key in difference.removed:
                states.pop(self._layout.replica_of(key), None)
            if self._key in difference.removed:
                self._shown = None  # deleted by another client: the next renewal writes the key again
            # The first call has this replica: before that the others are not worth a computation.
            self._is_seen = self._is_seen or self._replica in states
            if self._is_seen and states != before:
                receive(dict(states))

        await until_one_ends(self._show(state), Feed(self._client, self._layout.replicas, deliver).run())

    async def _show(self, state: State) -> None:
        failures = 0
        while True:
            try:
                lease = await Lease.grant(self._client, self._terms)
                try:
                    self._shown, failures = None, 0
                    await until_one_ends(lease.keep(), self._write(state, lease))
                except asyncio.CancelledError:
                    await lease.give_back()  # after an outage the key moves to the next lease, and stays
                    raise
            except (EtcdError, LeaseEndedError) as error:
                failures += 1
                if failures == 1:  # one warning for an outage
                    _log.warning(
                        "this server is not shown to the others now", replica=self._replica, error=str(error)
                    )
            await asyncio.sleep(self._terms.every)

    async def _write(self, state: State, lease: Lease) -> None:
        """Write the state after each change; raise LeaseNotFoundError."""
        while True:
            content = state()
            if content != self._shown:
                # Set before the answer: a deletion that is heard meanwhile resets it, and counts.
                self._shown = content
                try:
                    await self._client.put(self._key, content, lease.id)
                except UnavailableError:  # the lease says whether an outage is too long for the presence
                    self._shown = None
            await asyncio.sleep(self._terms.every)
