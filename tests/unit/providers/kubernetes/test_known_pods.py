"""Tests of the Pods that a Kubernetes source knows, in the mesh and outside it."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from meshwright.mesh.kinds import NAMESPACE, POD
from meshwright.mesh.names import Namespace
from meshwright.mesh.workload import WorkloadKey
from meshwright.providers.kubernetes.resources import CORE
from meshwright.providers.kubernetes.scope import Scope
from tests.unit.providers.kubernetes import objects
from tests.unit.providers.kubernetes.cluster import Cluster
from tests.unit.providers.kubernetes.test_source import Running, at_work

NAMESPACES, PODS = CORE[NAMESPACE], CORE[POD]
MONITORED = "openservicemesh.io/monitored-by"
CART = WorkloadKey(Namespace("shop"), "cart-1")


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """Run a cluster with one Pod, and another one in a namespace that is never in the mesh."""
    result = Cluster()
    result.put(NAMESPACES, objects.namespace("shop", **{MONITORED: "osm"}))
    result.put(NAMESPACES, objects.namespace("attic"))
    for name, namespace in (("cart-1", "shop"), ("box-1", "attic")):
        result.put(PODS, with_uid(objects.pod(name, namespace=namespace), f"uid-of-{name}"))
    await result.start()
    yield result
    await result.stop()


def with_uid(pod: objects.Raw, uid: str) -> objects.Raw:
    """Return a Pod with this UID."""
    return {**pod, "metadata": {**pod["metadata"], "uid": uid}}


def knows(running: Running, uid: str = "uid-of-cart-1", pod: WorkloadKey = CART) -> bool:
    """Return whether a Pod runs or may run."""
    return running.source.may_have_pod(pod, uid)


async def test_pod_of_a_namespace_that_has_left_the_mesh_runs_on(cluster: Cluster) -> None:
    """The Pod is no object of the mesh any more, and is known until the API server has removed it."""
    async with at_work(cluster, Scope.from_settings(labels=f"{MONITORED}=osm")) as running:
        assert (knows(running), "Pod shop/cart-1" in running.names) == (True, True)
        cluster.put(NAMESPACES, objects.namespace("shop"))
        await running.until(lambda: "Pod shop/cart-1" not in running.names)
        assert knows(running)
        cluster.delete(PODS, "cart-1")
        await running.until(lambda: not knows(running))


async def test_pod_with_another_uid_or_at_its_end_does_not_run(cluster: Cluster) -> None:
    """A StatefulSet uses the name of a Pod again, and a Pod that has ended never runs again."""
    async with at_work(cluster, hold=timedelta(0)) as running:
        assert (knows(running), knows(running, "another")) == (True, False)
        cluster.put(PODS, with_uid(objects.pod("cart-1"), "another"))
        await running.until(lambda: knows(running, "another"))
        assert not knows(running)
        cluster.put(PODS, with_uid(objects.pod("cart-1", phase="Failed"), "another"))
        await running.until(lambda: not knows(running, "another"))


async def test_pod_of_a_namespace_that_is_not_watched_may_run(cluster: Cluster) -> None:
    """With the setting `namespaces` the server does not see other Pods, and so cannot say that they ended."""
    async with at_work(cluster, Scope.from_settings(["shop"])) as running:
        elsewhere = WorkloadKey(Namespace("attic"), "box-1")
        assert (knows(running), knows(running, "another")) == (True, False)
        assert knows(running, "uid-of-box-1", elsewhere)
        assert knows(running, "another", elsewhere)
