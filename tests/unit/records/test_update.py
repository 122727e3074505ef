"""Tests of compared changes: nothing is lost or done twice, whatever the store answers."""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from meshwright.records.content import Content, Fields, UnreadableContentError
from meshwright.records.contract import (
    Epoch,
    Knowledge,
    Record,
    RecordsError,
    ReplicaId,
    Revision,
    StoreUnavailableError,
    WriteConflictError,
)
from meshwright.records.key import Key, key_of
from meshwright.records.memory import Memory, MemoryRecords
from meshwright.records.update import (
    ATTEMPTS,
    UNANSWERED,
    Change,
    OldEpochError,
    Version,
    Writer,
    remove,
    update,
)
from tests.tools.faulty_records import Fault, FaultyRecords, Network
from tests.tools.hypothesis_profiles import examples

KEY: Final = key_of("tokens", "4f1c")
A, B = ReplicaId("a"), ReplicaId("b")
IDS: Final = 4
"""Ids that each writer of the property adds."""


def store_of(memory: Memory, replica: ReplicaId = A) -> MemoryRecords:
    """Return the client of a replica."""
    return MemoryRecords(memory, replica)


def count_up(fields: Fields | None) -> Fields:
    """Return the next number: a change that shows when it is done twice."""
    number = 0 if fields is None else fields["number"]
    assert isinstance(number, int)
    return {"number": number + 1}


def addition_of(identifier: str) -> Change:
    """Return the change that adds an id to a record, and leaves a record with the id as it is."""

    def add(fields: Fields | None) -> Fields | None:
        ids = _ids(fields)
        return None if identifier in ids else {"ids": [*ids, identifier]}

    return add


def _ids(fields: Fields | None) -> list[object]:
    ids = [] if fields is None else fields["ids"]
    assert isinstance(ids, list)
    return ids


def content_in(memory: Memory) -> Content:
    """Return the content of the record."""
    return Content.decode(memory.records[KEY].content)


async def test_first_change_creates_the_record() -> None:
    """The function gets None, and the returned version is the one in the store."""
    memory = Memory()
    version = await update(store_of(memory), KEY, count_up, Writer(A))
    assert version.content == Content({"number": 1}, A)
    assert memory.records == {KEY: Record(KEY, version.encoded, Revision("1"))}
    assert version == Version.of(memory.records[KEY])


async def test_later_change_counts_the_writes() -> None:
    """The content names the last writer, and keeps fields that the function keeps."""
    memory = Memory()
    await update(store_of(memory), KEY, lambda _: {"number": 7, "newer": [1]}, Writer(A))
    version = await update(
        store_of(memory, B), KEY, lambda fields: {**(fields or {}), "number": 8}, Writer(B)
    )
    assert version == Version.of(memory.records[KEY])
    assert version.content == Content({"number": 8, "newer": [1]}, B, count=2)


@pytest.mark.parametrize("there", [False, True])
async def test_function_may_leave_the_record_as_it_is(there: bool) -> None:
    """Nothing is written, and the present version is returned."""
    memory = Memory()
    before = await update(store_of(memory), KEY, count_up, Writer(A)) if there else Version()
    assert await update(store_of(memory, B), KEY, lambda _: None, Writer(B)) == before
    assert memory.writes == int(there)


async def test_error_of_the_function_prevents_the_write() -> None:
    """The caller gets its own error."""
    memory = Memory()

    def refuse(_: Fields | None) -> Fields:
        raise PermissionError("the token is used up")

    with pytest.raises(PermissionError, match="used up"):
        await update(store_of(memory), KEY, refuse, Writer(A))
    assert memory.records == {}


async def test_overtaken_change_is_computed_again() -> None:
    """The function sees the change of the other replica, and the conflict costs no further read."""
    memory = Memory()
    store = _Overtaken(memory, 1)
    version = await update(store, KEY, count_up, Writer(A))
    assert version.content == Content({"number": 2}, A, count=2)
    assert (store.reads, store.attempts) == (1, 2)


async def test_change_that_is_always_overtaken_ends() -> None:
    """So many conflicts in a row are a fault of a writer, and the error says so."""
    store = _Overtaken(Memory(), ATTEMPTS)
    with pytest.raises(RecordsError, match=f"^{KEY} was changed by others {ATTEMPTS} times in a row$"):
        await update(store, KEY, count_up, Writer(A))
    assert store.attempts == ATTEMPTS


