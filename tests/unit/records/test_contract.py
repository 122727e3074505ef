"""Suite of the contract of records, for every store; here for the store in memory.

A store's own tests inherit both parts, with a fixture `stores`:
`class TestKubernetes(RecordContract, ReplicaContract)`. A second place of the records of one store inherits
the first part alone, because presence and leadership are the same there.
"""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Coroutine, Mapping, Sized
from functools import partial
from typing import Any, Final, Protocol

import pytest
import structlog

from meshwright.records.contract import (
    LARGEST_CONTENT,
    Changes,
    Epoch,
    Record,
    RecordStore,
    ReplicaId,
    Revision,
    TooLargeError,
    WriteConflictError,
)
from meshwright.records.key import Key, key_of
from meshwright.records.memory import Memory, MemoryRecords
from tests.tools.deadline import until

CART: Final = key_of("proxies", "shop", "cart", "9f0c")
WRITERS: Final = 8
WRITES: Final = 5
"""Writes of each of the concurrent writers."""
TERMS: Final = 6
"""Terms of leadership that are observed."""


class Stores(Protocol):
    """One new store without records, and its clients."""

    def client(self, replica: str) -> RecordStore:
        """Return the client of a replica."""


class Follower:
    """Receiver of a feed: the calls so far, and the records that they lead to."""

    def __init__(self) -> None:
        self.calls: list[Changes] = []

    def receive(self, changes: Changes) -> None:
        """Record a call."""
        self.calls.append(changes)

    @property
    def known(self) -> dict[Key, Record]:
        """Return the records after all calls."""
        known: dict[Key, Record] = {}
        for changes in self.calls:
            known |= {record.key: record for record in changes.records}
            for key in changes.removed:
                known.pop(key, None)
        return known

    def contents_of(self, key: Key) -> list[bytes | None]:
        """Return the forms of one record in the order of the calls; None for its removal."""
        forms: list[bytes | None] = []
        for changes in self.calls:
            forms += [record.content for record in changes.records if record.key == key]
            forms += [None for removed in changes.removed if removed == key]
        return forms


@contextlib.asynccontextmanager
async def following(store: RecordStore, *prefix: str) -> AsyncIterator[Follower]:
    """Follow a prefix from its first list on, until the end of the block."""
    follower = Follower()
    async with running(store.follow(key_of(*prefix), follower.receive)):
        await until(lambda: follower.calls)
        yield follower


