"""Tests of two servers with a shared store, whose service certificates are signed by cert-manager."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from certs.issuers.cert_manager.requests import IDENTITY, REQUESTS
from certs.keys.leaf import is_signed_by_bundle, read_leaf
from meshwright.kube.api import Api
from meshwright.kube.streams import event
from meshwright.records.contract import ReplicaId
from meshwright.replicas.turns import turn
from tests.kubernetes.etcd.test_etcd_issuer import has_name, served
from tests.kubernetes.etcd.test_etcd_servers import BUYER, MESH, SHOP, equal_replicas
from tests.kubernetes.records.conftest import record_kind as record_kind
from tests.kubernetes.records.test_servers import Replica, Stream, custody, until
from tests.kubernetes.tools.certificate_issuers import Signing, new_ca
from tests.kubernetes.tools.kubectl import Kubectl
from tests.meshes import texts
from tests.tools.forked_cli import Typed
from tools.real_parts.processes import Service

SHOPS = "spiffe://cluster.local/ns/shop/sa/shop"
BUYERS = "spiffe://cluster.local/ns/shop/sa/buyer"


@pytest.fixture
def replicas(
    record_kind: None, controllers: Service, signing: Signing, kubectl: Kubectl, typed: Typed, tmp_path: Path
) -> Iterator[list[Replica]]:
    """Return two servers that are not started yet, with the same issuer and equal directories."""
    del record_kind, controllers
    kubectl.apply(custody(signing.namespace))
    signing.secret(new_ca())
    settings = {
        "store": "kubernetes",
        "issuer": "cert-manager",
        "cert_manager_issuer": signing.ca_issuer(),
        "cert_manager_namespace": signing.namespace,
        "endpoint_admission": "off",
        "shutdown_delay_seconds": 0,
        "shutdown_spread_seconds": 0,
    }
    cluster = ("--kubernetes", "--kubeconfig", str(signing.kubeconfig), "--namespaces", signing.namespace)
    flags = tuple(word for name, value in settings.items() for word in ("--set", f"{name}={value}"))
    with equal_replicas(tmp_path, typed, (*cluster, *flags), "ab") as made:
        for replica in made:
            replica.program.environment["POD_NAMESPACE"] = signing.namespace
        yield made


@asynccontextmanager
async def counted(api: Api, namespace: str) -> AsyncIterator[Counter[str]]:
    """Count the CertificateRequests that are created within the block, by identity."""
    result: Counter[str] = Counter()
    listed = await api.list(REQUESTS, namespace)
    parameters = {"resourceVersion": listed["metadata"]["resourceVersion"]}

    async def count() -> None:
        async with api.watch(REQUESTS, namespace, parameters, 300) as batches:
            async for batch in batches:
                for kind, raw in map(event, batch):
                    if kind == "ADDED":
                        result[raw["metadata"]["annotations"][IDENTITY]] += 1

    task = asyncio.create_task(count(), name="certificate requests")
    try:
        yield result
        assert not task.done(), task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def add_name(replicas: Sequence[Replica], *names: str) -> None:
    """Add Services for the shop at all servers at once, so that its certificate needs more names."""
    more = texts.joined(MESH, *(texts.service(name, app="shop") for name in names))
    for replica in replicas:
        (replica.program.mesh / "mesh.yaml").write_text(more)


def named(replicas: Sequence[Replica]) -> Mapping[str, Replica]:
    """Return the servers by the names that they have for each other."""
    result = {}
    for replica in replicas:
        # The status is not 0 while a server has not answered at the port for servers yet.
        _, out, _ = replica.program.run("replicas", "--json", "--state", str(replica.program.state))
        result[json.loads(out)["own"]] = replica
    return result


def first_for(identity: str, replicas: Mapping[str, Replica]) -> Replica:
    """Return the server that requests a service's certificate before the others."""
    names = [ReplicaId(name) for name in replicas]
    return next(replicas[name] for name in names if turn(identity, name, names) == 0)


def is_complete(stream: Stream, name: str) -> bool:
    """Return whether a sidecar is served, with a certificate that has this DNS name."""
    return stream.is_served() and has_name(stream, name)


async def test_servers_request_each_certificate_once_and_survive_each_other(
    replicas: list[Replica], controllers: Service, signing: Signing, api: Api, tmp_path: Path
) -> None:
    """A certificate also comes if the server is killed whose request is not signed yet."""
    one, two = replicas
    await asyncio.gather(*(asyncio.to_thread(replica.start) for replica in replicas))
    shops = await asyncio.to_thread(one.issued, SHOP, tmp_path / "shop")
    buyers = await asyncio.to_thread(two.issued, BUYER, tmp_path / "buyer")
    async with counted(api, signing.namespace) as requests:
        async with one.stream(SHOP, shops) as here, two.stream(SHOP, shops) as there:
            async with two.stream(BUYER, buyers) as buyer:
                for stream in (here, there, buyer):
                    await stream.until(stream.is_served)
            await until(lambda: here.secrets() == there.secrets() != {})
            chain, roots = served(here)
            assert is_signed_by_bundle(chain, roots)
            assert read_leaf(chain).names.uris == (SHOPS,)
            # Both servers may have requested the first certificate, because a proxy waited at each.
            assert requests.keys() == {SHOPS, BUYERS}
            assert requests[BUYERS] == 1

            requests.clear()

            add_name(replicas, "store")
            for stream in (here, there):
                await stream.until(partial(has_name, stream, "store.shop.svc.cluster.local"))
            await until(lambda: here.secrets() == there.secrets())
            assert requests == {SHOPS: 1}

            requests.clear()
            asker = first_for("shop/shop", await asyncio.to_thread(named, replicas))
            controllers.kill()
            try:
                add_name(replicas, "store", "market")
                await until(lambda: requests[SHOPS] == 1)
                asker.running.process.kill()
                await asyncio.to_thread(asker.running.process.wait)
            finally:
                controllers.again()
            left = there if asker is one else here
            await left.until(partial(has_name, left, "market.shop.svc.cluster.local"))
            assert requests == {SHOPS: 2}, "the second request is that of the server that is left"
        await asyncio.to_thread(asker.start)
        async with asker.stream(SHOP, shops) as back:
            await back.until(partial(is_complete, back, "market.shop.svc.cluster.local"))
            assert back.secrets() == left.secrets()
        assert requests == {SHOPS: 2}, "the server that has started again takes the stored certificate"
    for replica in replicas:
        await asyncio.to_thread(replica.running.stop)
