"""Leadership and presence in a real etcd, where a holder is stopped, cut off or thrown out."""

import asyncio
import contextlib
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from meshwright.etcd.client import Limits
from meshwright.records.contract import Epoch, ReplicaId
from meshwright.records.etcd.store import EtcdRecords
from meshwright.records.update import Writer, update
from tests.kubernetes.etcd.conftest import EtcdStores
from tests.kubernetes.etcd.cut_relay import Relay, relay_to
from tests.kubernetes.etcd.members import RealMember
from tests.kubernetes.etcd.standing_leader import RECORD, TERMS
from tests.tools.deadline import until
from tests.unit.records.test_contract import ended, running

ROOT: Final = Path(__file__).resolve().parents[3]
SHORT: Final = Limits(read=1.0, write=1.0, quiet=0.3, answer=1.0)


@pytest.fixture
async def stores(member: RealMember) -> AsyncIterator[EtcdStores]:
    """Return a mesh whose leases are over after two seconds."""
    async with EtcdStores(member.endpoint, limits=SHORT, terms=TERMS) as made:
        yield made


class Candidate:
    """A replica that stands for leadership in this process; `said` is common to several."""

    def __init__(self, name: str, said: list[str]) -> None:
        self.name = name
        self.said = said
        self.epochs: list[Epoch] = []

    async def work(self, epoch: Epoch) -> None:
        """Record the term, until it is cancelled."""
        self.epochs.append(epoch)
        self.said.append(f"{self.name} leads")
        try:
            await asyncio.Event().wait()
        finally:
            self.said.append(f"{self.name} ended")