class _Overtaken(MemoryRecords):
    """A client whose first writes are each overtaken by another replica."""

    def __init__(self, memory: Memory, times: int) -> None:
        super().__init__(memory, A)
        self._other = store_of(memory, B)
        self._times = times
        self.attempts = self.reads = 0

    async def read(self, key: Key) -> Record | None:
        """Count the reads."""
        self.reads += 1
        return await super().read(key)

    async def write(self, key: Key, content: bytes, before: Revision | None) -> Record:
        """Write after the other replica has written."""
        self.attempts += 1
        if self.attempts <= self._times:
            await update(self._other, key, count_up, Writer(B))
        return await super().write(key, content, before)


@pytest.mark.parametrize(
    ("faults", "writes"),
    [
        ([Fault.BEFORE], 1),
        ([Fault.AFTER], 1),
        ([Fault.LATER], 1),
        ([Fault.BEFORE, Fault.LATER], 1),
        ([Fault.LATER, Fault.AFTER], 1),
        ([Fault.LATER, Fault.LATER], 1),
    ],
)
async def test_write_without_an_answer_is_done_once(faults: list[Fault], writes: int) -> None:
    """The record is read back: the same bytes mean that the write was done, and others that it was not."""
    memory = Memory()
    network = Network(script=faults)
    version = await update(FaultyRecords(store_of(memory), network), KEY, count_up, Writer(A))
    await network.deliver_all()
    assert (version.content, content_in(memory)) == (Content({"number": 1}, A), Content({"number": 1}, A))
    assert memory.writes == writes


async def test_store_that_takes_no_writes_is_unavailable() -> None:
    """A store may answer reads and no writes; the error is the store's, after a few attempts."""
    memory = Memory()
    network = Network(script=[Fault.BEFORE] * ATTEMPTS)
    with pytest.raises(StoreUnavailableError, match=r"^the store does not answer$"):
        await update(FaultyRecords(store_of(memory), network), KEY, count_up, Writer(A))
    assert network.faults == UNANSWERED
    network.script[:] = [Fault.BEFORE] * (UNANSWERED - 1) + [Fault.AFTER]
    version = await update(FaultyRecords(store_of(memory), network), KEY, count_up, Writer(A))
    assert version.content == Content({"number": 1}, A), "the last write was done"


async def test_damaged_content_is_never_replaced() -> None:
    """Neither a damaged content, nor the one of a newer version of the program."""
    for content in (b"damaged", b'{"form": 2}'):
        memory = Memory()
        damaged = memory.put(KEY, content)
        with pytest.raises(UnreadableContentError):
            await update(store_of(memory), KEY, count_up, Writer(A))
        assert memory.records == {KEY: damaged}


async def test_write_of_a_former_leader_is_refused() -> None:
    """A record with the epoch of a later leader is closed to earlier ones, but open to the others."""
    memory = Memory()
    await update(store_of(memory), KEY, count_up, Writer(A, Epoch(3)))
    fenced = await update(store_of(memory, B), KEY, lambda fields: fields, Writer(B, Epoch(4)))
    assert fenced.content == Content({"number": 1}, B, count=2, epoch=Epoch(4))
    with pytest.raises(OldEpochError, match=r"^this server led in epoch 3, and the record is of epoch 4$"):
        await update(store_of(memory), KEY, count_up, Writer(A, Epoch(3)))
    assert content_in(memory) == fenced.content
    version = await update(store_of(memory), KEY, count_up, Writer(A))
    assert version.content == Content({"number": 2}, A, count=3, epoch=Epoch(4)), "the fence stays"


async def test_late_write_of_a_former_leader_is_refused() -> None:
    """The write was under way when the next leader put its epoch into the record."""
    memory = Memory()
    await update(store_of(memory), KEY, count_up, Writer(A, Epoch(3)))
    network = Network(script=[Fault.LATER])
    former = FaultyRecords(store_of(memory), network)
    before = memory.records[KEY].revision
    with pytest.raises(StoreUnavailableError):
        await former.write(KEY, Writer(A, Epoch(3)).next(content_in(memory), {"number": 9}).encode(), before)
    fenced = await update(store_of(memory, B), KEY, lambda fields: fields, Writer(B, Epoch(4)))
    await network.deliver_all()
    assert content_in(memory) == fenced.content
    with pytest.raises(OldEpochError):
        await update(former, KEY, count_up, Writer(A, Epoch(3)))


