"""Tests of a store that writes again what it has lost, and of starts without the store."""

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

import pytest
from structlog.testing import capture_logs

from meshwright.records.content import Content, Fields
from meshwright.records.contract import (
    Changes,
    Record,
    RecordsError,
    ReplicaId,
    Revision,
    StoreUnavailableError,
)
from meshwright.records.key import Key, key_of
from meshwright.records.memory import MemoryRecords
from meshwright.records.recovery.domain import Domain, newest
from meshwright.records.update import Writer, remove, update
from tests.tools.deadline import until
from tests.unit.records.recovery.lossy_memory import SEAL, LossyMemory, Replica, replica_of, running

ITEMS = key_of("items")
ONE, TWO = key_of("items", "one"), key_of("items", "two")


def mend_item(key: Key, known: Content, present: Content | None, now: datetime) -> Fields | None:
    """Mend records whose marks are never removed, and that may vanish when they are over."""
    if present is None:
        return None if known.fields.get("is_over") else known.fields
    marks = known.fields.get("marks", {})
    assert isinstance(marks, dict)
    there = present.fields.get("marks", {})
    assert isinstance(there, dict)
    return {**present.fields, "marks": {**marks, **there}}


DOMAINS = (
    Domain(ITEMS, mend_item, lambda fields: bool(fields.get("is_revoked"))),
    Domain(SEAL, newest, needed_at_start=True),
)


@pytest.fixture
def memory() -> LossyMemory:
    """Return a store without records."""
    return LossyMemory()


def server(memory: LossyMemory, name: str = "a") -> Replica:
    """Return a server of the store."""
    return replica_of(memory, name, DOMAINS)


def put(memory: LossyMemory, key: Key, count: int = 1, **fields: object) -> None:
    """Write a record as another server does."""
    memory.put(key, Content(fields, ReplicaId("other"), count).encode())


def fields_of(memory: LossyMemory, key: Key) -> Fields:
    """Return the fields of a record as they are in the store."""
    return Content.decode(memory.records[key].content).fields


class CopyInMemory:
    """A place in which the records of a server survive its restart."""

    def __init__(self) -> None:
        self.records: dict[Key, Record] = {}

    def load(self) -> Iterable[Record]:
        """Return all kept records."""
        return tuple(self.records.values())

    def keep(self, changes: Mapping[Key, Record | None]) -> None:
        """Keep changed records, and forget those that are None."""
        for key, record in changes.items():
            if record is None:
                self.records.pop(key, None)
            else:
                self.records[key] = record


