"""Tests of records as objects of a cluster: outages, permissions, and the view of kubectl."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

import pytest

from meshwright.kube.api import Api
from meshwright.kube.connection.connection import find_connection
from meshwright.kube.lease import LEASES
from meshwright.records.content import Content, Fields
from meshwright.records.contract import Epoch, RecordsError, ReplicaId, StoreUnavailableError
from meshwright.records.key import key_of
from meshwright.records.kubernetes.definition import RECORDS
from meshwright.records.kubernetes.objects import UnreadableObjectError, object_of
from meshwright.records.kubernetes.presence import key_of_replica, presence_content
from meshwright.records.kubernetes.store import LEASE, KubernetesRecords
from meshwright.records.update import Writer, update
from tests.kubernetes.tools.accounts import Accounts
from tests.kubernetes.tools.kubectl import Kubectl
from tests.kubernetes.tools.record_stores import TIMES, KubernetesStores
from tests.tools.deadline import until
from tests.tools.faulty_records import FaultyRecords, Network
from tests.unit.records.test_contract import CART, following, running
from tools.real_parts.cluster import RunningCluster

GRANTS: Final = (
    {
        "apiGroups": [RECORDS.group],
        "resources": [RECORDS.plural],
        "verbs": ["get", "list", "watch", "create", "patch", "delete"],
    },
    {"apiGroups": [LEASES.group], "resources": [LEASES.plural], "verbs": ["get", "create", "update"]},
)
"""The permissions that the package's documentation names."""
ADDITIONS: Final = 5
"""Ids that each of the concurrent writers adds."""


async def test_feed_and_presence_survive_an_api_server_that_restarts(
    shared_cluster: RunningCluster, stores: KubernetesStores
) -> None:
    """Only differences are delivered after the outage, and no replica is gone by it."""
    store = stores.client("a")
    first = await store.write(CART, b"one", None)
    other = await store.write(key_of("proxies", "other"), b"x", None)
    seen: list[Mapping[ReplicaId, bytes]] = []
    both = {"a": b"", "b": b""}
    async with (
        following(stores.client("b"), "proxies") as follower,
        running(store.announce(lambda: b"", seen.append)),
        running(stores.client("b").announce(lambda: b"", lambda _: None)),
    ):
        await until(lambda: seen[-1:] == [both])
        count = len(seen)
        await asyncio.to_thread(shared_cluster.api.kill)
        for call in (store.read(CART), store.write(CART, b"two", first.revision)):
            with pytest.raises(StoreUnavailableError):
                await call
        await asyncio.to_thread(shared_cluster.compact)
        await asyncio.to_thread(shared_cluster.api.again)
        second = await store.write(CART, b"two", first.revision)
        await store.remove(other.key, other.revision)
        await until(lambda: follower.known == {CART: second})
        assert follower.contents_of(CART) == [b"one", b"two"]
        assert follower.contents_of(other.key) == [b"x", None]
        assert seen[count:] == []
    assert await store.read(key_of("replicas", "a")) is None, "a clean end removes the record"


async def test_replica_that_was_killed_vanishes_with_its_record(api: Api, home: str) -> None:
    """Its record stays without a renewal; the others find it gone, and remove the record later."""
    times = replace(TIMES, renew=0.03)
    store = KubernetesRecords(api, home, ReplicaId("a"), lambda: datetime.now(UTC), times)
    killed = key_of_replica(ReplicaId("killed"))
    await store.write(killed, presence_content(ReplicaId("killed"), b"k", 1), None)
    seen: list[Mapping[ReplicaId, bytes]] = []
    async with running(store.announce(lambda: b"a", seen.append)):

        async def is_removed() -> bool:
            return await store.read(killed) is None

        await until(is_removed)
        await until(lambda: seen[-1:] == [{"a": b"a"}])
    assert seen == [{"a": b"a", "killed": b"k"}, {"a": b"a"}]


async def test_documented_permissions_are_enough(
    record_kind: None, accounts: Accounts, namespace: str
) -> None:
    """An account with these verbs can do all that the contract has; another one is refused."""
    permitted, other = accounts.make("records", GRANTS), accounts.make("other", ())
    seen: list[Mapping[ReplicaId, bytes]] = []
    epochs: list[Epoch] = []

    async def work(epoch: Epoch) -> None:
        epochs.append(epoch)
        await asyncio.Event().wait()

    def store_of(api: Api) -> KubernetesRecords:
        return KubernetesRecords(api, namespace, ReplicaId("a"), lambda: datetime.now(UTC), TIMES)

    async with Api(find_connection(permitted.kubeconfig, "")) as api:
        store = store_of(api)
        created = await store.write(CART, b"one", None)
        async with (
            following(store, "proxies") as follower,
            running(store.announce(lambda: b"here", seen.append)),
            running(store.lead(work)),
        ):
            replaced = await store.write(CART, b"two", created.revision)
            await until(lambda: follower.known == {CART: replaced} and seen and epochs)
            assert (seen, epochs) == ([{"a": b"here"}], [1])
            await store.remove(CART, replaced.revision)
            await until(lambda: not follower.known)
    async with Api(find_connection(other.kubeconfig, "")) as api:
        with pytest.raises(RecordsError, match=r"RBAC grants no `get` on `records\.state\.meshwright\.dev`"):
            await store_of(api).read(CART)
        with pytest.raises(RecordsError, match="RBAC grants no `create`"):
            await store_of(api).write(CART, b"one", None)


