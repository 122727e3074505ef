"""Tests of the forgetting of certificates: whatever happens at the same time, nothing in use is lost."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from certs.ledger.entry import LedgerEntry, Stamp, StampDetail
from certs.ledger.records.entries import SharedEntries
from certs.ledger.records.fields import PROXIES, entries_in, key_of_proxy
from certs.ledger.records.pruning import kept
from certs.ledger.records.writes import RecordWrites
from meshwright.records.content import Content
from meshwright.records.contract import (
    Changes,
    Record,
    RecordsError,
    ReplicaId,
    Revision,
    StoreUnavailableError,
)
from meshwright.records.key import Key
from meshwright.records.memory import Memory, MemoryRecords
from meshwright.records.update import Writer
from tests.tools.hypothesis_profiles import examples
from tests.tools.shared_records import Fault
from tests.unit.certs.ledger.entries import START, new_entry, proxy

NAME = proxy("u1")
KEY = key_of_proxy(NAME)
LATER = START + timedelta(days=400)
"""A time at which certificates from the start have ended, as test entries are valid for a year."""

STAYING = partial(kept, now=LATER, has_workload=False)


class InterruptedRecords(MemoryRecords):
    """A client of a store, for which something may happen before a write or removal."""

    interrupt: Callable[[], Awaitable[Fault]] | None = None

    async def write(self, key: Key, content: bytes, before: Revision | None) -> Record:
        """Write a record after the interruption, perhaps without an answer."""
        fault = await self._interrupted()
        record = await super().write(key, content, before)
        _answer(fault)
        return record

    async def remove(self, key: Key, before: Revision) -> None:
        """Remove a record after the interruption, perhaps without an answer."""
        fault = await self._interrupted()
        await super().remove(key, before)
        _answer(fault)

    async def _interrupted(self) -> Fault:
        fault = Fault.NONE if self.interrupt is None else await self.interrupt()
        if fault is Fault.BEFORE:
            raise StoreUnavailableError("the request was lost")
        return fault


def _answer(fault: Fault) -> None:
    if fault is Fault.AFTER:
        raise StoreUnavailableError("the answer was lost")


class Server:
    """A server on the event loop of the test."""

    def __init__(self, memory: Memory, name: str) -> None:
        self.memory = memory
        self.entries = SharedEntries()
        self.store = InterruptedRecords(memory, ReplicaId(name))
        self.writes = RecordWrites(self.store, Writer(ReplicaId(name)), self.entries)

    def hear(self, changes: Changes) -> None:
        """Take what the store has."""
        for record in changes.records:
            self.entries.take(record.key, record)
        for key in changes.removed:
            self.entries.take(key, None)

    async def follow(self) -> None:
        """Follow the store until cancelled."""
        await self.store.follow(PROXIES, self.hear)


def stored(memory: Memory) -> tuple[LedgerEntry, ...] | None:
    """Return the certificates in the store, None without a record."""
    record = memory.records.get(KEY)
    return None if record is None else entries_in(NAME, Content.decode(record.content).fields)


async def with_servers(
    work: Callable[[Server, Server], Awaitable[None]], *entries: LedgerEntry
) -> tuple[Memory, Server, Server]:
    """Run work with two servers that follow a store with these certificates; return all three."""
    memory = Memory()
    leader, other = Server(memory, "leader"), Server(memory, "other")
    for entry in entries:
        await other.writes.record(entry, None)
    async with asyncio.TaskGroup() as group:
        following = [group.create_task(server.follow()) for server in (leader, other)]
        await asyncio.sleep(0)
        await work(leader, other)
        await asyncio.sleep(0)
        for task in following:
            task.cancel()
    return memory, leader, other


async def test_record_of_a_proxy_that_is_gone_is_removed() -> None:
    """Both servers forget the proxy, and the other one does not take the removal for a loss."""

    async def work(leader: Server, other: Server) -> None:
        del other
        assert await leader.writes.forget(KEY, STAYING, removes=True)

    memory, leader, other = await with_servers(work, new_entry("aa"))
    assert stored(memory) is None
    assert [server.entries.all() for server in (leader, other)] == [(), ()]
    assert [server.entries.known.behind() for server in (leader, other)] == [frozenset(), frozenset()]


async def test_ended_certificates_of_a_living_proxy_are_dropped() -> None:
    """The record stays with the certificate in force, and with facts of newer versions."""
    ended, current = new_entry("aa"), new_entry("bb", at=LATER)

    async def work(leader: Server, other: Server) -> None:
        del other
        content = Content.decode(leader.memory.records[KEY].content)
        more = replace(content, fields={**content.fields, "more": 1}, count=content.count + 1)
        leader.memory.put(KEY, more.encode())
        assert await leader.writes.forget(KEY, STAYING, removes=True)
        assert not await leader.writes.forget(KEY, STAYING, removes=True)

    memory, leader, other = await with_servers(work, ended, current)
    assert stored(memory) == (current,)
    assert Content.decode(memory.records[KEY].content).fields["more"] == 1
    assert [server.entries.all() for server in (leader, other)] == [(current,), (current,)]


async def test_record_of_a_known_workload_stays_without_certificates() -> None:
    """Other facts of the proxy, for example the policy that it rejects, stay in the record."""

    async def work(leader: Server, other: Server) -> None:
        del other
        assert await leader.writes.forget(KEY, partial(kept, now=LATER), removes=False)

    memory, _, _ = await with_servers(work, new_entry("aa"))
    assert stored(memory) == ()


async def test_lost_certificate_is_not_forgotten() -> None:
    """A record that the store has lost is written again first; its content is not judged meanwhile."""

    async def work(leader: Server, other: Server) -> None:
        del other
        leader.memory.drop(KEY)
        assert leader.entries.known.behind() == {KEY}
        assert not await leader.writes.forget(KEY, STAYING, removes=True)
        assert leader.entries.known.behind() == {KEY}

    await with_servers(work, new_entry("aa", at=LATER))


@settings(max_examples=examples(40))
@given(
    number=st.integers(1, 4),
    fault=st.sampled_from(Fault),
    old=st.integers(1, 3),
    revokes=st.booleans(),
)
async def test_what_another_server_writes_at_that_moment_stays(
    number: int, fault: Fault, old: int, revokes: bool
) -> None:
    """At each call of the leader, with its answer lost or not, another proxy joins or is revoked."""
    entries = [new_entry(f"a{index}") for index in range(old)]
    news = new_entry("bb", at=LATER)
    happened = list[str]()

    async def work(leader: Server, other: Server) -> None:
        calls = itertools.count(1)

        async def interrupt() -> Fault:
            if next(calls) != number:
                return Fault.NONE
            known = other.entries.entry("a0")
            if not revokes:
                await other.writes.record(news, None)
                happened.append("bb")
            elif known is not None:
                other.entries.stamps.note(known, Stamp.REVOKED, StampDetail(LATER))
                await other.writes.write((KEY,))
                happened.append("a0")
            return fault

        leader.store.interrupt = interrupt
        for _ in range(3):
            with suppress(RecordsError):
                await leader.writes.forget(KEY, STAYING, removes=True)

    memory, leader, other = await with_servers(work, *entries)
    left = [entry.serial for entry in stored(memory) or ()]
    assert left == happened
    for server in (leader, other):
        assert [entry.serial for entry in server.entries.all()] == happened
        assert server.entries.known.behind() == frozenset()
