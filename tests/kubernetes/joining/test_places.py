"""A Pod, a VM and a process on the premises behind one Service: real ones, while what they stand on fails."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

import pytest
import pytest_asyncio

from meshwright.mesh.identity import ProxyName
from tests.e2e.agent.conftest import missing_for_namespaces
from tests.e2e.policy.calls import load
from tests.kubernetes.conftest import define, namespaced
from tests.kubernetes.joining.mesh_on_node import Meshed
from tests.kubernetes.tools import containers, objects
from tests.kubernetes.tools.kubectl import Kubectl
from tests.meshes import texts
from tests.tools.deadline import until
from tests.tools.forked_cli import Networked, Typed
from tests.tools.program import Program
from tools.real_parts.node import Node

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(900),  # a machine may be slow, and four programs of Python start one after the other
    pytest.mark.skipif(bool(missing_for_namespaces()), reason=missing_for_namespaces() or "it can run"),
]

BUYER: Final = "buyer"
MACHINES: Final = {"vm": "10.99.0.3", "premises": "10.99.0.4"}
"""Where the shop runs beside its Pod: a Workload of the cluster, and one of a directory."""
PLACES: Final = ("pod", *MACHINES)
_SECONDS: Final = 180.0


@dataclass(frozen=True)
class Shop:
    """The shop in its three places and who buys there, a Pod too, by the Service's address of the cluster."""

    meshed: Meshed
    kubectl: Kubectl
    address: str

    async def bought(self) -> str:
        """Have the buyer's application send a request to the shop; return who answered, or the status."""
        answer = await self.meshed.get(BUYER, self.address)
        return answer.by or str(answer.status)

    async def answers_from(self, *places: str) -> None:
        """Wait until the shop answers from these places and no other."""

        async def those() -> bool:
            result = await self.meshed.answering(BUYER, self.address, 12)
            return set(result) == set(places)

        await until(those, _SECONDS)

    async def at_the_pod(self, *command: str) -> None:
        """Run a command beside the application of the shop's Pod."""
        await asyncio.to_thread(self.kubectl, "exec", "pod", "-c", "app", "--", *command)


def _objects(namespace: str) -> list[objects.Document]:
    return [
        *map(objects.account, (BUYER, "shop")),
        *map(objects.service, (BUYER, "shop")),
        objects.workload("vm", MACHINES["vm"], "shop", app="shop"),
        objects.routes("all"),
        objects.target("buyers", namespace, BUYER, "shop", "all"),
    ]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shop(
    real_node: Node,
    node_administrator: Kubectl,
    typed: Typed,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Shop]:
    """Start all of it; at the end no Envoy has refused anything."""
    root = tmp_path_factory.mktemp("places")
    define(node_administrator, typed, root)
    with namespaced(node_administrator) as kubectl:
        kubectl.apply(*_objects(kubectl.namespace))
        address = str(kubectl.get("service", "shop")["spec"]["clusterIP"])
        program = Program(root / "state", root / "files", Networked(typed, real_node.inside.network_file))
        premises = texts.workload(
            "premises", MACHINES["premises"], app="shop", account="shop", namespace=kubectl.namespace
        )
        (program.mesh / "mesh.yaml").write_text(premises)
        program.reads += ("--kubernetes", "--kubeconfig", str(real_node.cluster.kubeconfig))
        async with AsyncExitStack() as ends:
            ends.callback(program.end)
            flags = ("--namespaces", kubectl.namespace)
            meshed = await Meshed.start(real_node, kubectl, program, ends, *flags)

            def named(name: str, account: str) -> ProxyName:
                return ProxyName.parse(f"{name}.{account}.{kubectl.namespace}")

            await asyncio.gather(
                meshed.run(named("pod", "shop"), named(BUYER, BUYER)),
                *(meshed.join(named(name, "shop"), at) for name, at in MACHINES.items()),
            )
            yield Shop(meshed, kubectl, address)
            for name, refused in (await meshed.rejected()).items():
                assert all(line.endswith(": 0") for line in refused.splitlines()), name


async def test_a_pod_a_vm_and_a_process_on_the_premises_serve_one_service(shop: Shop) -> None:
    """Each gets its share of the calls; a Pod whose probe fails gets none until it does no longer."""
    await shop.answers_from(*PLACES)
    assert set(await shop.meshed.answering(BUYER, shop.address, 60)) == set(PLACES)
    await shop.at_the_pod(*containers.away())
    await shop.answers_from(*MACHINES)
    await shop.at_the_pod(*containers.back())
    await shop.answers_from(*PLACES)


async def test_no_call_is_lost_while_the_api_server_is_killed_and_comes_back(shop: Shop) -> None:
    """Nor is history of any use to whoever comes back; what changes afterwards is followed as before."""
    cluster = shop.meshed.node.cluster
    await shop.answers_from(*PLACES)
    async with load(shop.bought, 1) as calls:
        await calls.more(20)
        await asyncio.to_thread(cluster.api.kill)
        try:
            await calls.more(100)
            await asyncio.to_thread(cluster.compact)
        finally:
            await asyncio.to_thread(cluster.api.again)
        await calls.more(100)
        await shop.at_the_pod(*containers.away())

        async def has_gone() -> bool:
            return "pod" not in await calls.more(12)

        await until(has_gone, _SECONDS)
        assert set(await calls.more(40)) == set(MACHINES)
    assert set(calls.every) == set(PLACES), calls.every
    await shop.at_the_pod(*containers.back())
    await shop.answers_from(*PLACES)


async def test_no_call_is_lost_when_the_pod_is_deleted_nor_when_it_is_made_again(shop: Shop) -> None:
    """Who calls knows that it goes before it does."""
    await shop.answers_from(*PLACES)
    async with load(shop.bought, 1) as calls:
        await calls.more(20)
        await asyncio.to_thread(shop.kubectl, "delete", "pod", "pod")
        assert set(await calls.more(40)) == set(MACHINES)
        await shop.meshed.run(ProxyName.parse(f"pod.shop.{shop.kubectl.namespace}"))

        async def has_come() -> bool:
            return "pod" in await calls.more(12)

        await until(has_come, _SECONDS)
    assert set(calls.every) == set(PLACES), calls.every