async def test_damaged_object_is_passed_over(api: Api, home: str, stores: KubernetesStores) -> None:
    """Other records are delivered, and the damaged one is neither read nor replaced."""
    store = stores.client("a")
    good = await store.write(key_of("proxies", "good"), b"x", None)
    damaged = object_of(CART, b"", "w")
    damaged["spec"]["content"] = "!"
    await api.create(RECORDS, home, damaged)
    async with following(store, "proxies") as follower:
        assert follower.known == {good.key: good}
        with pytest.raises(UnreadableObjectError, match=r"proxies\.shop\.cart\.9f0c: spec\.content"):
            await store.read(CART)
        with pytest.raises(UnreadableObjectError):
            await store.write(CART, b"one", None)
        later = await store.write(key_of("proxies", "later"), b"x", None)
        await until(lambda: follower.known == {good.key: good, later.key: later})


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_writers_behind_faulty_networks_add_each_id_once(stores: KubernetesStores, seed: int) -> None:
    """Requests to a real API server are lost, answered in vain, or arrive later: no addition is lost."""
    network = Network(seed, share=0.3)

    async def add(replica: str) -> None:
        store, writer = FaultyRecords(stores.client(replica), network), Writer(ReplicaId(replica))
        for number in range(ADDITIONS):
            while True:
                try:
                    await update(store, CART, partial(_with_id, f"{replica}-{number}"), writer)
                    break
                except StoreUnavailableError:
                    continue

    await asyncio.gather(*map(add, "abcd"))
    await network.deliver_all()
    record = await stores.client("a").read(CART)
    assert record is not None
    content = Content.decode(record.content)
    expected = [f"{replica}-{number}" for replica in "abcd" for number in range(ADDITIONS)]
    assert sorted(_ids(content.fields)) == expected
    assert content.count == len(expected)
    assert network.faults > 0


def _with_id(identifier: str, fields: Fields | None) -> Fields | None:
    """Return the fields with an id, or None where they have the id."""
    ids = _ids(fields)
    return None if identifier in ids else {"ids": [*ids, identifier]}


def _ids(fields: Fields | None) -> list[str]:
    ids = [] if fields is None else fields["ids"]
    assert isinstance(ids, list)
    return ids


async def test_kubectl_shows_the_keys(record_kind: None, api: Api, kubectl: Kubectl, namespace: str) -> None:
    """The columns are the key, the writes and the age, also where the name is a hash."""
    store = KubernetesStores(api, namespace).client("a")
    first = await store.write(CART, b"one", None)
    await store.write(CART, b"two", first.revision)
    await store.write(key_of("tokens", "4F1C"), b"x", None)
    lines = (await asyncio.to_thread(kubectl, "get", "records")).splitlines()
    rows = [line.split() for line in lines]
    assert rows[0] == ["NAME", "KEY", "WRITES", "AGE"]
    assert [row[1:3] for row in rows[1:]] == [["proxies/shop/cart/9f0c", "2"], ["tokens/4F1C", "1"]]
    assert rows[1][0] == "proxies.shop.cart.9f0c"


async def test_epoch_grows_over_a_lease_that_is_deleted_by_hand(
    api: Api, home: str, stores: KubernetesStores
) -> None:
    """The records have the epochs of former leaders, so that a number from the beginning would be refused."""
    epochs: list[Epoch] = []

    async def work(epoch: Epoch) -> None:
        epochs.append(epoch)
        if len(epochs) < 3:
            return
        await asyncio.Event().wait()

    async with running(stores.client("a").lead(work)):
        await until(lambda: len(epochs) == 3)
        assert epochs == [1, 2, 3]
        before = (await api.get(LEASES, home, LEASE))["metadata"]["uid"]
        await api.delete(LEASES, home, LEASE)

        async def is_new() -> bool:
            leases = (await api.list(LEASES, home))["items"]
            return any(lease["metadata"]["uid"] != before for lease in leases)

        await until(is_new)
    async with running(stores.client("b").lead(work)):
        await until(lambda: len(epochs) == 4)
    assert epochs[3] > epochs[2]
