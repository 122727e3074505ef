"""Feeds of changes over faults of a real etcd: nothing is lost or delivered twice.

Killed members, cut and silent networks, compacted history, and stores that were restored from a snapshot.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest
import structlog
from structlog.typing import EventDict

from meshwright.etcd.client import Limits
from meshwright.records.contract import Changes, Record
from meshwright.records.etcd.store import EtcdRecords
from meshwright.records.key import Key, key_of
from tests.kubernetes.etcd.conftest import EtcdStores
from tests.kubernetes.etcd.cut_relay import Relay, relay_to
from tests.kubernetes.etcd.members import RealMember, etcd
from tests.tools.deadline import until
from tests.unit.records.test_contract import Follower, following

SHORT: Final = Limits(quiet=0.3, answer=1.0)
LISTED: Final = "keys of etcd are listed again"
KEPT, CHANGED, GONE, NEW = (key_of("tokens", word) for word in ("kept", "changed", "gone", "new"))


@pytest.fixture
async def relay(member: RealMember) -> AsyncIterator[Relay]:
    """Return a relay to the shared member."""
    async with relay_to(member.endpoint) as made:
        yield made


@pytest.fixture
async def stores(member: RealMember) -> AsyncIterator[EtcdStores]:
    """Return a mesh without records in the shared etcd."""
    async with EtcdStores(member.endpoint, limits=SHORT) as made:
        yield made


@pytest.fixture
def logs() -> Iterator[list[EventDict]]:
    """Return what was logged so far."""
    with structlog.testing.capture_logs() as entries:
        yield entries


def count_of(event: str, logs: list[EventDict]) -> int:
    """Return how often an event was logged by any client."""
    return [entry["event"] for entry in logs].count(event)


async def three_records(store: EtcdRecords) -> tuple[Record, Record, Record]:
    """Create the records that a test keeps, changes and removes."""
    kept = await store.write(KEPT, b"kept", None)
    changed = await store.write(CHANGED, b"one", None)
    return kept, changed, await store.write(GONE, b"gone", None)


async def test_follower_goes_on_after_a_killed_member(own_member: RealMember, logs: list[EventDict]) -> None:
    """The watch is resumed: what was known is not delivered again, and nothing is listed again."""
    async with EtcdStores(own_member.endpoint, limits=SHORT) as stores:
        store = stores.client("a")
        kept, changed, _ = await three_records(store)
        async with following(stores.client("b"), "tokens") as follower:
            first = await store.write(NEW, b"new", None)
            await until(lambda: len(follower.calls) == 2)
            own_member.kill()
            await asyncio.to_thread(own_member.again)
            second = await store.write(CHANGED, b"two", changed.revision)
            await store.remove(KEPT, kept.revision)
            await until(lambda: KEPT not in follower.known)
            records = [record for changes in follower.calls[1:] for record in changes.records]
            assert records == [first, second]
            assert [key for changes in follower.calls for key in changes.removed] == [KEPT]
    assert count_of(LISTED, logs) == 0
    assert count_of("changes in etcd cannot be followed now", logs) == 1
    assert count_of("changes in etcd are followed again", logs) == 1


async def test_missed_changes_come_after_a_cut(
    stores: EtcdStores, relay: Relay, logs: list[EventDict]
) -> None:
    """The watch is resumed at the position before the cut, without a list."""
    store = stores.client("a")
    _, changed, gone = await three_records(store)
    async with following(stores.client("b", relay.endpoint), "tokens") as follower:
        relay.cut()
        second = await store.write(CHANGED, b"two", changed.revision)
        third = await store.write(CHANGED, b"three", second.revision)
        await store.remove(GONE, gone.revision)
        new = await store.write(NEW, b"new", None)
        assert len(follower.calls) == 1
        relay.heal()
        await until(lambda: len(follower.calls) > 1)
        assert follower.known == {KEPT: follower.known[KEPT], CHANGED: third, NEW: new}
        assert follower.calls[1:] == [Changes((third, new), (GONE,))]
    assert count_of(LISTED, logs) == 0


async def test_compacted_history_is_replaced_by_the_difference(
    stores: EtcdStores, relay: Relay, member: RealMember, logs: list[EventDict]
) -> None:
    """A follower that was away for too long gets one difference, with neither old nor equal records."""
    store = stores.client("a")
    _, changed, gone = await three_records(store)
    async with following(stores.client("b", relay.endpoint), "tokens") as follower:
        relay.cut()
        second = await store.write(CHANGED, b"two", changed.revision)
        await store.remove(GONE, gone.revision)
        new = await store.write(NEW, b"new", None)
        member.compact()
        relay.heal()
        await until(lambda: len(follower.calls) > 1)
        assert follower.calls[1:] == [Changes((second, new), (GONE,))]
        last = await store.write(NEW, b"last", new.revision)
        await until(lambda: len(follower.calls) > 2)
        assert follower.calls[2:] == [Changes((last,))]
    assert count_of(LISTED, logs) == 1


async def test_compaction_without_a_difference_delivers_nothing(
    stores: EtcdStores, relay: Relay, member: RealMember, logs: list[EventDict]
) -> None:
    """The list after a compaction equals the known records, so that the receiver is not called."""
    store = stores.client("a")
    await three_records(store)
    async with following(stores.client("b", relay.endpoint), "tokens") as follower:
        relay.cut()
        for number in range(3):
            await store.write(key_of("others", str(number)), b"x", None)
        member.compact()
        relay.heal()
        await until(lambda: count_of(LISTED, logs))
        new = await store.write(NEW, b"new", None)
        await until(lambda: len(follower.calls) > 1)
        assert follower.calls[1:] == [Changes((new,))]


async def test_silent_watch_is_given_up(stores: EtcdStores, relay: Relay, member: RealMember) -> None:
    """A cut that no packet shows costs a question and its patience; then the next member is asked."""
    follows = stores.client("b", relay.endpoint, member.endpoint)
    async with following(follows, "tokens") as follower:
        relay.silence()
        new = await stores.client("a").write(NEW, b"new", None)
        await until(lambda: follower.known == {NEW: new}, 8)  # gRPC's own pings take 15 s
        assert follower.calls == [Changes(), Changes((new,))]


async def test_quiet_watch_is_not_given_up(stores: EtcdStores, relay: Relay, logs: list[EventDict]) -> None:
    """A member that says its progress is there: the watch stays, over many questions."""

    async def on_time() -> bool:
        await asyncio.sleep(SHORT.quiet + SHORT.answer)
        return True

    async with following(stores.client("b", relay.endpoint), "tokens") as follower:
        connections = relay.connections
        await until(on_time)
        assert (relay.connections, logs) == (connections, [])
        new = await stores.client("a").write(NEW, b"new", None)
        await until(lambda: follower.known == {NEW: new})


@pytest.mark.parametrize("later", [0, 20])
async def test_restored_store_gives_its_difference(
    own_member: RealMember, tmp_path: Path, later: int, logs: list[EventDict]
) -> None:
    """Changes after the snapshot are taken back, also where the store has overtaken the lost revisions.

    The record that is written first after the restoration has a revision that was there before, with another
    content.
    """
    async with (
        relay_to(own_member.endpoint) as relay,
        EtcdStores(own_member.endpoint, limits=SHORT) as stores,
    ):
        store = stores.client("a")
        kept, changed, gone = await three_records(store)
        own_member.kill()
        own_member.copy_data(tmp_path / "copy")
        await asyncio.to_thread(own_member.again)
        async with following(stores.client("b", relay.endpoint), "tokens") as follower:
            lost = await store.write(CHANGED, b"two", changed.revision)
            await store.remove(GONE, gone.revision)
            new = await store.write(NEW, b"new", None)
            await until(lambda: follower.known == {KEPT: kept, CHANGED: lost, NEW: new})
            calls = len(follower.calls)
            relay.cut()
            own_member.kill()
            own_member.restore(tmp_path / "copy")
            await asyncio.to_thread(own_member.again)
            other = await store.write(CHANGED, b"three", changed.revision)
            assert other.revision == lost.revision
            for number in range(later):
                await store.write(key_of("others", str(number)), b"x", None)
            relay.heal()
            await until(lambda: len(follower.calls) > calls)
            assert follower.calls[calls:] == [Changes((other, gone), (NEW,))]
            again = await store.write(NEW, b"again", None)
            await until(lambda: follower.known == {KEPT: kept, CHANGED: other, GONE: gone, NEW: again})
    assert count_of(LISTED, logs) == 1


async def test_other_store_gives_its_difference(own_member: RealMember, tmp_path: Path) -> None:
    """Behind the same address is another cluster, with higher revisions: its records are listed."""
    with etcd(tmp_path / "other", cluster="other") as [other]:
        async with (
            relay_to(own_member.endpoint) as relay,
            EtcdStores(own_member.endpoint, limits=SHORT) as stores,
        ):
            kept, changed, _ = await three_records(stores.client("a"))
            there = stores.client("c", other.endpoint)
            assert await there.write(KEPT, kept.content, None) == kept
            for number in range(5):
                await there.write(key_of("others", str(number)), b"x", None)
            other_changed = await there.write(CHANGED, b"other", None)
            assert int(other_changed.revision) > int(changed.revision)
            async with following(stores.client("b", relay.endpoint), "tokens") as follower:
                relay.cut()
                relay.turn_to(other.endpoint)
                relay.heal()
                await until(lambda: len(follower.calls) > 1)
                assert follower.calls[1:] == [Changes((other_changed,), (GONE,))]


async def test_many_records_are_listed_at_one_revision(stores: EtcdStores) -> None:
    """A list of several pages is one call, while records are changed, and the changes follow."""
    store = stores.client("a")
    keys = [key_of("proxies", f"p{number:04}") for number in range(2500)]
    made: dict[Key, Record] = {}
    for start in range(0, len(keys), 100):
        records = await asyncio.gather(*(store.write(key, b"1", None) for key in keys[start : start + 100]))
        made |= {record.key: record for record in records}

    async def change_all() -> dict[Key, Record]:
        return {key: await store.write(key, b"2", made[key].revision) for key in keys[::25]}

    follower = Follower()
    following_all = asyncio.create_task(stores.client("b").follow(key_of("proxies"), follower.receive))
    changed = await change_all()
    await until(lambda: follower.known == {**made, **changed})
    assert len(follower.calls[0].records) == len(keys)
    assert len({record.key for record in follower.calls[0].records}) == len(keys)
    following_all.cancel()
    await asyncio.gather(following_all, return_exceptions=True)
