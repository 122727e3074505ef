"""Tests of compared removals: with changes by others in between, and with answers that are lost."""

import pytest

from meshwright.records.content import Content, Fields, UnreadableContentError
from meshwright.records.contract import ReplicaId, StoreUnavailableError
from meshwright.records.key import Key, key_of
from meshwright.records.memory import Memory, MemoryRecords
from meshwright.records.update import remove
from tests.tools.shared_records import Fault, FaultyRecords

KEY = key_of("tokens", "a")


def _store(memory: Memory, *faults: Fault) -> FaultyRecords:
    """Return a client whose removals have these faults in turn."""
    rest = iter((*faults, *[Fault.NONE] * 9))
    return FaultyRecords(MemoryRecords(memory, ReplicaId("a")), lambda: next(rest))


def _memory(**fields: object) -> Memory:
    memory = Memory()
    memory.put(KEY, Content(fields, ReplicaId("a")).encode())
    return memory


def _is_old(fields: Fields) -> bool:
    return fields.get("age") == "old"


async def test_record_is_removed_only_under_its_condition() -> None:
    """A record that is not there counts as removed."""
    old, new, none = _memory(age="old"), _memory(age="new"), Memory()
    gone = [await remove(_store(memory), KEY, _is_old) for memory in (old, new, none)]
    assert gone == [True, False, True]
    assert [list(memory.records) for memory in (old, new, none)] == [[], [KEY], []]


@pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.AFTER])
async def test_removal_with_a_lost_request_or_answer_is_finished(fault: Fault) -> None:
    """The record is read again, and is gone, or is removed once more."""
    memory = _memory(age="old")
    assert await remove(_store(memory, fault), KEY, _is_old)
    assert memory.records == {}


async def test_store_that_answers_only_reads_is_unavailable() -> None:
    """A removal is tried three times."""
    memory = _memory(age="old")
    faults = [Fault.BEFORE] * 9
    store = FaultyRecords(MemoryRecords(memory, ReplicaId("a")), faults.pop)
    with pytest.raises(StoreUnavailableError, match="lost the request"):
        await remove(store, KEY, _is_old)
    assert (list(memory.records), len(faults)) == ([KEY], 6)


async def test_record_that_another_server_made_new_again_stays() -> None:
    """The other write comes between the look and the removal."""
    memory = _memory(age="old")

    def overtake() -> Fault:
        memory.put(KEY, Content({"age": "new"}, ReplicaId("b"), 2).encode())
        return Fault.NONE

    store = FaultyRecords(MemoryRecords(memory, ReplicaId("a")), overtake)
    assert not await remove(store, KEY, _is_old)
    assert list(memory.records) == [KEY]


async def test_unreadable_record_and_unavailable_store_are_errors() -> None:
    """An unreadable record is left as it is."""
    memory = Memory()
    memory.put(Key(KEY), b"{}")
    with pytest.raises(UnreadableContentError):
        await remove(_store(memory), KEY, _is_old)
    store = _store(memory)
    store.is_away = True
    with pytest.raises(StoreUnavailableError):
        await remove(store, KEY, _is_old)
    assert list(memory.records) == [KEY]
