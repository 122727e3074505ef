"""Tests of the source on a real API server whose controllers create EndpointSlices."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from catalog.relations.backends.endpoints import endpoints
from catalog.relations.backends.readiness import taking_traffic
from catalog.store.view import MeshSettings, View
from meshwright.kube.api import Api
from meshwright.kube.connection.connection import find_connection
from meshwright.mesh.names import Namespace, ServiceName
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.workload import Health
from meshwright.providers.kubernetes.scope import Scope
from meshwright.providers.kubernetes.source import KubernetesSource
from tests.kubernetes.tools import objects
from tests.kubernetes.tools.kubectl import Kubectl
from tools.real_parts.cluster import RunningCluster

SECONDS = 90.0


class Looking:
    """A source of one namespace, and the catalog's view of its objects."""

    def __init__(self, source: KubernetesSource, namespace: str) -> None:
        self.source = source
        self.namespace = Namespace(namespace)
        self._other = asyncio.Event()

    def changed(self) -> None:
        """Record a change."""
        self._other.set()

    def places(self, service: str, *, taking: bool = False) -> dict[str, Health]:
        """Return the endpoints of a Service's first port and their health: all, or those with traffic."""
        view = View.build(self.source.objects(), MeshSettings())
        key = ServiceKey(self.namespace, ServiceName(service))
        if key not in view.services:
            return {}
        port = view.services[key].ports[0]
        there = (taking_traffic if taking else endpoints)(view, key, port)
        return {f"{endpoint.address}:{endpoint.port}": endpoint.health for endpoint in there}

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds."""
        async with asyncio.timeout(SECONDS):
            while not holds():
                self._other.clear()
                await self._other.wait()


@contextlib.asynccontextmanager
async def looking(
    cluster: RunningCluster, namespace: str, kubeconfig: Path | None = None
) -> AsyncIterator[Looking]:
    """Run a source of one namespace, which believes an empty answer at once; by default as administrator."""
    async with Api(find_connection(kubeconfig or cluster.kubeconfig, "")) as api:
        source = KubernetesSource(
            api,
            Scope.from_settings([namespace]),
            lambda: datetime.now(UTC),
            discover=timedelta(seconds=1),
            hold=timedelta(),
        )
        await source.first()
        look = Looking(source, namespace)
        work = asyncio.create_task(source.run(look.changed))
        try:
            yield look
        finally:
            work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await work


async def do(kubectl: Callable[..., Any], *given: Any) -> None:
    """Run a kubectl function while the source goes on."""
    await asyncio.to_thread(kubectl, *given)


async def test_pod_and_its_slice_are_one_endpoint_through_its_life(
    shared_cluster: RunningCluster, kubectl: Kubectl, namespace: str
) -> None:
    """The Pod is unready, ready, draining and deleted in turn, and is never counted twice."""
    async with looking(shared_cluster, namespace) as look:
        await do(kubectl.apply, objects.service("shop"), objects.pod("shop-1", app="shop", uuid="shop-1"))
        await do(kubectl.status, objects.runs("shop-1", "10.200.0.1", ready=False))
        await look.until(lambda: look.places("shop") == {"10.200.0.1:8080": Health.UNREADY})
        assert look.places("shop", taking=True) == {}
        await do(kubectl.status, objects.runs("shop-1", "10.200.0.1"))
        await look.until(lambda: look.places("shop", taking=True) == {"10.200.0.1:8080": Health.READY})
        await do(kubectl, "delete", "pod", "shop-1", "--wait=false")
        await look.until(lambda: look.places("shop", taking=True) == {"10.200.0.1:8080": Health.DRAINING})
        await do(kubectl, "delete", "pod", "shop-1", "--force", "--grace-period=0")
        await look.until(lambda: look.places("shop") == {})
        assert [problem for problem in look.source.problems() if problem.severity != "info"] == []


async def test_named_target_port_is_resolved_for_each_pod(
    shared_cluster: RunningCluster, kubectl: Kubectl, namespace: str
) -> None:
    """Two Pods have different numbers for the same name. A name that no Pod has gives no endpoint."""
    lacking = objects.service("lacking", target="nowhere", app="shop")
    async with looking(shared_cluster, namespace) as look:
        pods = [
            objects.pod(f"shop-{port}", app="shop", uuid=f"shop-{port}", port=port) for port in (8081, 8082)
        ]
        await do(kubectl.apply, objects.service("shop", target="http"), lacking, *pods)
        await do(
            kubectl.status, objects.runs("shop-8081", "10.200.0.1"), objects.runs("shop-8082", "10.200.0.2")
        )
        both = {"10.200.0.1:8081": Health.READY, "10.200.0.2:8082": Health.READY}
        await look.until(lambda: look.places("shop", taking=True) == both)
        slices = await asyncio.to_thread(
            kubectl.until,
            lambda got: len(got["items"]) >= 2,
            "endpointslices",
            "-l",
            "kubernetes.io/service-name=shop",
        )
        assert {port["port"] for item in slices["items"] for port in item["ports"]} == {8081, 8082}
        assert look.places("shop") == both
        assert look.places("lacking") == {}


async def test_headless_manual_and_external_name_services_are_read(
    shared_cluster: RunningCluster, kubectl: Kubectl, namespace: str
) -> None:
    """A Service may publish unready Pods, or have a manual slice.

    An ExternalName is reported as unsupported.
    """
    peers, by_hand, external = (objects.service(name) for name in ("peers", "by-hand", "external"))
    peers["spec"] |= {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"app": "shop"}}
    del by_hand["spec"]["selector"]
    external["spec"] = {"type": "ExternalName", "externalName": "example.com"}
    manual = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "by-hand-1", "labels": {"kubernetes.io/service-name": "by-hand"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.200.0.1"], "zone": "a"}],
        "ports": [{"name": "http", "port": 8080}],
    }
    async with looking(shared_cluster, namespace) as look:
        await do(
            kubectl.apply, peers, by_hand, external, manual, objects.pod("shop-1", app="shop", uuid="shop-1")
        )
        await do(kubectl.status, objects.runs("shop-1", "10.200.0.1", ready=False))
        await look.until(lambda: look.places("peers", taking=True) == {"10.200.0.1:8080": Health.READY})
        await look.until(lambda: look.places("by-hand") == {"10.200.0.1:8080": Health.UNREADY})
        await do(kubectl.status, objects.runs("shop-1", "10.200.0.1"))
        await look.until(lambda: look.places("by-hand", taking=True) == {"10.200.0.1:8080": Health.READY})
        assert look.places("external") == {}
        assert {(problem.code, str(problem.key)) for problem in look.source.problems()} == {
            ("MW1020", f"Service {namespace}/external")
        }
