"""Changes and removals of a record with a pure function.

Each is a decision and a compared write, and once more after a conflict. The first decision uses the record as
this server knew it last, so that most changes need no read. Such knowledge may be old: only a compared write,
or a read, confirms a decision.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Self

from meshwright.records.content import Content, Fields, UnreadableContentError
from meshwright.records.contract import (
    NO_LEADER,
    Epoch,
    Record,
    RecordsError,
    RecordStore,
    ReplicaId,
    Revision,
    StoreUnavailableError,
    TooLargeError,
    WriteConflictError,
)
from meshwright.records.key import Key

Change = Callable[[Fields | None], Fields | None]
"""Return the new fields of a record from the present ones, or None to leave the record as it is.

The argument is None where there is no record. The first argument may be older than the record: the result
then counts only if the store takes the write. The function may be called several times, and must be pure and
idempotent: after a write with an unknown outcome it may see its own result, with a later change by another
replica on top. A claim therefore has the claimant in its fields: two changes of one replica with equal
fields at the same time may both count as done. The function may raise an error of its own about the present
record, which `update` passes on without a write.
"""

ATTEMPTS: Final = 50
"""Limit of attempts: each lost one is a write of another replica, so more would mean a fault of a writer."""

UNANSWERED: Final = 3
"""Limit of writes without an answer: a store with answers to reads alone is unavailable."""


class OldEpochError(RecordsError):
    """Error for a write of a former leader: the record has the epoch of a later one."""


@dataclass(frozen=True, slots=True)
class Writer:
    """The replica that writes, with the epoch of its leadership; 0 for writes without a leader.

    Each written content has a count of at least `least_count`, so that it is later than all contents with
    lower counts, also than those that other replicas have kept from a store that was emptied.
    """

    replica: ReplicaId
    epoch: Epoch = NO_LEADER
    least_count: int = 1

    def next(self, before: Content | None, fields: Fields) -> Content:
        """Return the content to write after `before`; raise OldEpochError for a former leader.

        A write without leadership keeps the present epoch, so that a fence stays in place.
        """
        if before is None:
            return Content(fields, self.replica, self.least_count, self.epoch)
        if self.epoch and self.epoch < before.epoch:
            raise OldEpochError(
                f"this server led in epoch {self.epoch}, and the record is of epoch {before.epoch}"
            )
        count = max(before.count + 1, self.least_count)
        return Content(fields, self.replica, count, max(self.epoch, before.epoch))


@dataclass(frozen=True, slots=True)
class Version:
    """A content in the store, with the revision; both are None for a missing record."""

    content: Content | None = None
    revision: Revision | None = None
    encoded: bytes = field(default=b"", repr=False)

    @classmethod
    def of(cls, record: Record | None) -> Self:
        """Return the version of a record; raises UnreadableContentError with the key."""
        if record is None:
            return cls()
        try:
            content = Content.decode(record.content)
        except UnreadableContentError as error:
            raise UnreadableContentError(f"record {record.key}: {error}") from error
        return cls(content, record.revision, record.content)


async def update(store: RecordStore, key: Key, change: Change, writer: Writer) -> Version:
    """Change a record, and return the version afterwards, written or left as it was.

    The write is compared, so a change by another replica in between is never lost: `change` is called again
    with it. If the outcome of a write is unknown, the record is read again, and the same bytes mean that the
    write was done. Raises StoreUnavailableError if the store does not answer, or answers only reads; then the
    change may still happen. Raises OldEpochError for a former leader; UnreadableContentError, with the key,
    for a damaged or newer content; TooLargeError; and the errors of `change`.
    """
    if (guess := _last_known(store, key)) is not None:
        written = await _guessed(store, key, change, writer, guess)
        if isinstance(written, Version):
            return written
        state = written
    else:
        state = _State(Version.of(await store.read(key)))
    return await _confirmed(store, key, change, writer, state)


@dataclass(frozen=True, slots=True)
class _State:
    """A record as the store has it, and the bytes of a write whose outcome is unknown, empty for none."""

    version: Version
    uncertain: bytes = b""


def _last_known(store: RecordStore, key: Key) -> Version | None:
    """Return the version that this server knew last, or None if it knows none that can be read."""
    known = store.last_known(key)
    if known is None:
        return None
    try:
        return Version.of(known.record)
    except UnreadableContentError:
        return None


async def _guessed(
    store: RecordStore, key: Key, change: Change, writer: Writer, guess: Version
) -> Version | _State:
    """Write on top of the last known version; return the version written, or else the state of the store."""
    try:
        fields = change(None if guess.content is None else guess.content.fields)
        encoded = b"" if fields is None else writer.next(guess.content, fields).encode()
    except Exception:  # noqa: BLE001 - the record may be another one now, which decides about the error
        encoded = b""
    if not encoded:
        return _State(Version.of(await store.read(key)))
    try:
        return Version.of(await store.write(key, encoded, guess.revision))
    except WriteConflictError as conflict:
        return _State(Version.of(conflict.current))
    except TooLargeError:
        return _State(Version.of(await store.read(key)))
    except StoreUnavailableError:
        return _State(Version.of(await store.read(key)), encoded)


async def _confirmed(store: RecordStore, key: Key, change: Change, writer: Writer, state: _State) -> Version:
    version, uncertain = state.version, state.uncertain
    unanswered = int(bool(uncertain))
    for _ in range(ATTEMPTS):
        # An uncertain write is compared with the same revision as the next one, so at most one takes effect,
        # and its bytes show that it did.
        if uncertain and version.encoded == uncertain:
            return version
        fields = change(None if version.content is None else version.content.fields)
        if fields is None:
            return version
        encoded = writer.next(version.content, fields).encode()
        try:
            return Version.of(await store.write(key, encoded, version.revision))
        except WriteConflictError as conflict:
            version = Version.of(conflict.current)
        except StoreUnavailableError:
            uncertain, unanswered = encoded, unanswered + 1
            version = Version.of(await store.read(key))
            if unanswered == UNANSWERED and version.encoded != uncertain:
                raise
    raise RecordsError(f"{key} was changed by others {ATTEMPTS} times in a row")


async def fenced(store: RecordStore, key: Key, replica: ReplicaId, epoch: Epoch) -> Writer:
    """Write the epoch of a new leader into a record, if there is one; return the writer for its later writes.

    Writes of former leaders are refused from then on, even those that are under way. The epoch in the record
    grows, whatever the store counts: after a restore from a backup, or after the loss of the store's own
    count, it would otherwise lock out all later leaders. Raises the errors of `update`.
    """
    content = Version.of(await store.read(key)).content
    above = epoch if content is None else Epoch(max(epoch, content.epoch + 1))
    writer = Writer(replica, above)
    await update(store, key, lambda fields: fields, writer)
    return writer


async def remove(store: RecordStore, key: Key, condition: Callable[[Fields], bool]) -> bool:
    """Remove a record if its fields meet a condition; return whether the record is gone.

    The removal is compared, so a change by another replica in between is judged too. Raises
    StoreUnavailableError if the store does not answer, or answers only reads; UnreadableContentError for a
    content that must not be removed.
    """
    version, unanswered = _last_known(store, key), 0
    if version is None or version.content is None or not condition(version.content.fields):
        version = Version.of(await store.read(key))
    for _ in range(ATTEMPTS):
        if version.content is None or version.revision is None:
            return True
        if not condition(version.content.fields):
            return False
        try:
            await store.remove(key, version.revision)
        except WriteConflictError as conflict:
            version = Version.of(conflict.current)
        except StoreUnavailableError:
            unanswered += 1
            if unanswered == UNANSWERED:
                raise
            version = Version.of(await store.read(key))
        else:
            return True
    raise RecordsError(f"{key} was changed by others {ATTEMPTS} times in a row")
