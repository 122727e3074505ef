"""Tests of moves into a store that are interrupted, repeated, or run at once."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest

from certs.authority_records.data_key import SEAL
from certs.authority_records.fields import AUTHORITY
from certs.errors import StateError
from certs.issuers.stored_ca import StoredCa
from certs.roots.authority_state import AuthorityState
from certs.roots.rotation import Fingerprint
from certs.shared_records.custody import SharedStores, open_shared
from meshwright.mesh.names import Namespace, SecretName
from meshwright.records.contract import Record, RecordStore, ReplicaId, Revision
from meshwright.records.key import Key
from meshwright.records.memory import MemoryRecords
from meshwright.transfer.mesh_state import MeshState
from meshwright.transfer.store_writer import OtherMeshError, WriteCount
from tests.tools.shared_records import Fault, FaultyRecords
from tests.unit.transfer.meshes import (
    DOMAIN,
    HOUR,
    NOW,
    Store,
    entry,
    holder,
    mesh,
    pair,
    root,
    rotating_mesh,
    small_mesh,
    token,
)

WRITES = 11
"""Writes of the small mesh: data key, claim, header, two proxies, service, token, two uses, gateway, CA."""


class CountedRecords(FaultyRecords):
    """Client that counts its calls."""

    def __init__(self, store: RecordStore) -> None:
        super().__init__(store)
        self.calls: Counter[str] = Counter()
        self.most = self._running = 0

    async def read(self, key: Key) -> Record | None:
        """Count a read."""
        self.calls["read"] += 1
        return await super().read(key)

    async def write(self, key: Key, content: bytes, before: Revision | None) -> Record:
        """Count a write, and the greatest number of writes at the same time."""
        self.calls["write"] += 1
        self._running += 1
        self.most = max(self.most, self._running)
        try:
            return await super().write(key, content, before)
        finally:
            self._running -= 1


def _open(store: Store) -> None:
    """Start a server with an empty directory on the store, as far as the CA."""
    replica = ReplicaId("server")
    records = MemoryRecords(store.memory, replica)
    stores = SharedStores.open(records, replica, store.thread.loop, store.state, None)
    store.thread.start(stores.ledger.follow(lambda _: None), stores.pairs.follow())
    open_shared(stores, store.state, DOMAIN, NOW, None)


def test_a_move_costs_one_write_for_each_record(store: Store) -> None:
    """With two more for the CA and one for the data key. A repeated move writes nothing."""
    value = mesh(entries=tuple(entry(f"{number:x}", f"p{number}") for number in range(1, 501)))
    clients = list[CountedRecords]()

    def counted(records: RecordStore) -> RecordStore:
        clients.append(CountedRecords(records))
        return clients[-1]

    assert store.client(counted).write(value, NOW) == WriteCount(501, 501)
    assert store.client(counted).write(value, NOW) == WriteCount(501, 0)
    first, second = clients
    assert (first.calls["write"], second.calls["write"]) == (501 + 3, 0)
    assert max(first.calls["read"], second.calls["read"]) < 15
    assert 1 < first.most <= 16


class DyingRecords(FaultyRecords):
    """Client of a process that is killed at its write `number`, before or after the write."""

    def __init__(self, store: RecordStore, number: int, fault: Fault) -> None:
        super().__init__(store, self._next)
        self._left, self._last = number, fault

    def _next(self) -> Fault:
        self._left -= 1
        if self._left > 0:
            return Fault.NONE
        self.is_away = True  # for all later calls
        return self._last


@pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.AFTER])
@pytest.mark.parametrize("number", range(1, WRITES + 1))
def test_killed_move_is_continued(store: Store, number: int, fault: Fault) -> None:
    """Meanwhile no server makes another CA in the store, and the next move ends with the same state."""
    value = small_mesh()
    with pytest.raises(StateError, match=r"the shared (store|data key) cannot be used"):
        store.client(lambda records: DyingRecords(records, number, fault)).write(value, NOW)
    if store.memory.records.keys() <= {SEAL}:
        assert number <= 2
    elif store.client().root() is None:
        with pytest.raises(StateError, match=rf"a mesh \(CA {value.root}\) is being moved into"):
            _open(store)
        with pytest.raises(StateError, match="is being moved into the shared store"):
            store.read()
    else:
        assert (number, fault) == (WRITES, Fault.AFTER)
    store.write(value)
    assert store.read() == value
    _open(store)


@pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.AFTER])
@pytest.mark.parametrize("number", range(1, WRITES + 1))
def test_move_goes_on_after_a_lost_answer(store: Store, number: int, fault: Fault) -> None:
    """A write that failed, or whose answer was lost, is done once."""
    faults = iter([Fault.NONE] * (number - 1) + [fault])

    def lossy(records: RecordStore) -> RecordStore:
        return FaultyRecords(records, lambda: next(faults, Fault.NONE))

    store.client(lossy, (0.0,)).write(small_mesh(), NOW)
    assert store.read() == small_mesh()
    assert store.memory.writes == WRITES


def test_two_moves_at_once_give_the_union(store: Store) -> None:
    """Copies of a directory may differ: what was revoked or used in one of them stays so."""
    uses = {"aa" * 32: NOW}, {"bb" * 32: NOW + HOUR}
    one = mesh(
        entries=(entry("a1", revoked_at=NOW), entry("b2", "b1", claimed_at=NOW)),
        pairs={holder("cart"): pair("cart"), holder("pay"): pair("pay")},
        tokens=(token(1, uses[0]), token(2, {}, revoked_at=NOW)),
    )
    two = mesh(
        entries=(entry("a1"), entry("b2", "b1", claimed_at=NOW, admitted_at=NOW), entry("c3", "c1")),
        pairs={holder("cart"): pair("cart", 1)},
        tokens=(token(1, uses[1]), token(2, {})),
    )
    both = mesh(
        entries=(
            entry("a1", revoked_at=NOW),
            entry("b2", "b1", claimed_at=NOW, admitted_at=NOW),
            entry("c3", "c1"),
        ),
        pairs={holder("cart"): pair("cart", 1), holder("pay"): pair("pay")},
        tokens=(token(1, uses[0] | uses[1]), token(2, {}, revoked_at=NOW)),
    )

    async def at_once() -> None:
        await asyncio.gather(*(asyncio.to_thread(store.write, value) for value in (one, two)))

    asyncio.run(at_once())
    assert store.read() == both
    store.write(one)
    assert store.read() == both


def test_first_of_two_events_stays(store: Store) -> None:
    """The first connection that the store knows is not replaced by the one of another copy."""
    first, second = (mesh(entries=(entry("a1", claimed_at=NOW + hours * HOUR),)) for hours in (2, 1))
    store.write(first)
    store.write(second)
    assert store.read() == first


def test_token_never_gets_more_uses_than_it_has(store: Store) -> None:
    """If two copies have used one token up, the uses of the first move stay."""
    first = token(1, {f"{number:064x}": NOW for number in range(5)})
    store.write(mesh(tokens=(first,)))
    store.write(mesh(tokens=(token(1, {f"{number:064x}": NOW for number in range(3, 8)}),)))
    assert store.read().tokens == (first,)


def _other_mesh() -> MeshState:
    other = root(1)
    return mesh(authority=AuthorityState(StoredCa.of(other)), signer=other.fingerprint)


def test_another_mesh_is_refused(store: Store) -> None:
    """The sentence has both fingerprints, and the store stays as it is."""
    store.write(small_mesh())
    before, other = store.contents(), _other_mesh()
    with pytest.raises(OtherMeshError) as refused:
        store.write(other)
    assert str(refused.value) == (
        f"the store has a mesh with the CA {small_mesh().root}, and this mesh has the CA {other.root}: name "
        "an empty state directory to use the mesh of the store, or name another store"
    )
    assert store.contents() == before


def test_another_mesh_is_refused_during_a_move(store: Store) -> None:
    """The first move has claimed the store."""
    client = store.client(lambda records: DyingRecords(records, 4, Fault.BEFORE))
    with pytest.raises(StateError):
        client.write(small_mesh(), NOW)
    before, other = store.contents(), _other_mesh()
    with pytest.raises(OtherMeshError) as refused:
        store.write(other)
    assert str(refused.value) == (
        f"the store has the beginning of a move of the mesh with the CA {small_mesh().root}, and this mesh "
        f"has the CA {other.root}: finish that move, or remove all records from the store"
    )
    assert store.contents() == before


def test_rest_of_a_mesh_is_refused(store: Store) -> None:
    """Records without the CA may be of any mesh."""
    store.write(small_mesh())
    del store.memory.records[AUTHORITY]
    before = store.contents()
    with pytest.raises(
        StateError, match="the store has no CA, but 8 records of a mesh, for example gateway: "
    ):
        store.write(small_mesh())
    assert store.contents() == before


def test_other_stage_of_a_rotation_is_refused(store: Store) -> None:
    """The store has gone on, or the directory: an old root must not come back."""
    store.write(rotating_mesh())
    before = store.contents()
    with pytest.raises(OtherMeshError, match="but in another stage of a root rotation"):
        store.write(small_mesh())
    assert store.contents() == before
    store.write(rotating_mesh())


def test_facts_of_the_store_stay(store: Store) -> None:
    """A repeated move does not bring back what the servers have changed since."""
    value = small_mesh()
    store.write(value)
    later = replace(value.authority, declared_roots={SecretName(Namespace("mesh"), "new"): Fingerprint("ab")})
    store.memory.records.clear()
    store.write(replace(value, authority=later))
    store.write(value)
    assert store.read().authority == later
