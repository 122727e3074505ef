"""A Pod, a VM and a process on the premises behind one Service, and an API server that dies meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

import pytest
import pytest_asyncio

from mesh.identity import ProxyName
from tests.e2e.agent.conftest import missing_for_namespaces
from tests.e2e.policy.calls import load
from tests.golden.live import until
from tests.kubernetes import objects
from tests.kubernetes.conftest import namespaced
from tests.kubernetes.kubectl import Kubectl
from tests.kubernetes.meshed import Joined, Meshed
from tests.meshes import texts
from tests.program import Program
from tests.typed import Typed
from tools.real_parts.cluster import RunningCluster

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(bool(missing_for_namespaces()), reason=missing_for_namespaces() or "it can run"),
]

BUYER: Final = "buyer"
PLACES: Final = {"pod": "10.77.1.2", "vm": "10.77.1.3", "premises": "10.77.1.4"}
"""Where the shop runs: a Pod and a Workload of the cluster, and a Workload of a directory."""
AT: Final = {BUYER: "10.77.1.1", **PLACES}


@dataclass(frozen=True)
class Shop:
    """The shop in its three places and who buys there, by the Service's address of the cluster."""

    meshed: Meshed
    kubectl: Kubectl
    cluster: RunningCluster
    address: str

    async def bought(self) -> str:
        """Have the buyer's application send a request to the shop; return who answered, or the status."""
        answer = await self.meshed.get(BUYER, self.address)
        return answer.by or str(answer.status)

    async def answers_from(self, *places: str) -> None:
        """Wait until the shop answers from these places and no other."""

        async def those() -> bool:
            found = await self.meshed.answering(BUYER, self.address, 12)
            return set(found) == set(places)

        await until(those)


def _objects(namespace: str) -> list[objects.Document]:
    return [
        *map(objects.account, (BUYER, "shop")),
        objects.service("shop"),
        objects.pod(BUYER, BUYER, uuid=BUYER),
        objects.pod("pod", "shop", uuid="pod", app="shop"),
        objects.workload("vm", AT["vm"], "shop", app="shop"),
        objects.routes("all"),
        objects.target("buyers", namespace, BUYER, "shop", "all"),
    ]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shop(
    shared_cluster: RunningCluster,
    administrator: Kubectl,
    definitions: str,
    typed: Typed,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Shop]:
    """Start all of it; at the end no Envoy has refused anything."""
    del definitions
    root = tmp_path_factory.mktemp("places")
    with namespaced(administrator) as kubectl:
        kubectl.apply(*_objects(kubectl.namespace))
        kubectl.status(objects.runs(BUYER, AT[BUYER]), objects.runs("pod", AT["pod"]))
        address = str(kubectl.get("service", "shop")["spec"]["clusterIP"])
        program = Program(root / "state", root / "files", typed)
        premises = texts.workload(
            "premises", AT["premises"], app="shop", account="shop", namespace=kubectl.namespace
        )
        (program.mesh / "mesh.yaml").write_text(premises)
        program.reads += ("--kubernetes", "--kubeconfig", str(shared_cluster.kubeconfig))
        async with AsyncExitStack() as ends:
            ends.callback(program.end)
            meshed = await Meshed.start(program, ends, "--namespaces", kubectl.namespace)
            accounts = {BUYER: BUYER, **dict.fromkeys(PLACES, "shop")}
            for name, account in accounts.items():
                who = ProxyName.parse(f"{name}.{account}.{kubectl.namespace}")
                await meshed.add(Joined(who, AT[name]), serves=name != BUYER)
            yield Shop(meshed, kubectl, shared_cluster, address)
            for name, each in meshed.envoys.items():
                refused = await each.text("/stats?filter=update_rejected")
                assert all(line.endswith(": 0") for line in refused.splitlines()), name


async def test_a_pod_a_vm_and_a_process_on_the_premises_serve_one_service(shop: Shop) -> None:
    """Each gets its share of the calls; what is not ready gets none, and again some once it is."""
    await shop.answers_from(*PLACES)
    assert set(await shop.meshed.answering(BUYER, shop.address, 60)) == set(PLACES)
    await asyncio.to_thread(shop.kubectl.status, objects.runs("pod", AT["pod"], ready=False))
    await shop.answers_from("vm", "premises")
    await asyncio.to_thread(shop.kubectl.status, objects.runs("pod", AT["pod"]))
    await shop.answers_from(*PLACES)


async def test_no_call_is_lost_while_the_api_server_is_killed_and_comes_back(shop: Shop) -> None:
    """Nor is history of any use to whoever comes back; what changes afterwards is followed as before."""
    await shop.answers_from(*PLACES)
    async with load(shop.bought) as calls:
        await calls.more(20)
        await asyncio.to_thread(shop.cluster.api.kill)
        try:
            await calls.more(100)
            await asyncio.to_thread(shop.cluster.compact)
        finally:
            await asyncio.to_thread(shop.cluster.api.again)
        await calls.more(100)
        await asyncio.to_thread(shop.kubectl.status, objects.runs("pod", AT["pod"], ready=False))

        async def has_gone() -> bool:
            return "pod" not in await calls.more(12)

        await until(has_gone)
        assert set(await calls.more(40)) == {"vm", "premises"}
    assert set(calls.every) == set(PLACES), calls.every
    await asyncio.to_thread(shop.kubectl.status, objects.runs("pod", AT["pod"]))
    await shop.answers_from(*PLACES)
