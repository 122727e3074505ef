"""Writer of a mesh's state into a store of records: a claim first, all records, and the CA last.

The claim is the record of the CA with the fingerprint alone. While it stands, no server makes another CA,
and no other mesh can be moved into the store. A store is therefore empty, claimed, or complete at each
moment, and an interrupted move can be repeated.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

import structlog

from certs.authority_records.fields import AUTHORITY, MOVING, with_state
from certs.errors import StateError
from certs.roots.authority_state import AuthorityState
from certs.roots.rotation import Rotation
from certs.state.sealing import RecordSeal
from meshwright.enrolment.store.token_fields import (
    TOKENS,
    TokenWithUses,
    is_given_back,
    key_of_use,
    read_use,
    token_and_slot,
    use_fields,
)
from meshwright.records.content import Fields
from meshwright.records.contract import (
    Record,
    RecordStore,
    ReplicaId,
    StoreUnavailableError,
    WriteConflictError,
)
from meshwright.records.key import Key
from meshwright.records.update import Change, Writer, update
from meshwright.transfer.joined_records import joins, slots
from meshwright.transfer.mesh_state import MeshState, require_readable
from meshwright.transfer.store_state import StoredRoot, authority_in, fields_of, list_all, read_root

AT_ONCE: Final = 16
"""Number of records that are written at the same time."""

PAUSES: Final = (0.5, 2.0, 5.0)
"""Seconds before each repetition of a write that the store did not answer, for example while it restarts."""

EVERY: Final = 1000
"""Number of records between two lines about the progress in the log."""

T = TypeVar("T")

_log = structlog.get_logger("transfer")


class OtherMeshError(StateError):
    """Error for a store that has another mesh, or the same one in another state."""


@dataclass(frozen=True, slots=True)
class WriteCount:
    """Result of a move: the number of records of the mesh, and how many of them were written."""

    records: int
    written: int


class StoreWriter:
    """Writer of one mesh into a store, as the replica `replica`; on the event loop of the store.

    `seal` encrypts private keys with the data key of the store. `pauses` are the seconds before the
    repetitions of an unanswered write.
    """

    def __init__(
        self, store: RecordStore, replica: ReplicaId, seal: RecordSeal, pauses: Iterable[float] = PAUSES
    ) -> None:
        self._store = store
        self._replica = replica
        self._writer = Writer(replica)
        self._seal = seal
        self._pauses = tuple(pauses)
        self._total = self._written = 0

    async def write(self, mesh: MeshState, now: datetime) -> WriteCount:
        """Write the mesh into a store that is empty, or has the beginning of the same move.

        If the store has the complete mesh already, only missing facts are added. Raises OtherMeshError, which
        has both fingerprints, StateError and RecordsError; the move can be repeated after each.
        """
        require_readable(mesh.authority)
        self._writer = Writer(self._replica, least_count=count_at(now))
        await self._claim(mesh)
        records = await list_all(self._store)
        # One list in place of a read for each record: a move of 30 000 proxies has no reads but these.
        changes = tuple(joins(mesh, self._seal, now))
        self._total = len(changes) + sum(len(token.uses) for token in mesh.tokens)
        await _each(changes, lambda item: self._join(item[0], item[1], records.get(item[0])))
        # After the tokens, because a use without a token would stay for ever.
        uses = _uses(records)
        await _each(mesh.tokens, lambda token: self._join_uses(token, uses.get(token.stored.record.id, {})))
        await self._patiently(lambda: update(self._store, AUTHORITY, self._completed(mesh), self._writer))
        return WriteCount(self._total, self._written)

    async def _claim(self, mesh: MeshState) -> None:
        """Claim the store for the mesh, unless that was done, or the store has the mesh."""
        await require_no_rest(self._store)

        def change(fields: Fields | None) -> Fields | None:
            require_same(fields, mesh, self._seal)
            return {MOVING: {"root": mesh.root}} if fields is None else None

        await self._patiently(lambda: update(self._store, AUTHORITY, change, self._writer))

    def _completed(self, mesh: MeshState) -> Change:
        """Return the change from the claim to the whole state of the authority."""
        written: Fields | None = None

        def change(fields: Fields | None) -> Fields | None:
            nonlocal written
            require_same(fields, mesh, self._seal)
            if fields is not None and "ca" in fields:
                return None
            # Encrypt once: because of the random nonce, a repeated write would look like another one.
            written = written or with_state({}, mesh.authority, self._seal)
            return written

        return change

    async def _join(self, key: Key, change: Change, present: Record | None) -> None:
        """Join one record with the present one. A new record costs one call of the store."""
        if present is None and (fields := change(None)) is not None and await self._created(key, fields):
            self._note()
            return
        if present is not None and change(fields_of(present)) is None:
            return
        await self._patiently(lambda: update(self._store, key, change, self._writer))
        self._note()

    async def _created(self, key: Key, fields: Fields) -> bool:
        """Create a record; return False if another move was faster, or the outcome is unknown."""
        try:
            await self._store.write(key, self._writer.next(None, fields).encode(), None)
        except (WriteConflictError, StoreUnavailableError):
            return False
        return True

    async def _join_uses(self, token: TokenWithUses, taken: dict[int, str]) -> None:
        """Give each key its use, in a slot that no other key has."""
        record = token.stored.record
        for key, at in sorted(token.uses.items()):
            for slot in slots(key, record.uses, taken):
                # With the token's end, without which a lost use would not be written again.
                fields = use_fields(key, at, record.expires_at)
                taken[slot] = await self._use(key_of_use(record.id, slot), key, fields)
                if taken[slot] == key:
                    break

    async def _use(self, slot: Key, key: str, used: Fields) -> str:
        """Create a use of a key, and return the key that has the use."""
        holder = key

        def change(fields: Fields | None) -> Fields | None:
            nonlocal holder
            is_free = fields is None or is_given_back(fields)
            holder = key if fields is None or is_free else read_use(fields)
            return used if is_free else None

        await self._patiently(lambda: update(self._store, slot, change, self._writer))
        self._note()
        return holder

    async def _patiently(self, call: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Call the store, and repeat the call after a pause if the store does not answer."""
        for pause in self._pauses:
            try:
                await call()
            except StoreUnavailableError as error:
                _log.warning("the store does not answer; the move goes on after a pause", reason=str(error))
                await asyncio.sleep(pause)
            else:
                return
        await call()

    def _note(self) -> None:
        self._written += 1
        if self._written % EVERY == 0:
            _log.info("mesh is being moved into the store", written=self._written, of=self._total)


