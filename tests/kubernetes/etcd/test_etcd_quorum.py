"""Three real members: one is lost, then two, and what callers see until they are back."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Final

import pytest
import structlog

from meshwright.etcd.client import Limits
from meshwright.records.content import Content, Fields
from meshwright.records.contract import Changes, Epoch, ReplicaId, StoreUnavailableError
from meshwright.records.key import key_of
from meshwright.records.update import Version, Writer, update
from tests.kubernetes.etcd.conftest import EtcdStores
from tests.kubernetes.etcd.members import RealMember, etcd
from tests.kubernetes.etcd.standing_leader import TERMS
from tests.tools.deadline import until
from tests.unit.records.test_contract import following, running

CART: Final = key_of("proxies", "shop", "cart", "9f0c")
SHORT: Final = Limits(read=1.5, write=1.5, quiet=0.5, answer=1.0)
CHANGES: Final = 20
PATIENCE: Final = 30.0
"""Seconds after which a call counts as one that does not end."""


@pytest.fixture(scope="module")
def members(etcd_part: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RealMember]]:
    """Return three members of one etcd."""
    with etcd(tmp_path_factory.mktemp("etcd") / "three", count=3) as started:
        yield started


@pytest.fixture
def three(members: list[RealMember]) -> Iterator[list[RealMember]]:
    """Return the three members, which the test may kill and stop; the last one leads."""
    yield sorted(members, key=lambda member: member.leads)
    for member in members:
        member.go_on()
        if not member.runs:
            member.start()
    for member in members:
        member.service.until_ready()


@pytest.fixture
async def stores(three: list[RealMember]) -> AsyncIterator[EtcdStores]:
    """Return a mesh in the three members, whose clients ask the first one first."""
    endpoints = (member.endpoint for member in three)
    async with EtcdStores(*endpoints, limits=SHORT, terms=TERMS) as made:
        yield made


async def test_lost_member_is_passed_over(three: list[RealMember], stores: EtcdStores) -> None:
    """A refused connection is no failure of a call, and a follower of the killed member goes on."""
    created = await stores.client("a").write(CART, b"one", None)
    async with following(stores.client("b"), "proxies") as follower:
        three[0].kill()
        store = stores.client("c")
        assert await store.read(CART) == created
        record = await store.write(CART, b"two", created.revision)
        await until(lambda: follower.known == {CART: record})
        assert follower.calls == [Changes((created,)), Changes((record,))]


async def test_lost_leader_is_replaced(three: list[RealMember], stores: EtcdStores) -> None:
    """The others elect a leader; each change is done once, also one without an answer."""
    store = stores.client("a")

    async def has_set(number: int) -> bool:
        try:
            await update(store, CART, partial(_set, number), Writer(ReplicaId("a")))
        except StoreUnavailableError:
            return False
        return True

    async with following(stores.client("b"), "proxies") as follower:
        for number in range(1, CHANGES + 1):
            if number == CHANGES // 2:
                three[2].kill()
            await until(partial(has_set, number))
        record = await store.read(CART)
        content = Version.of(record).content
        assert content == Content({"number": CHANGES}, ReplicaId("a"), count=CHANGES)
        await until(lambda: follower.known == {CART: record})


def _set(number: int, fields: Fields | None) -> Fields | None:
    return None if fields == {"number": number} else {"number": number}


async def test_silent_member_is_passed_over(three: list[RealMember], stores: EtcdStores) -> None:
    """A stopped member takes a half of a read's time, and a watch at it is given up."""
    store = stores.client("a")
    created = await store.write(CART, b"one", None)
    async with following(stores.client("b"), "proxies") as follower:
        three[0].stop()
        assert await store.read(CART) == created
        record = await store.write(CART, b"two", created.revision)
        await until(lambda: follower.known == {CART: record})


async def test_calls_end_without_a_quorum(three: list[RealMember], stores: EtcdStores) -> None:
    """Calls are unavailable within their limits, work is cancelled, and all heals by itself.

    The watches end as well, although their member lives and would answer a question for progress.
    """
    store, leads = stores.client("a"), stores.client("b")
    created = await store.write(CART, b"one", None)
    said: list[str] = []

    async def work(epoch: Epoch) -> None:
        said.append("leads")
        try:
            await asyncio.Event().wait()
        finally:
            said.append("ended")

    async with running(leads.lead(work)), following(stores.client("c"), "proxies") as follower:
        await until(lambda: said == ["leads"])
        with structlog.testing.capture_logs() as logs:
            for member in three[1:]:
                member.kill()
            await until(lambda: said == ["leads", "ended"])
            await until(lambda: any(entry.get("span", "").endswith("/records/proxies") for entry in logs), 20)
        async with asyncio.timeout(PATIENCE):
            errors = await asyncio.gather(
                store.read(CART),
                store.write(CART, b"lost", created.revision),
                store.remove(CART, created.revision),
                return_exceptions=True,
            )
            assert [type(error) for error in errors] == [StoreUnavailableError] * 3
        assert said == ["leads", "ended"]
        await asyncio.to_thread(three[1].again)
        await until(lambda: said == ["leads", "ended", "leads"])
        assert await store.read(CART) == created, "none of the failed calls happened later"
        replaced = await store.write(CART, b"two", created.revision)
        await until(lambda: follower.known == {CART: replaced})
        assert follower.calls == [Changes((created,)), Changes((replaced,))]