class _Remembering(FaultyRecords):
    """A client that knows any earlier form of the record, any time later, or that there was none."""

    def __init__(self, store: MemoryRecords, network: Network) -> None:
        super().__init__(store, network)
        self._earlier: list[Knowledge | None] = [None, Knowledge()]
        self._choice = Random(network.seed)  # noqa: S311 - a test's

    def last_known(self, key: Key) -> Knowledge | None:
        """Return any earlier knowledge."""
        return self._choice.choice(self._earlier)

    async def read(self, key: Key) -> Record | None:
        """Remember what the store has."""
        record = await super().read(key)
        self._earlier.append(Knowledge(record))
        return record


async def _add(store: FaultyRecords, replica: ReplicaId, ids: Sequence[str]) -> int:
    """Add ids one by one, each until the store has answered; return the number of unanswered updates."""
    unanswered = 0
    for identifier in ids:
        while True:
            try:
                version = await update(store, KEY, addition_of(identifier), Writer(replica))
            except StoreUnavailableError:
                unanswered += 1
                continue
            assert version.content is not None
            assert identifier in _ids(version.content.fields)
            break
    return unanswered


@given(st.integers(0, 2**32), st.integers(1, 5), st.booleans())
@example(seed=0, writers=4, remembers=False)
@example(seed=0, writers=4, remembers=True)
@settings(max_examples=examples(40))
def test_writers_over_a_faulty_store_add_each_id_once(seed: int, writers: int, remembers: bool) -> None:
    """No id is lost or there twice, and each write in the store added exactly one.

    This holds for clients with any knowledge of earlier times too.
    """

    async def add_all() -> tuple[Memory, int]:
        memory, network = Memory(), Network(seed, share=0.4)
        names = [ReplicaId(f"r{number}") for number in range(writers)]
        make = _Remembering if remembers else FaultyRecords
        clients = [make(store_of(memory, name), network) for name in names]
        tasks = (
            _add(client, name, [f"{name}-{number}" for number in range(IDS)])
            for client, name in zip(clients, names, strict=True)
        )
        await asyncio.gather(*tasks)
        await network.deliver_all()
        return memory, network.faults

    memory, faults = asyncio.run(add_all())
    content = content_in(memory)
    expected = [f"r{writer}-{number}" for writer in range(writers) for number in range(IDS)]
    assert sorted(map(str, _ids(content.fields))) == expected
    assert (content.count, memory.writes) == (len(expected), len(expected))
    assert faults or seed, "the example with seed 0 has faults"


@given(st.lists(st.sampled_from(Fault), max_size=30))
@settings(max_examples=examples(60))
def test_only_writer_counts_each_answered_change_once(script: list[Fault]) -> None:
    """Without other writers even a change that is not idempotent is exact while reads are answered."""

    async def count() -> tuple[int, int]:
        memory, network = Memory(), Network(script=list(script))
        store, answered, unanswered = FaultyRecords(store_of(memory), network), 0, 0
        while network.script or not answered:
            try:
                version = await update(store, KEY, count_up, Writer(A))
            except StoreUnavailableError:
                # The change may still be done: only the next read after all late effects tells.
                await network.deliver_all()
                record = await store.read(KEY)
                number = 0 if record is None else Content.decode(record.content).fields["number"]
                assert number in (answered, answered + 1)
                answered = int(str(number))
                unanswered += 1
            else:
                answered += 1
                assert version.content is not None
                assert version.content.fields == {"number": answered}
            await network.deliver_all()
        return content_in(memory).count, answered

    stored, answered = asyncio.run(count())
    assert stored == answered


class _Knowing(MemoryRecords):
    """A client that knows something about the record, and counts its calls."""

    def __init__(self, memory: Memory, known: Knowledge | None) -> None:
        super().__init__(memory, A)
        self._known = known
        self.calls: list[str] = []

    def last_known(self, key: Key) -> Knowledge | None:
        """Return what this client knows."""
        return self._known

    async def read(self, key: Key) -> Record | None:
        """Count a read."""
        self.calls.append("read")
        return await super().read(key)

    async def write(self, key: Key, content: bytes, before: Revision | None) -> Record:
        """Count a write."""
        self.calls.append("write")
        return await super().write(key, content, before)

    async def remove(self, key: Key, before: Revision) -> None:
        """Count a removal."""
        self.calls.append("remove")
        await super().remove(key, before)