def count_at(now: datetime) -> int:
    """Return the least count of the contents that a move writes at this time.

    A server may have kept records of the mesh from an earlier store, or from before the store was emptied. It
    would take imported ones with lower counts for older, and write the former CA or passphrase again.
    """
    return int(now.timestamp())


async def require_no_rest(store: RecordStore) -> None:
    """Raise StateError for a store that has records of a mesh, but no CA. They may be of any mesh."""
    if (await read_root(store)).fields is None:
        left = await list_all(store)
        # Read once more, because another move of the mesh may have begun meanwhile.
        if left and (await read_root(store)).fields is None:
            raise StateError(
                f"the store has no CA, but {len(left)} records of a mesh, for example {min(left)}: restore "
                f"the record {AUTHORITY}, or remove these records if they are not needed"
            )


def require_same(fields: Fields | None, mesh: MeshState, seal: RecordSeal) -> None:
    """Raise OtherMeshError unless the record of the CA is of this mesh, or missing.

    Both must have the same CA and be in the same stage of a root rotation: otherwise one of the two has been
    in use since they were one, and joining them would bring an old CA back.
    """
    stored = StoredRoot(fields)
    if stored.moving is not None and stored.moving != mesh.root:
        raise OtherMeshError(
            f"the store has the beginning of a move of the mesh with the CA {stored.moving}, and this mesh "
            f"has the CA {mesh.root}: finish that move, or remove all records from the store"
        )
    if fields is None or stored.root is None:
        return
    if stored.root != mesh.root:
        raise OtherMeshError(
            f"the store has a mesh with the CA {stored.root}, and this mesh has the CA {mesh.root}: name an "
            "empty state directory to use the mesh of the store, or name another store"
        )
    there = authority_in(fields, seal)
    if (_stage(there), there.other) != (_stage(mesh.authority), mesh.authority.other):
        raise OtherMeshError(
            f"the store has this mesh (CA {mesh.root}), but in another stage of a root rotation, so it has "
            "been in use since: name an empty state directory to use the mesh of the store"
        )


def _stage(authority: AuthorityState) -> tuple[object, ...] | None:
    rotation = authority.rotation
    return (rotation.stage, rotation.signer, rotation.other) if isinstance(rotation, Rotation) else None


def _uses(records: Mapping[Key, Record]) -> dict[str, dict[int, str]]:
    """Return the keys that have the uses in records, by token and slot."""
    result: dict[str, dict[int, str]] = {}
    for key, record in records.items():
        if key.startswith(f"{TOKENS}/"):
            token, slot = token_and_slot(key)
            if slot is not None and not is_given_back(fields := fields_of(record)):
                result.setdefault(token, {})[slot] = read_use(fields)
    return result


async def _each(items: Iterable[T], work: Callable[[T], Coroutine[Any, Any, None]]) -> None:
    """Run `work` for all items, AT_ONCE at the same time. After an error the others are cancelled."""
    rest = iter(items)

    async def run() -> None:
        for item in rest:
            await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(run())
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
