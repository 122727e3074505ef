"""Store of records in etcd; implements `meshwright.records.contract.RecordStore`."""

from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from meshwright.etcd.client import Client, Swap
from meshwright.etcd.errors import EtcdError, UnavailableError
from meshwright.etcd.feed import Difference, Feed
from meshwright.etcd.lease import TERMS, Terms
from meshwright.etcd.values import KeyValue
from meshwright.records.contract import (
    Changes,
    Epoch,
    Knowledge,
    Record,
    RecordsError,
    ReplicaId,
    Revision,
    StoreUnavailableError,
    WriteConflictError,
    require_size,
)
from meshwright.records.etcd.layout import Layout
from meshwright.records.etcd.leadership import Leadership
from meshwright.records.etcd.presence import Presence
from meshwright.records.key import Key, is_within

_NO_RECORD: Final = 0
"""The `mod_revision` of a missing key."""


class EtcdRecords:
    """Store of records for one replica. The caller closes the client of etcd afterwards."""

    def __init__(self, client: Client, layout: Layout, replica: ReplicaId, terms: Terms = TERMS) -> None:
        self._client = client
        self._layout = layout
        self._presence = Presence(client, layout, replica, terms)
        self._leadership = Leadership(client, layout, replica, terms)

    async def read(self, key: Key) -> Record | None:
        """Return the present record of a key, or None; a member of etcd asks the others first."""
        with _translated():
            item = await self._client.get(self._layout.key_of_record(key))
        return None if item is None else _record(key, item)

    def last_known(self, key: Key) -> Knowledge | None:
        """Return None: this client keeps no records."""
        del key
        return None

    async def write(self, key: Key, content: bytes, before: Revision | None) -> Record:
        """Replace the record with revision `before`, or create one."""
        require_size(key, content)
        modified = _NO_RECORD if before is None else int(before)
        with _translated():
            swap = await self._client.swap(self._layout.key_of_record(key), content, modified)
        _check(key, swap)
        return Record(key, content, Revision(str(swap.revision)))

    async def remove(self, key: Key, before: Revision) -> None:
        """Remove the record with revision `before`."""
        with _translated():
            swap = await self._client.delete(self._layout.key_of_record(key), int(before))
        _check(key, swap)

    async def follow(self, prefix: Key, receive: Callable[[Changes], None]) -> None:
        """Call `receive` with all records within a prefix, then with each change, until cancelled."""
        is_first = True

        def deliver(difference: Difference) -> None:
            nonlocal is_first
            changes = self._changes(prefix, difference)
            if is_first or changes != Changes():
                is_first = False
                receive(changes)

        await Feed(self._client, self._layout.records_within(prefix), deliver).run()

    def _changes(self, prefix: Key, difference: Difference) -> Changes:
        """Return a difference as changes of the records within the prefix."""
        keys = ((self._layout.record_of(item.key), item) for item in difference.items)
        removed = map(self._layout.record_of, difference.removed)
        return Changes(
            tuple(_record(key, item) for key, item in keys if key is not None and is_within(key, prefix)),
            tuple(key for key in removed if key is not None and is_within(key, prefix)),
        )

    async def announce(
        self, state: Callable[[], bytes], receive: Callable[[Mapping[ReplicaId, bytes]], None]
    ) -> None:
        """Show this replica to the others until cancelled, and call `receive` with all replicas."""
        await self._presence.run(state, receive)

    async def lead(self, work: Callable[[Epoch], Coroutine[None, None, None]]) -> None:
        """Run `work` whenever this replica leads, and cancel it when leadership is in doubt."""
        await self._leadership.run(work)


def _record(key: Key, item: KeyValue) -> Record:
    return Record(key, item.value, Revision(str(item.modified)))


def _check(key: Key, swap: Swap) -> None:
    if not swap.is_done:
        raise WriteConflictError(key, None if swap.current is None else _record(key, swap.current))


@contextmanager
def _translated() -> Iterator[None]:
    """Raise errors of etcd as those of the contract."""
    try:
        yield
    except UnavailableError as error:
        raise StoreUnavailableError(str(error)) from error
    except EtcdError as error:
        raise RecordsError(str(error)) from error