async def knowing(*, of_write: int | None, writes: int = 2) -> tuple[Memory, _Knowing]:
    """Return a store, and a client that knows the record as it was after a write, or nothing (None)."""
    memory, records = Memory(), [Knowledge()]
    for _ in range(writes):
        await update(store_of(memory, B), KEY, count_up, Writer(B))
        records.append(Knowledge(memory.records[KEY]))
    return memory, _Knowing(memory, None if of_write is None else records[of_write])


@pytest.mark.parametrize(
    ("of_write", "calls"),
    [(2, ["write"]), (1, ["write", "write"]), (0, ["write", "write"]), (None, ["read", "write"])],
)
async def test_known_record_is_written_without_a_read(of_write: int | None, calls: list[str]) -> None:
    """The store reads only for a client that knows nothing; overtaken knowledge costs one more write."""
    memory, store = await knowing(of_write=of_write)
    version = await update(store, KEY, count_up, Writer(A))
    assert (version.content, store.calls) == (Content({"number": 3}, A, count=3), calls)
    assert content_in(memory) == version.content


async def test_unchanged_record_is_read_before_it_counts_as_such() -> None:
    """Knowledge of an earlier time must not decide that nothing is to be done, nor that a change fails."""
    memory, store = await knowing(of_write=1)

    def once(fields: Fields | None) -> Fields | None:
        return None if fields == {"number": 1} else {"number": 9}

    def refuse(fields: Fields | None) -> Fields | None:
        if fields == {"number": 1}:
            raise PermissionError
        return None

    assert (await update(store, KEY, refuse, Writer(A))).content == content_in(memory)
    assert (await update(store, KEY, once, Writer(A))).content == Content({"number": 9}, A, count=3)
    assert store.calls == ["read", "read", "write"]


async def test_fence_that_is_known_too_late_holds() -> None:
    """A former leader is refused by the store's record, whatever this server knew before."""
    memory, store = await knowing(of_write=2)
    await update(store_of(memory, B), KEY, lambda fields: fields, Writer(B, Epoch(4)))
    with pytest.raises(OldEpochError):
        await update(store, KEY, count_up, Writer(A, Epoch(3)))
    assert store.calls == ["write"]


@pytest.mark.parametrize(
    ("of_write", "calls"),
    [
        (2, ["remove"]),
        (1, ["remove", "remove"]),
        (0, ["read", "remove"]),
        (None, ["read", "remove"]),
    ],
)
async def test_known_record_is_removed_without_a_read(of_write: int | None, calls: list[str]) -> None:
    """That a record is gone is believed only after a read, as is that the condition is not fulfilled."""
    memory, store = await knowing(of_write=of_write)
    assert await remove(store, KEY, lambda _: True)
    assert (memory.records, store.calls) == ({}, calls)
    memory, store = await knowing(of_write=1)
    assert not await remove(store, KEY, lambda _: False)
    assert store.calls == ["read"]


async def test_unanswered_write_on_top_of_known_content_is_read_back() -> None:
    """Its bytes show that it was done, so that it is not done twice."""
    for fault in (Fault.BEFORE, Fault.AFTER, Fault.LATER):
        memory, known = await knowing(of_write=2)
        network = Network(script=[fault])
        version = await update(FaultyRecords(known, network), KEY, count_up, Writer(A))
        await network.deliver_all()
        assert version.content == content_in(memory) == Content({"number": 3}, A, count=3)
        assert memory.writes == 3


def test_conflict_names_the_revision_and_no_content() -> None:
    """The message is safe for logs."""
    record = Record(KEY, b"secret", Revision("7"))
    conflict = WriteConflictError(KEY, record)
    assert str(conflict) == "another writer changed tokens/4f1c: revision 7 is there"
    assert str(WriteConflictError(KEY, None)) == "another writer changed tokens/4f1c: the record is gone"
    shown = repr((record, conflict, Version.of(None), Content({"key": "secret"}, A)))
    assert "secret" not in shown
