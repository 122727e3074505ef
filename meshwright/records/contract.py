"""Contract of a store of records that several servers share.

The contract is small, because Kubernetes and etcd must both fulfil it: single keys, compared writes, a feed
of changes, presence with a time limit, and one leader. Transactions over several keys are not part of it,
because the Kubernetes API lacks them. State that must change together is therefore one record.

`tests/unit/records/test_contract.py` is the suite for every implementation.
"""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Final, NewType, Protocol

from meshwright.records.key import Key

Revision = NewType("Revision", str)
"""Version of one record, without meaning outside its store: compare only for equality."""

Epoch = NewType("Epoch", int)
"""Number of a term of leadership: a later leader has a greater one."""

NO_LEADER: Final = Epoch(0)
"""Epoch of writes without leadership."""

ReplicaId = NewType("ReplicaId", str)
"""Name of a running server, unique among the replicas: a restarted server has another one."""

LARGEST_CONTENT: Final = 256 * 1024
"""Limit of a content in bytes: etcd refuses requests above 1.5 MiB, Kubernetes objects above about 1 MiB."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record in a store: key, content, and the revision to name when the record is replaced."""

    key: Key
    content: bytes = field(repr=False)
    revision: Revision


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The last record of a key that a client has followed or written; `record` is None if there was none."""

    record: Record | None = None


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of the records within a prefix: new and replaced records, and keys of removed ones."""

    records: tuple[Record, ...] = ()
    removed: tuple[Key, ...] = ()


class RecordsError(Exception):
    """Error of a store of records. The sentence names the store, and never a content."""


class StoreUnavailableError(RecordsError):
    """Error for a store that does not answer now: the call may have been done, or may be done later."""


class WriteConflictError(RecordsError):
    """Error for a compared write that came too late; `current` is the present record, or None."""

    def __init__(self, key: Key, current: Record | None) -> None:
        found = "the record is gone" if current is None else f"revision {current.revision} is there"
        super().__init__(f"another writer changed {key}: {found}")
        self.current = current


class TooLargeError(RecordsError, ValueError):
    """Error for a content above LARGEST_CONTENT. The other records are not affected."""

    def __init__(self, key: Key, size: int) -> None:
        super().__init__(f"content of {key}: {size} bytes, at most {LARGEST_CONTENT} are allowed")


def require_size(key: Key, content: bytes) -> None:
    """Raise TooLargeError for a content above LARGEST_CONTENT."""
    if len(content) > LARGEST_CONTENT:
        raise TooLargeError(key, len(content))


class RecordStore(Protocol):
    """Records that servers share; each is written whole or not at all.

    All methods belong to one event loop. Each raises StoreUnavailableError if the store does not answer
    within the store's own time limit, and RecordsError for a refusal of every later attempt too, for
    example a missing permission. `follow`, `announce` and `lead` run until they are cancelled: they try again
    by themselves, and never end because of an unavailable store.
    """

    async def read(self, key: Key) -> Record | None:
        """Return the present record of a key, or None; never an older one.

        After a write has returned, on any server, `read` returns that record or a later one.
        """

    def last_known(self, key: Key) -> Knowledge | None:
        """Return what this client followed or wrote last, without a call; None if it knows nothing.

        The knowledge may be old, so it is good for a compared write only (`meshwright.records.update`).
        """

    async def write(self, key: Key, content: bytes, before: Revision | None) -> Record:
        """Replace the record with revision `before`, or create one where `before` is None.

        Return the new record, which has a new revision, also with an equal content. Raises WriteConflictError
        if the record has another revision, is missing, or exists where `before` is None; TooLargeError for
        a content above LARGEST_CONTENT. After StoreUnavailableError the write may be done or not, and may
        still happen: read the record before the next attempt (`meshwright.records.update`).

        A late replacement is refused as soon as another write has replaced or removed the record. A late
        creation is refused only while the record is there, so after a removal the record may reappear.
        """

    async def remove(self, key: Key, before: Revision) -> None:
        """Remove the record with revision `before`; raise WriteConflictError as `write` does.

        If a request was repeated, `current` may be None although the removal was the caller's own.
        """

    async def follow(self, prefix: Key, receive: Callable[[Changes], None]) -> None:
        """Call `receive` with all records within a prefix, then with each change, until cancelled.

        The first call has all records, and may be empty. The changes of one key arrive in order, each at
        least in its last form: a receiver that was away gets the difference, not every step between. A
        change by the caller itself is delivered too. `receive` must not raise, and must not wait.
        """

    async def announce(
        self, state: Callable[[], bytes], receive: Callable[[Mapping[ReplicaId, bytes]], None]
    ) -> None:
        """Show this replica to the others until cancelled, and call `receive` with all replicas.

        `state` is called for each renewal. A replica without renewals vanishes after the time limit of the
        store, and at once when it is cancelled. `receive` is called whenever the set or a state changes, and
        only then; the first call has this replica. While the store is unavailable, all replicas stay.
        """

    async def lead(self, work: Callable[[Epoch], Coroutine[None, None, None]]) -> None:
        """Run `work` whenever this replica leads, and cancel it when leadership is in doubt, until cancelled.

        At most one replica is sure to lead at a time, by the clock of each replica's own durations. A stopped
        process may go on after that, so leadership alone is not enough: leaders write with the epoch, and
        `meshwright.records.update` refuses writes of an earlier one. If `work` ends by itself or raises, the
        leadership is given up, the error is logged, and the replica is a candidate for the next term.
        """
