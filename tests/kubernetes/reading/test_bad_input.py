"""What owners of objects do to a cluster that no schema keeps them from."""

import asyncio
from typing import Final

from meshwright.mesh.identity import ProxyName
from tests.kubernetes.tools import objects
from tests.kubernetes.tools.kubectl import Kubectl
from tests.kubernetes.tools.recorded_stream import Following
from tests.kubernetes.tools.shop import FIRST, SECOND, THIRD, moves, served
from tests.meshes import texts
from tests.tools.program import Program
from tools.real_parts.cluster import RunningCluster

TARGETS: Final = "traffictargets.access.smi-spec.io"
MANY: Final = 5000


def may(result: Following, buyer: ProxyName) -> bool:
    """Say whether the buyer may call the shop, as the server explains it."""
    namespace = buyer.namespace
    answer = result.debug(
        "explain", **{"from": f"{namespace}/buyer", "to": f"{namespace}/shop:80", "path": "/"}
    )
    return bool(answer["policy"] == "allowed")


def _until_served(kubectl: Kubectl) -> None:
    """Wait until a kind is there again, and its objects can be asked for: that is a moment later."""
    kubectl.until_there(TARGETS)


async def test_a_kind_that_is_removed_while_in_use_is_gone_and_may_come_back(
    shared_cluster: RunningCluster, kubectl: Kubectl, program: Program, buyer: ProxyName, definitions: str
) -> None:
    """With its definition go its objects; installed again it is followed without a restart."""
    async with served(program, buyer, shared_cluster.kubeconfig) as result:
        assert may(result, buyer)
        try:
            await asyncio.to_thread(kubectl, "delete", "crd", TARGETS)
            await result.until(lambda: not may(result, buyer))
            await result.until(lambda: not result.failing())
        finally:
            await asyncio.to_thread(kubectl, "apply", "--server-side", "-f", "-", given=definitions)
            await asyncio.to_thread(_until_served, kubectl)
        target = objects.target("buyers", kubectl.namespace, "buyer", "shop", "all")
        await asyncio.to_thread(kubectl.apply, target)
        await result.until(lambda: may(result, buyer))


async def test_an_object_of_two_sources_is_the_directorys_and_that_is_said(
    shared_cluster: RunningCluster, kubectl: Kubectl, program: Program, buyer: ProxyName
) -> None:
    """When it goes from there, the cluster's takes its place at once."""
    kubectl.apply(objects.workload("vm", SECOND, "shop", app="shop"))
    here = texts.workload("vm", THIRD, app="shop", account="shop", namespace=kubectl.namespace)
    (program.mesh / "mesh.yaml").write_text(here)
    program.reads = ("--mesh", str(program.mesh))
    async with served(program, buyer, shared_cluster.kubeconfig, FIRST, THIRD) as result:
        assert result.codes()["MW1108"] == 1
        (program.mesh / "mesh.yaml").write_text("")
        await result.until_at(FIRST, SECOND)
        assert result.codes()["MW1108"] == 0


async def test_an_object_of_thousands_of_entries_holds_nobody_up(
    shared_cluster: RunningCluster, kubectl: Kubectl, program: Program, buyer: ProxyName
) -> None:
    """What it says counts, and what others say meanwhile arrives."""
    target = objects.target("buyers", kubectl.namespace, "buyer", "shop", "all")
    namespace = kubectl.namespace
    strangers = [
        {"kind": "ServiceAccount", "name": f"stranger-{each}", "namespace": namespace} for each in range(MANY)
    ]
    async with served(program, buyer, shared_cluster.kubeconfig) as result:
        target["spec"]["sources"] = [*strangers, *target["spec"]["sources"]]
        await asyncio.to_thread(kubectl.apply, target)
        await moves(kubectl, result, SECOND)
        assert may(result, buyer)
        target["spec"]["sources"] = strangers
        await asyncio.to_thread(kubectl.apply, target)
        await result.until(lambda: not may(result, buyer))