@contextlib.asynccontextmanager
async def running(endless: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run a coroutine that ends only by cancellation; cancel it at the end of the block."""
    task = asyncio.create_task(endless)
    try:
        yield
        assert not task.done(), task.result()
    finally:
        await ended(task)


async def ended(task: asyncio.Task[None]) -> None:
    """Cancel a task, and wait until it is over."""
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


class RecordContract:
    """The contract of records and feeds, from the caller's point of view. Each test has a new `stores`."""

    async def test_missing_record_is_none(self, stores: Stores) -> None:
        """A key without a record is no error."""
        assert await stores.client("a").read(CART) is None

    async def test_created_record_is_read_by_other_replicas(self, stores: Stores) -> None:
        """The record has key and content, and its revision is the one that `write` returned."""
        created = await stores.client("a").write(CART, b"one", None)
        assert (created.key, created.content) == (CART, b"one")
        assert await stores.client("b").read(CART) == created

    async def test_replaced_record_has_a_new_revision(self, stores: Stores) -> None:
        """Another replica replaces the record with the revision that it has read."""
        created = await stores.client("a").write(CART, b"one", None)
        replaced = await stores.client("b").write(CART, b"two", created.revision)
        assert replaced == Record(CART, b"two", replaced.revision)
        assert replaced.revision != created.revision
        assert await stores.client("a").read(CART) == replaced

    async def test_removed_record_can_be_created_anew(self, stores: Stores) -> None:
        """The new record has a revision that the removed one never had."""
        store = stores.client("a")
        first = await store.write(CART, b"one", None)
        await stores.client("b").remove(CART, first.revision)
        assert await store.read(CART) is None
        second = await store.write(CART, b"one", None)
        assert second.revision != first.revision
        assert await store.read(CART) == second

    async def test_any_bytes_are_a_content(self, stores: Stores) -> None:
        """Contents are not texts, and may be empty."""
        store = stores.client("a")
        for number, content in enumerate((b"", bytes(range(256)), b'{"a": "\xc3\xa9"}\n')):
            await store.write(key_of("any", str(number)), content, None)
            read = await stores.client("b").read(key_of("any", str(number)))
            assert read is not None
            assert read.content == content

    async def test_similar_keys_are_different_records(self, stores: Stores) -> None:
        """Keys differ by case, by the place of a slash, and by characters that other names lack."""
        texts = ("a b c", "a b.c", "a.b c", "a.b.c", "a b-c", "a b_c", "A b c", "a b")
        words = [*map(str.split, texts), ["a" * 253], ["a" * 253, "a" * 253], ["A" * 253, "a" * 253]]
        store = stores.client("a")
        keys = [key_of(*item) for item in words]
        created = {key: await store.write(key, key.encode(), None) for key in keys}
        assert {key: await store.read(key) for key in keys} == created
        async with following(stores.client("b"), "a") as follower:
            within = {key: record for key, record in created.items() if key.startswith("a/")}
            assert follower.known == within

    async def test_creation_in_place_of_a_record_is_a_conflict(self, stores: Stores) -> None:
        """The error has the record that is there, which stays."""
        created = await stores.client("a").write(CART, b"one", None)
        with pytest.raises(WriteConflictError) as caught:
            await stores.client("b").write(CART, b"two", None)
        assert caught.value.current == created
        assert await stores.client("b").read(CART) == created

    async def test_replacement_of_a_missing_record_is_a_conflict(self, stores: Stores) -> None:
        """A revision of a removed record, or of another record, creates nothing."""
        store = stores.client("a")
        removed = await store.write(CART, b"one", None)
        await store.remove(CART, removed.revision)
        other = await store.write(key_of("other"), b"one", None)
        for revision in (removed.revision, other.revision):
            with pytest.raises(WriteConflictError) as caught:
                await store.write(CART, b"two", revision)
            assert caught.value.current is None
            assert await store.read(CART) is None

    async def test_replacement_of_an_older_revision_is_a_conflict(self, stores: Stores) -> None:
        """The error has the present record, also if its content equals the caller's."""
        store = stores.client("a")
        first = await store.write(CART, b"one", None)
        second = await stores.client("b").write(CART, b"two", first.revision)
        for content in (b"three", b"two"):
            with pytest.raises(WriteConflictError) as caught:
                await store.write(CART, content, first.revision)
            assert caught.value.current == second
        assert await store.read(CART) == second

    async def test_revision_of_a_removed_record_conflicts_with_its_successor(self, stores: Stores) -> None:
        """A record that was created anew is another one, even with the same content."""
        store = stores.client("a")
        first = await store.write(CART, b"one", None)
        await store.remove(CART, first.revision)
        second = await stores.client("b").write(CART, b"one", None)
        with pytest.raises(WriteConflictError) as written:
            await store.write(CART, b"two", first.revision)
        with pytest.raises(WriteConflictError) as removed:
            await store.remove(CART, first.revision)
        assert (written.value.current, removed.value.current) == (second, second)
        assert await store.read(CART) == second

    async def test_replacement_with_the_same_content_is_a_write(self, stores: Stores) -> None:
        """The record has a new revision, so that only one of two writers with equal contents succeeds."""
        store = stores.client("a")
        first = await store.write(CART, b"one", None)
        second = await store.write(CART, b"one", first.revision)
        third = await store.write(CART, b"one", second.revision)
        assert len({first.revision, second.revision, third.revision}) == 3
        with pytest.raises(WriteConflictError) as caught:
            await stores.client("b").write(CART, b"one", second.revision)
        assert caught.value.current == third

    async def test_removal_by_a_wrong_revision_is_a_conflict(self, stores: Stores) -> None:
        """Neither an older revision nor a missing record can be removed."""
        store = stores.client("a")
        first = await store.write(CART, b"one", None)
        second = await store.write(CART, b"two", first.revision)
        with pytest.raises(WriteConflictError) as caught:
            await stores.client("b").remove(CART, first.revision)
        assert caught.value.current == second
        assert await store.read(CART) == second
        await store.remove(CART, second.revision)
        with pytest.raises(WriteConflictError) as caught:
            await stores.client("b").remove(CART, second.revision)
        assert caught.value.current is None

    async def test_content_above_the_limit_is_refused(self, stores: Stores) -> None:
        """The largest content is stored; one byte more is an error of the caller, and changes nothing."""
        store = stores.client("a")
        largest = await store.write(CART, b"x" * LARGEST_CONTENT, None)
        for key, before in ((CART, largest.revision), (key_of("other"), None)):
            with pytest.raises(TooLargeError, match=f"{LARGEST_CONTENT + 1} bytes"):
                await store.write(key, b"x" * (LARGEST_CONTENT + 1), before)
        assert await stores.client("b").read(CART) == largest
        assert await store.read(key_of("other")) is None

    async def test_concurrent_writers_lose_no_write(self, stores: Stores) -> None:
        """Eight replicas count up one number: the sum is the number of writes."""

        async def count_up(store: RecordStore) -> int:
            conflicts, current = 0, await store.read(CART)
            for _ in range(WRITES):
                while True:
                    before = None if current is None else current.revision
                    number = 0 if current is None else int(current.content)
                    try:
                        current = await store.write(CART, str(number + 1).encode(), before)
                        break
                    except WriteConflictError as conflict:
                        conflicts, current = conflicts + 1, conflict.current
            return conflicts

        clients = [stores.client(f"writer-{number}") for number in range(WRITERS)]
        conflicts = sum(await asyncio.gather(*map(count_up, clients)))
        assert conflicts > 0, "the writers were concurrent"
        read = await stores.client("reader").read(CART)
        assert read is not None
        assert read.content == str(WRITERS * WRITES).encode()

    async def test_first_list_of_a_feed_may_be_empty(self, stores: Stores) -> None:
        """The receiver learns at once that there is nothing, and then hears of the first record."""
        await stores.client("a").write(key_of("others", "x"), b"x", None)
        async with following(stores.client("a"), "proxies") as follower:
            assert follower.calls == [Changes()]
            created = await stores.client("b").write(CART, b"one", None)
            await until(lambda: len(follower.calls) > 1)
            assert follower.calls == [Changes(), Changes((created,))]

    async def test_first_list_of_a_feed_is_one_call(self, stores: Stores) -> None:
        """However many records there are, the receiver has all of them after the first call."""
        store = stores.client("a")
        created = [await store.write(key_of("proxies", f"p{number}"), b"x", None) for number in range(12)]
        async with following(stores.client("b"), "proxies") as follower:
            [first] = follower.calls
            assert sorted(first.records, key=lambda record: record.key) == sorted(
                created, key=lambda record: record.key
            )
            assert first.removed == ()

    async def test_prefix_ends_at_the_end_of_a_word(self, stores: Stores) -> None:
        """`tokens/a` has itself and `tokens/a/uses/0`, but neither `tokens/ab` nor `tokens`."""
        store = stores.client("a")
        names = ("tokens", "tokens/a", "tokens/a/uses/0", "tokens/ab", "tokens/b/a", "tokens-a", "token/a")
        made = {name: await store.write(Key(name), name.encode(), None) for name in names}
        async with following(stores.client("b"), "tokens", "a") as follower:
            expected = {name: made[name] for name in ("tokens/a", "tokens/a/uses/0")}
            assert follower.known == expected
            await store.write(key_of("tokens", "ab", "uses", "0"), b"x", None)
            await store.remove(key_of("tokens", "ab"), made["tokens/ab"].revision)
            last = await store.write(key_of("tokens", "a", "uses", "1"), b"x", None)
            await until(lambda: last.key in follower.known)
            assert follower.known == {**expected, last.key: last}
            assert all(changes.removed == () for changes in follower.calls)

    async def test_changes_of_a_record_come_in_order(self, stores: Stores) -> None:
        """A receiver may miss forms between, but has the last one, and none comes after a later one."""
        store = stores.client("a")
        async with following(stores.client("b"), "proxies") as follower:
            written: list[bytes] = []
            revision: Revision | None = None
            for number in range(20):
                written.append(str(number).encode())
                revision = (await store.write(CART, written[-1], revision)).revision
            await until(lambda: follower.contents_of(CART)[-1:] == written[-1:])
            numbers = [int(form) for form in follower.contents_of(CART) if form is not None]
            assert numbers == sorted(set(numbers))
            assert follower.known == {CART: await store.read(CART)}

    async def test_own_changes_are_delivered(self, stores: Stores) -> None:
        """A replica that writes with the client that it follows with has the record from both."""
        store = stores.client("a")
        async with following(store, "proxies") as follower:
            created = await store.write(CART, b"one", None)
            await until(lambda: follower.known == {CART: created})
            await store.remove(CART, created.revision)
            await until(lambda: not follower.known)
            assert follower.calls == [Changes(), Changes((created,)), Changes(removed=(CART,))]

    async def test_removal_and_new_record_are_delivered(self, stores: Stores) -> None:
        """After the removal of a record that the list had, the key comes back with the new record."""
        store = stores.client("a")
        first = await store.write(CART, b"one", None)
        async with following(stores.client("b"), "proxies") as follower:
            assert follower.known == {CART: first}
            await store.remove(CART, first.revision)
            await until(lambda: not follower.known)
            second = await store.write(CART, b"two", None)
            await until(lambda: follower.known == {CART: second})
            assert follower.contents_of(CART) == [b"one", None, b"two"]

    async def test_every_follower_hears_all_changes(self, stores: Stores) -> None:
        """Followers at one replica and at others, also of other prefixes, have independent feeds."""
        store = stores.client("a")
        async with (
            following(store, "proxies") as first,
            following(store, "proxies", "shop") as second,
            following(stores.client("b"), "proxies") as third,
        ):
            created = await store.write(CART, b"one", None)
            other = await store.write(key_of("proxies", "bank", "x"), b"x", None)
            everything = {CART: created, other.key: other}
            await until(lambda: first.known == third.known == everything)
            await until(lambda: second.known == {CART: created})

    async def test_cancelled_follower_hears_nothing_more(self, stores: Stores) -> None:
        """Other followers go on."""
        store = stores.client("a")
        async with following(store, "proxies") as stays:
            async with following(store, "proxies") as leaves:
                pass
            created = await store.write(CART, b"one", None)
            await until(lambda: stays.known == {CART: created})
            assert leaves.calls == [Changes()]


class ReplicaContract:
    """The contract of presence and leadership. Each test has a new `stores`."""

    async def test_replicas_see_each_other(self, stores: Stores) -> None:
        """Each sees itself as well; a changed state is shown, and a replica vanishes when it is cancelled."""
        states = {"a": b"a1", "b": b"b1"}
        seen: dict[str, list[Mapping[ReplicaId, bytes]]] = {"a": [], "b": []}

        def announced(replica: str) -> contextlib.AbstractAsyncContextManager[None]:
            announcing = stores.client(replica).announce(lambda: states[replica], seen[replica].append)
            return running(announcing)

        async def until_seen(by: str, **expected: bytes) -> None:
            await until(lambda: seen[by][-1:] == [expected], explain=lambda: seen[by][-1:])

        async with announced("a"):
            await until_seen("a", a=b"a1")
            async with announced("b"):
                await until_seen("a", a=b"a1", b=b"b1")
                await until_seen("b", a=b"a1", b=b"b1")
                states["b"] = b"b2"
                await until_seen("a", a=b"a1", b=b"b2")
                await until_seen("b", a=b"a1", b=b"b2")
            count = len(seen["b"])
            await until_seen("a", a=b"a1")
            states["a"] = b""
            await until_seen("a", a=b"")
            assert len(seen["b"]) == count, "a cancelled replica hears nothing more"

    async def test_receiver_is_called_only_for_changes_of_replicas(self, stores: Stores) -> None:
        """A renewal without a change is no news, because receivers compute with each call."""
        seen: list[Mapping[ReplicaId, bytes]] = []
        renewals = 0

        def state() -> bytes:
            nonlocal renewals
            renewals += 1
            return b"first" if renewals < 4 else b"last"

        async with running(stores.client("a").announce(state, seen.append)):
            await until(lambda: renewals > 6)
        alone = [item for item in seen if item]
        assert alone == [{"a": b"first"}, {"a": b"last"}]

    async def test_replica_that_comes_back_is_seen_again(self, stores: Stores) -> None:
        """The same name, for example after a cancelled task, is no obstacle."""
        seen: list[Mapping[ReplicaId, bytes]] = []
        async with running(stores.client("a").announce(lambda: b"a", seen.append)):
            for _ in range(2):
                async with running(stores.client("b").announce(lambda: b"b", _ignored)):
                    await until(lambda: seen[-1:] == [{"a": b"a", "b": b"b"}])
                await until(lambda: seen[-1:] == [{"a": b"a"}])

    async def test_one_replica_leads_at_a_time(self, stores: Stores) -> None:
        """Three replicas lead in turn, each term has a greater epoch, and a cancelled one is succeeded."""
        leading: list[str] = []
        terms: list[tuple[str, Epoch]] = []

        async def stand(replica: str) -> None:
            async def work(epoch: Epoch) -> None:
                leading.append(replica)
                assert leading == [replica]
                terms.append((replica, epoch))
                try:
                    await asyncio.Event().wait()
                finally:
                    leading.remove(replica)

            await stores.client(replica).lead(work)

        standing: dict[str, asyncio.Task[None]] = {
            name: asyncio.create_task(stand(name)) for name in ("a", "b", "c")
        }
        resting: list[str] = []
        for number in range(1, TERMS + 1):
            await until(partial(_has_length, terms, number))
            leader, _ = terms[-1]
            standing |= {name: asyncio.create_task(stand(name)) for name in resting}
            await ended(standing.pop(leader))
            assert leader not in leading, "the work was cancelled with the leader"
            resting = [leader]
        for task in standing.values():
            await ended(task)
        epochs = [epoch for _, epoch in terms]
        assert epochs == sorted(set(epochs))
        assert epochs[0] > 0
        assert all(before[0] != after[0] for before, after in itertools.pairwise(terms))

    async def test_failed_work_is_logged_and_tried_in_another_term(self, stores: Stores) -> None:
        """The replica stands again, with a greater epoch, and the error is in the log."""
        epochs: list[Epoch] = []

        async def work(epoch: Epoch) -> None:
            epochs.append(epoch)
            if len(epochs) == 1:
                raise RuntimeError("the first term fails")
            await asyncio.Event().wait()

        with structlog.testing.capture_logs() as logs:
            async with running(stores.client("a").lead(work)):
                await until(lambda: len(epochs) == 2)
        assert epochs[1] > epochs[0] > 0
        errors = [entry for entry in logs if entry["log_level"] == "error"]
        assert [(entry["replica"], entry["exc_info"]) for entry in errors] == [("a", True)]

    async def test_work_that_ends_gives_up_its_leadership(self, stores: Stores) -> None:
        """Another replica leads next, and work that ends is called again in later terms."""
        terms: list[tuple[str, Epoch]] = []

        async def stand(replica: str) -> None:
            async def work(epoch: Epoch) -> None:
                terms.append((replica, epoch))

            await stores.client(replica).lead(work)

        async with running(stand("a")), running(stand("b")):
            await until(lambda: {replica for replica, _ in terms[:TERMS]} == {"a", "b"})
        epochs = [epoch for _, epoch in terms]
        assert epochs == sorted(set(epochs))


def _has_length(terms: Sized, number: int) -> bool:
    return len(terms) == number


def _ignored(_: Mapping[ReplicaId, bytes]) -> None:
    """Take no notice of other replicas."""


class MemoryStores:
    """Stores in memory."""

    def __init__(self) -> None:
        self._memory = Memory()

    def client(self, replica: str) -> RecordStore:
        """Return the client of a replica, which renews its presence often."""
        return MemoryRecords(self._memory, ReplicaId(replica), renew_every=0.005)


class TestMemory(RecordContract, ReplicaContract):
    """The contract of the store in memory."""

    @pytest.fixture
    def stores(self) -> Stores:
        """Return an empty memory."""
        return MemoryStores()