@contextlib.contextmanager
def leader_process(member: RealMember, stores: EtcdStores) -> Iterator[subprocess.Popen[str]]:
    """Start a process that stands for leadership, and end it, stopped or not."""
    words = ("-m", "tests.kubernetes.etcd.standing_leader", member.url, stores.layout.trust_domain, "a")
    process = subprocess.Popen(
        [sys.executable, *words], cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        yield process
    finally:
        process.kill()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            stream.close()
        process.wait()


async def line_of(process: subprocess.Popen[str], command: str = "") -> str:
    """Give a process a command, and return its next line."""
    assert process.stdin is not None
    assert process.stdout is not None
    if command:
        process.stdin.write(f"{command}\n")
        process.stdin.flush()
    return (await asyncio.to_thread(process.stdout.readline)).strip()


async def test_stopped_leader_is_succeeded_and_its_late_writes_are_refused(
    member: RealMember, stores: EtcdStores
) -> None:
    """Its lease is over in the store; when the process goes on, neither kind of write succeeds."""
    store = stores.client("b")
    successor = Candidate("b", [])
    with leader_process(member, stores) as process:
        word, first = (await line_of(process)).split()
        assert word == "leads"
        assert await line_of(process, "change") == "done"
        async with running(store.lead(successor.work)):
            process.send_signal(signal.SIGSTOP)
            await until(lambda: successor.epochs)
            [epoch] = successor.epochs
            assert epoch > int(first)
            fenced = await update(store, RECORD, lambda fields: fields, Writer(ReplicaId("b"), epoch))
            process.send_signal(signal.SIGCONT)
            assert await line_of(process) == f"ended {first}"
            assert await line_of(process, "replace") == "WriteConflictError"
            assert await line_of(process, "change") == "OldEpochError"
            record = await store.read(RECORD)
            assert record is not None
            assert record.content == fenced.encoded
            assert successor.said == ["b leads"]


async def test_leader_without_the_store_ends_before_another_begins(
    member: RealMember, stores: EtcdStores
) -> None:
    """A silent network: the leader's work is cancelled by its own clock, and the lease is over later.

    Before, the leader leads for longer than the patience after one renewal.
    """
    said: list[str] = []
    loop = asyncio.get_running_loop()
    first, second = Candidate("a", said), Candidate("b", said)
    async with relay_to(member.endpoint) as relay:
        async with running(stores.client("a", relay.endpoint).lead(first.work)):
            await until(lambda: first.epochs)
            async with running(stores.client("b").lead(second.work)):
                after = loop.time() + TERMS.patience + 0.5
                await until(lambda: loop.time() > after)
                assert said == ["a leads"]
                relay.silence()
                await until(lambda: second.epochs)
                assert said == ["a leads", "a ended", "b leads"]
                relay.heal()
            await until(lambda: len(first.epochs) == 2)
        assert said == ["a leads", "a ended", "b leads", "b ended", "a leads", "a ended"]
    epochs = [first.epochs[0], second.epochs[0], first.epochs[1]]
    assert epochs == sorted(set(epochs))


async def test_short_cut_costs_no_leadership(member: RealMember, stores: EtcdStores) -> None:
    """A leader whose connections are cut renews its lease over new ones, in the same term."""
    candidate = Candidate("a", [])
    async with (
        relay_to(member.endpoint) as relay,
        running(stores.client("a", relay.endpoint).lead(candidate.work)),
    ):
        await until(lambda: candidate.epochs)
        for _ in range(3):
            connections = relay.connections
            relay.cut()
            relay.heal()
            await until(partial(_exceeds, relay, connections))
        assert candidate.said == ["a leads"]


def _exceeds(relay: Relay, connections: int) -> bool:
    return relay.connections > connections


async def test_leader_whose_key_is_deleted_leads_in_a_later_term(
    member: RealMember, stores: EtcdStores
) -> None:
    """An operator can throw a leader out: the work is cancelled, and the replica queues again."""
    candidate = Candidate("a", [])
    async with running(stores.client("a").lead(candidate.work)):
        await until(lambda: candidate.epochs)
        span = stores.layout.candidates
        member.delete(span.start, span.end)
        await until(lambda: len(candidate.epochs) == 2)
        assert candidate.said == ["a leads", "a ended", "a leads"]
    assert candidate.epochs[1] > candidate.epochs[0]


async def test_waiting_candidate_whose_key_is_deleted_queues_again(
    member: RealMember, stores: EtcdStores
) -> None:
    """All candidates are thrown out: both stand again, so that the one leads and the other succeeds it."""
    said: list[str] = []
    candidates = {name: Candidate(name, said) for name in ("a", "b")}
    tasks = {
        name: asyncio.create_task(stores.client(name).lead(candidate.work))
        for name, candidate in candidates.items()
    }
    span = stores.layout.candidates
    await until(lambda: said and member.count(span.start, span.end) == 2)
    member.delete(span.start, span.end)
    await until(lambda: len(said) == 3 and member.count(span.start, span.end) == 2)
    leader, other = (said[-1][0], "b" if said[-1][0] == "a" else "a")
    await ended(tasks.pop(leader))
    await until(lambda: said[-1] == f"{other} leads")
    await ended(tasks.pop(other))


async def test_silent_replica_vanishes_and_comes_back(member: RealMember, stores: EtcdStores) -> None:
    """A replica without the store is gone for the others after its lease, and knows the last state itself."""
    seen: dict[str, list[Mapping[ReplicaId, bytes]]] = {"a": [], "b": []}
    both = {"a": b"a", "b": b"b"}
    async with relay_to(member.endpoint) as relay:
        announced = stores.client("a", relay.endpoint).announce(lambda: b"a", seen["a"].append)
        async with running(announced), running(stores.client("b").announce(lambda: b"b", seen["b"].append)):
            await until(lambda: seen["a"][-1:] == seen["b"][-1:] == [both])
            relay.silence()
            await until(lambda: seen["b"][-1] == {"b": b"b"})
            assert seen["a"][-1] == both
            relay.heal()
            await until(lambda: seen["b"][-1] == both)


async def test_deleted_presence_is_shown_again(member: RealMember, stores: EtcdStores) -> None:
    """A key that somebody deletes is written again by its replica, without a change of the state."""
    seen: list[Mapping[ReplicaId, bytes]] = []
    async with running(stores.client("a").announce(lambda: b"a", seen.append)):
        await until(lambda: seen[-1:] == [{"a": b"a"}])
        assert seen == [{"a": b"a"}], "the first call has this replica"
        count, span = len(seen), stores.layout.replicas
        member.delete(span.start, span.end)
        await until(lambda: seen[count:] == [{}, {"a": b"a"}])


async def test_killed_store_costs_no_presence_or_leadership(own_member: RealMember) -> None:
    """A restart within the time of the leases: the leader goes on, and no replica was away."""
    candidate = Candidate("a", [])
    seen: list[Mapping[ReplicaId, bytes]] = []
    async with EtcdStores(own_member.endpoint, limits=SHORT) as stores:
        store: EtcdRecords = stores.client("a")
        async with running(store.lead(candidate.work)), running(store.announce(lambda: b"a", seen.append)):
            await until(lambda: candidate.epochs and seen[-1:] == [{"a": b"a"}])
            own_member.kill()
            await asyncio.to_thread(own_member.again)
            created = await store.write(RECORD, b"x", None)
            assert await store.read(RECORD) == created
            assert (candidate.said, seen[-1]) == (["a leads"], {"a": b"a"})
