"""Tests of unusual objects of a cluster that no schema prevents."""

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
    """Return whether the buyer may call the shop, by the server's explanation."""
    namespace = buyer.namespace
    answer = result.debug(
        "explain", **{"from": f"{namespace}/buyer", "to": f"{namespace}/shop:80", "path": "/"}
    )
    return bool(answer["policy"] == "allowed")


def _until_served(kubectl: Kubectl) -> None:
    """Wait until a kind is served again, which is some time after its definition is created."""
    kubectl.until_there(TARGETS)


async def test_deleted_kind_loses_its_objects_and_is_followed_when_reinstalled(
    shared_cluster: RunningCluster, kubectl: Kubectl, program: Program, buyer: ProxyName, definitions: str
) -> None:
    """The objects are deleted with the definition.

    When it is installed again, the kind is followed without a restart.
    """
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


async def test_object_in_directory_and_cluster_is_read_from_the_directory(
    shared_cluster: RunningCluster, kubectl: Kubectl, program: Program, buyer: ProxyName
) -> None:
    """The conflict is reported as MW1108.

    When the directory's object is removed, the cluster's one is used at once.
    """
    kubectl.apply(objects.workload("vm", SECOND, "shop", app="shop"))
    here = texts.workload("vm", THIRD, app="shop", account="shop", namespace=kubectl.namespace)
    (program.mesh / "mesh.yaml").write_text(here)
    program.reads = ("--mesh", str(program.mesh))
    async with served(program, buyer, shared_cluster.kubeconfig, FIRST, THIRD) as result:
        assert result.codes()["MW1108"] == 1
        (program.mesh / "mesh.yaml").write_text("")
        await result.until_at(FIRST, SECOND)
        assert result.codes()["MW1108"] == 0


async def test_object_with_thousands_of_entries_is_read_without_delay_to_others(
    shared_cluster: RunningCluster, kubectl: Kubectl, program: Program, buyer: ProxyName
) -> None:
    """The large TrafficTarget takes effect, and changes of other objects arrive meanwhile."""
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
