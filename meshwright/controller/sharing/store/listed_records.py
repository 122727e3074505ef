"""A store of records that knows which prefixes are listed, and delivers changes to several receivers."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping

from certs.errors import StateError
from meshwright.records.contract import Changes, Epoch, Knowledge, Record, RecordStore, ReplicaId, Revision
from meshwright.records.key import Key

Listener = Callable[[Changes, bool], None]
"""Receiver of what a follower receives; the second argument is True for all records within the prefix.

It must not raise, and must not wait.
"""


class ListedRecords:
    """A RecordStore that passes all calls on to another one, and notes the first list of each prefix.

    For the event loop of the store, except `listen`.
    """

    def __init__(self, records: RecordStore) -> None:
        self._records = records
        self._lists: dict[Key, asyncio.Event] = {}
        self._listeners: dict[Key, list[Listener]] = {}

    def listen(self, prefix: Key, listener: Listener) -> None:
        """Let another receiver have what the follower of a prefix receives; call this before `follow`.

        One watch of the store is then enough, for example for the certificates and the rejections of proxies,
        which are in the same records.
        """
        self._listeners.setdefault(prefix, []).append(listener)

    async def read(self, key: Key) -> Record | None:
        """Return the present record of a key, or None."""
        return await self._records.read(key)

    def last_known(self, key: Key) -> Knowledge | None:
        """Return what the other store knows about a record."""
        return self._records.last_known(key)

    async def write(self, key: Key, content: bytes, before: Revision | None) -> Record:
        """Replace the record with revision `before`, or create one."""
        return await self._records.write(key, content, before)

    async def remove(self, key: Key, before: Revision) -> None:
        """Remove the record with revision `before`."""
        await self._records.remove(key, before)

    async def follow(self, prefix: Key, receive: Callable[[Changes], None]) -> None:
        """Follow a prefix, and note the first list."""
        listed, listeners = self._listed(prefix), self._listeners.get(prefix, ())
        is_first = True

        def hear(changes: Changes) -> None:
            nonlocal is_first
            receive(changes)
            for listener in listeners:
                listener(changes, is_first)
            is_first = False
            listed.set()

        await self._records.follow(prefix, hear)

    async def announce(
        self, state: Callable[[], bytes], receive: Callable[[Mapping[ReplicaId, bytes]], None]
    ) -> None:
        """Show this replica to the others until cancelled, and call `receive` with all replicas."""
        await self._records.announce(state, receive)

    async def lead(self, work: Callable[[Epoch], Coroutine[None, None, None]]) -> None:
        """Run `work` whenever this replica leads, until cancelled."""
        await self._records.lead(work)

    async def listed(self, prefixes: Iterable[Key], seconds: float) -> None:
        """Wait until all prefixes have been listed; raise StateError after this time."""
        for prefix in prefixes:
            try:
                async with asyncio.timeout(seconds):
                    await self._listed(prefix).wait()
            except TimeoutError:
                raise StateError(
                    f"the shared store has not listed the records {prefix} within {seconds:g} s; see the log"
                ) from None

    def _listed(self, prefix: Key) -> asyncio.Event:
        return self._lists.setdefault(prefix, asyncio.Event())
