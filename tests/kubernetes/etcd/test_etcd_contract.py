"""The contract of records with a real etcd, and what the contract leaves to each store."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Final

import pytest

from meshwright.etcd.client import Limits
from meshwright.records.content import Content, Fields
from meshwright.records.contract import ReplicaId, StoreUnavailableError
from meshwright.records.update import Version, Writer, update
from tests.kubernetes.etcd.conftest import EtcdStores
from tests.kubernetes.etcd.cut_relay import relay_to
from tests.kubernetes.etcd.members import RealMember
from tests.unit.records.test_contract import CART, RecordContract, ReplicaContract, following, running

ADDITIONS: Final = 25
"""Ids that each of four writers adds."""
SHORT: Final = Limits(read=1.0, write=1.0)


@pytest.fixture
async def stores(member: RealMember) -> AsyncIterator[EtcdStores]:
    """Return a mesh without records in the shared etcd."""
    async with EtcdStores(member.endpoint) as made:
        yield made


class TestEtcd(RecordContract, ReplicaContract):
    """The contract of the store in etcd."""


async def test_write_with_a_lost_answer_is_not_sent_again(member: RealMember) -> None:
    """The outcome is unknown to the writer, who finds the own content; a second write would be a conflict."""
    async with (
        relay_to(member.endpoint) as relay,
        EtcdStores(relay.endpoint, member.endpoint, limits=SHORT) as stores,
    ):
        store = stores.client("a")
        assert await store.read(CART) is None
        relay.lose_answers()
        with pytest.raises(StoreUnavailableError, match="does not answer Txn in time"):
            await store.write(CART, b"one", None)
        record = await store.read(CART)
        assert record is not None
        assert record.content == b"one"


async def test_change_with_a_lost_answer_is_done_once(member: RealMember) -> None:
    """A compared change over the same fault finds that it was done."""
    async with (
        relay_to(member.endpoint) as relay,
        EtcdStores(relay.endpoint, member.endpoint, limits=SHORT) as stores,
    ):
        store = stores.client("a")

        def change(fields: Fields | None) -> Fields | None:
            relay.lose_answers()  # between the read and the write
            return fields or {"a": 1}

        version = await update(store, CART, change, Writer(ReplicaId("a")))
        assert version == Version.of(await store.read(CART))
        assert version.content is not None
        assert version.content.count == 1


async def test_writers_over_cut_networks_add_each_id_once(member: RealMember) -> None:
    """Connections break before and after the store has done a write; no addition is lost or done twice."""
    async with relay_to(member.endpoint) as relay, EtcdStores(relay.endpoint, limits=SHORT) as stores:

        async def add(replica: str) -> None:
            store, writer = stores.client(replica), Writer(ReplicaId(replica))
            for number in range(ADDITIONS):
                while True:
                    try:
                        await update(store, CART, partial(_with_id, f"{replica}-{number:02}"), writer)
                        break
                    except StoreUnavailableError:
                        continue

        async def disturb() -> None:
            while True:
                relay.lose_answers()
                await asyncio.sleep(0.01)
                relay.cut()
                relay.heal()
                await asyncio.sleep(0.1)

        async with running(disturb()):
            await asyncio.gather(*map(add, "abcd"))
        record = await stores.client("a").read(CART)
    assert record is not None
    content = Content.decode(record.content)
    expected = [f"{replica}-{number:02}" for replica in "abcd" for number in range(ADDITIONS)]
    assert sorted(map(str, _ids(content.fields))) == expected
    assert (content.count, relay.cuts > 0) == (len(expected), True)


def _with_id(identifier: str, fields: Fields | None) -> Fields | None:
    """Return the fields with an id, or None where they have the id."""
    ids = _ids(fields)
    return None if identifier in ids else {"ids": [*ids, identifier]}


def _ids(fields: Fields | None) -> list[object]:
    ids = [] if fields is None else fields["ids"]
    assert isinstance(ids, list)
    return ids


async def test_keys_of_others_are_passed_over(member: RealMember) -> None:
    """A key that no record can have, for example one that was written by hand, breaks no feed."""
    async with EtcdStores(member.endpoint) as stores:
        span = stores.layout.records_within(CART)
        member.put(span.start + b"/\xff", b"x")
        created = await stores.client("a").write(CART, b"one", None)
        async with following(stores.client("b"), "proxies") as follower:
            assert follower.known == {CART: created}