class SlowCopy(CopyInMemory):
    """A place whose first call keeps nothing, once `refuses` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.began, self.refuses = threading.Event(), threading.Event()

    def keep(self, changes: Mapping[Key, Record | None]) -> None:
        """Keep changes, but for the first call."""
        if self.began.is_set():
            super().keep(changes)
        self.began.set()
        assert self.refuses.wait(60)


async def test_deleted_records_are_written_again_once(memory: LossyMemory) -> None:
    """No receiver hears of the loss; the log names the keys; two servers write each record once."""
    put(memory, ONE, 3, marks={"x": 1})
    put(memory, TWO, 1, marks={})
    one, two = server(memory, "a"), server(memory, "b")
    async with running(one, two, prefixes=(ITEMS,)):
        await until(lambda: len(one.heard) == len(two.heard) == 2)
        assert one.records.counts() == {ITEMS: 2}
        writes = memory.writes
        with capture_logs() as logs:
            memory.restore({})
            await until(lambda: len(memory.records) == 2)
            await until(lambda: one.heard == two.heard == memory.records)
        assert memory.writes == writes + 2
        assert (fields_of(memory, ONE), fields_of(memory, TWO)) == ({"marks": {"x": 1}}, {"marks": {}})
        assert Content.decode(memory.records[ONE].content).count == 4
        assert [changes.removed for changes in (*one.lists, *two.lists) if changes.removed] == []
        named = [key for log in logs for key in log["keys"]]
        assert sorted(named) == [ONE, TWO]
        assert {log["event"] for log in logs} == {
            "the shared store had lost records, and this server has written them again"
        }


async def test_orderly_removal_does_not_come_back(memory: LossyMemory) -> None:
    """A record that may vanish is removed for all receivers, and is not written again."""
    put(memory, ONE, 1, is_over=True)
    one = server(memory)
    async with running(one, prefixes=(ITEMS,)):
        await until(lambda: ONE in one.heard)
        await remove(one.records, ONE, lambda _: True)
        await until(lambda: ONE not in one.heard)
        put(memory, TWO, 1)
        await until(lambda: TWO in one.heard)
        assert list(memory.records) == [TWO]


async def test_older_content_is_mended_with_what_is_new_in_it(memory: LossyMemory) -> None:
    """A store goes back, and another server writes on: in the end the lost and the new facts are there."""
    put(memory, ONE, 5, marks={"old": 1})
    snapshot = dict(memory.records)
    put(memory, ONE, 6, marks={"old": 1, "lost": 2})
    one = server(memory)
    async with running(one, prefixes=(ITEMS,)):
        await until(lambda: ONE in one.heard)
        one.connection.is_cut = True
        memory.restore(snapshot)
        put(memory, ONE, 6, marks={"old": 1, "new": 3})
        put(memory, ONE, 7, marks={"old": 1, "new": 3, "newer": 4})
        one.connection.heal()
        marks = {"old": 1, "lost": 2, "new": 3, "newer": 4}
        await until(lambda: fields_of(memory, ONE) == {"marks": marks})
        await until(lambda: one.heard == memory.records)


async def test_urgent_records_are_written_first(memory: LossyMemory) -> None:
    """Revocations come before all others, however many there are."""
    for number in range(40):
        put(memory, key_of("items", str(number)), 1, is_revoked=number == 33)
    written: list[Key] = []
    one = server(memory)
    async with running(one, prefixes=(ITEMS,)):
        await until(lambda: len(one.heard) == 40)
        write = memory.put

        def put_noted(key: Key, content: bytes) -> Record:
            written.append(key)
            return write(key, content)

        memory.put = put_noted  # type: ignore[method-assign]
        memory.restore({})
        await until(lambda: len(written) >= 40)  # a record may be written twice
    assert written[0] == key_of("items", "33")


@pytest.mark.parametrize(
    "content", [b"damaged", b'{"form": 2, "count": 9, "epoch": 0, "by": "b", "fields": {}}']
)
async def test_damaged_or_newer_record_is_left_as_it_is(memory: LossyMemory, content: bytes) -> None:
    """The receivers keep the last readable content. A remark names the record until it can be read again."""
    put(memory, ONE, 1, marks={"x": 1})
    one = server(memory)
    async with running(one, prefixes=(ITEMS,)):
        await until(lambda: ONE in one.heard)
        before = one.contents()
        with capture_logs() as logs:
            memory.put(ONE, content)
            put(memory, TWO, 1)
            await until(lambda: TWO in one.heard)
        assert memory.records[ONE].content == content
        assert one.contents()[ONE] == before[ONE]
        [remark] = one.records.remarks()
        assert remark.startswith("shared record items/one cannot be read, and is left as it is: ")
        assert [log["key"] for log in logs] == [ONE]
        put(memory, ONE, 2, marks={"x": 1, "y": 2})
        await until(lambda: one.records.remarks() == ())
        assert one.heard[ONE] == memory.records[ONE]


async def test_store_that_refuses_writes_is_a_remark(memory: LossyMemory) -> None:
    """The record is tried again, and written as soon as the store takes it."""
    put(memory, ONE, 1)
    one = server(memory)
    async with running(one, prefixes=(ITEMS,)):
        await until(lambda: ONE in one.heard)

        async def refused(key: Key, content: bytes, before: Revision | None) -> Record:
            raise RecordsError("RBAC grants no `create`")

        write, one.connection.write = one.connection.write, refused  # type: ignore[method-assign]
        memory.drop(ONE)
        await until(
            lambda: (
                one.records.remarks()
                == ("1 lost records are not written again yet: RBAC grants no `create`",)
            )
        )
        one.connection.write = write  # type: ignore[method-assign]
        await until(lambda: ONE in memory.records)
        await until(lambda: one.records.remarks() == ())


async def test_own_write_is_known_before_it_is_followed(memory: LossyMemory) -> None:
    """A revocation that was answered is not undone by a snapshot that is restored at once."""
    put(memory, ONE, 1, marks={})
    one = server(memory)
    async with running(one, prefixes=(ITEMS,)):
        await until(lambda: ONE in one.heard)
        snapshot, one.connection.is_cut = dict(memory.records), True
        await update(one.records, ONE, lambda _: {"marks": {"revoked": 1}}, Writer(ReplicaId("a")))
        memory.restore(snapshot)
        one.connection.heal()
        await until(lambda: fields_of(memory, ONE) == {"marks": {"revoked": 1}})


async def test_write_during_the_healing_is_not_forgotten(memory: LossyMemory) -> None:
    """A record is lost again between an own write and the healing of the loss before."""
    put(memory, ONE, 1, marks={"x": 1})
    one = server(memory)
    async with running(one, prefixes=(ITEMS,)):
        await until(lambda: ONE in one.heard)
        write = one.connection.write

        async def late(key: Key, content: bytes, before: Revision | None) -> Record:
            one.connection.write = write  # type: ignore[method-assign]
            own = Writer(ReplicaId("a"))
            await update(one.records, ONE, lambda _: {"marks": {"x": 1, "y": 2}}, own)
            memory.drop(ONE)
            return await write(key, content, before)

        one.connection.write = late  # type: ignore[method-assign]
        memory.drop(ONE)
        await until(lambda: ONE in memory.records and fields_of(memory, ONE) == {"marks": {"x": 1, "y": 2}})


async def test_start_without_the_store_begins_with_the_kept_records(memory: LossyMemory) -> None:
    """Only records needed for the start are read. When the store is back, the difference is delivered."""
    put(memory, SEAL, 1, mesh="ours")
    put(memory, ONE, 1, marks={"x": 1})
    put(memory, TWO, 1, is_over=True)
    await _fails_without_kept_records(memory)
    local_copy = CopyInMemory()
    first = replica_of(memory, "a", DOMAINS, local_copy)
    async with running(first, prefixes=(ITEMS, SEAL)):
        await until(lambda: len(first.heard) == 3)
        await first.records.keep_now()
    again = replica_of(memory, "a2", DOMAINS, local_copy)
    again.connection.is_away = True
    listing = asyncio.Event()
    follow = again.connection.follow

    async def followed(prefix: Key, receive: Callable[[Changes], None]) -> None:
        await listing.wait()
        await follow(prefix, receive)

    again.connection.follow = followed  # type: ignore[method-assign]
    with capture_logs() as logs:
        async with running(again, prefixes=(ITEMS, SEAL)):
            await until(lambda: len(again.heard) == 3)
            assert await again.records.read(SEAL) == memory.records[SEAL]
            with pytest.raises(StoreUnavailableError):
                await again.records.read(ONE)
            count = len(again.lists)
            put(memory, ONE, 2, marks={"x": 1, "y": 2})
            memory.drop(TWO)
            again.connection.is_away = False
            listing.set()
            await until(lambda: again.heard == memory.records)
            assert again.lists[count:] == [Changes((memory.records[ONE],), (TWO,))]
            again.connection.is_away = True
            with pytest.raises(StoreUnavailableError):
                await again.records.read(SEAL)
            again.connection.is_away = False
    events = [log["event"] for log in logs]
    assert events == [
        "the shared store does not answer; the server starts with the records that it followed last"
    ]


async def test_cancelled_call_forgets_no_change(memory: LossyMemory) -> None:
    """The call may not have begun, so the next one keeps its changes as well."""
    put(memory, ONE, 1, marks={"x": 1})
    local_copy = SlowCopy()
    one = replica_of(memory, "a", DOMAINS, local_copy)
    async with running(one, prefixes=(ITEMS,)):
        await until(lambda: ONE in one.heard)
        call = asyncio.create_task(one.records.keep_now())
        await until(local_copy.began.is_set)
        call.cancel()
        local_copy.refuses.set()
        with pytest.raises(asyncio.CancelledError):
            await call
        await one.records.keep_now()
    assert local_copy.records == {ONE: memory.records[ONE]}


async def _fails_without_kept_records(memory: LossyMemory) -> None:
    """Check that a server with an empty directory has no list while the store is away."""
    one = server(memory)
    one.connection.is_away = True
    async with running(one, prefixes=()):
        with pytest.raises(StoreUnavailableError):
            await one.records.read(SEAL)


async def test_restarted_server_heals_what_it_had_followed(memory: LossyMemory) -> None:
    """All servers were down while the store was restored: the kept records are written again."""
    put(memory, SEAL, 1, mesh="ours")
    put(memory, ONE, 1, marks={})
    snapshot = dict(memory.records)
    put(memory, ONE, 2, marks={"revoked": 1})
    local_copy = CopyInMemory()
    for turn in range(2):
        one = replica_of(memory, f"a{turn}", DOMAINS, local_copy)
        async with running(one, prefixes=(ITEMS, SEAL)):
            await until(lambda: ONE in one.heard)  # noqa: B023
            await until(lambda: fields_of(memory, ONE) == {"marks": {"revoked": 1}})
            await one.records.keep_now()
        memory.restore(snapshot)


@pytest.mark.parametrize("is_empty", [True, False])
async def test_kept_records_of_another_mesh_are_not_written(memory: LossyMemory, is_empty: bool) -> None:
    """After a change of the settings the other store stays as it is, also if it has no mesh."""
    put(memory, SEAL, 7, mesh="ours")
    put(memory, ONE, 7, marks={"x": 1})
    local_copy = CopyInMemory()
    one = replica_of(memory, "a", DOMAINS, local_copy)
    async with running(one, prefixes=(ITEMS, SEAL)):
        await until(lambda: len(one.heard) == 2)
        await one.records.keep_now()
    other = LossyMemory()
    if not is_empty:
        put(other, SEAL, 1, mesh="theirs")
    before = dict(other.records)
    two = replica_of(other, "b", DOMAINS, local_copy)
    async with running(two, prefixes=(ITEMS, SEAL)):
        await until(lambda: len(two.lists) == 2)
        assert two.heard == other.records == before
        await two.records.keep_now()
    assert local_copy.records == before


async def test_store_of_another_mesh_that_comes_back_is_not_written(memory: LossyMemory) -> None:
    """A server that began without it does not mix the meshes: its healing ends with a sentence."""
    put(memory, SEAL, 7, mesh="ours")
    put(memory, ONE, 7, marks={"x": 1})
    local_copy = CopyInMemory()
    local_copy.records = dict(memory.records)
    other = LossyMemory()
    put(other, SEAL, 1, mesh="theirs")
    before = dict(other.records)
    one = replica_of(other, "a", DOMAINS, local_copy)
    one.connection.is_away = True
    await one.records.begin()
    one.connection.is_away = False
    following = asyncio.ensure_future(one.records.follow(ITEMS, one.receive))
    with pytest.raises(
        RecordsError, match="the store is not the one of the mesh that this server has followed"
    ):
        await one.records.heal()
    following.cancel()
    assert other.records == before


async def test_records_without_a_domain_are_passed_through(memory: LossyMemory) -> None:
    """Objects of users, and presence, are removed for good by whoever removes them."""
    other = key_of("objects", "x")
    put(memory, other, 1)
    one = server(memory)
    async with running(one, prefixes=(key_of("objects"),)):
        await until(lambda: other in one.heard)
        memory.drop(other)
        await until(lambda: not one.heard)
    assert memory.records == {}
    assert await MemoryRecords(memory, ReplicaId("x")).read(other) is None
