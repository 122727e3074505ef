"""Tests of a Pod, a VM and an external process behind one Service, while parts of the system fail."""

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
    """The shop in its three places and its buyer, which calls the Service's cluster IP."""

    meshed: Meshed
    kubectl: Kubectl
    address: str

    async def bought(self) -> str:
        """Send a request of the buyer to the shop; return the answering place or the status."""
        answer = await self.meshed.get(BUYER, self.address)
        return answer.by or str(answer.status)

    async def answers_from(self, *places: str) -> None:
        """Wait until exactly these places answer."""

        async def those() -> bool:
            result = await self.meshed.answering(BUYER, self.address, 12)
            return set(result) == set(places)

        await until(those, _SECONDS)

    async def at_the_pod(self, *command: str) -> None:
        """Run a command in the application's container of the shop's Pod."""
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
    """Start everything; at the end no Envoy may have rejected an update."""
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


async def test_pod_vm_and_external_process_serve_one_service(shop: Shop) -> None:
    """Each gets a share of the calls. A Pod whose readiness probe fails gets none until it is ready again."""
    await shop.answers_from(*PLACES)
    assert set(await shop.meshed.answering(BUYER, shop.address, 60)) == set(PLACES)
    await shop.at_the_pod(*containers.away())
    await shop.answers_from(*MACHINES)
    await shop.at_the_pod(*containers.back())
    await shop.answers_from(*PLACES)


async def test_killed_api_server_loses_no_call(shop: Shop) -> None:
    """The watch history is compacted meanwhile, so the server must list again.

    Later changes are followed as before.
    """
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


async def test_deleted_and_recreated_pod_loses_no_call(shop: Shop) -> None:
    """Callers stop using the Pod before it ends."""
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
