"""Test of the short form of `make demo-kubernetes`: a buyer, a thief, a store, a rolling update, a Job.

The full form has a separate node; this one uses the node of all tests, and removes its objects again.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from demo.display.verdicts import Verdict, wrong
from demo.kubernetes import images
from demo.kubernetes.cluster import equip
from demo.kubernetes.kubectl import Kubectl, find
from demo.kubernetes.plane import NAMESPACE, SERVERS, Images, Plane
from demo.kubernetes.scenes import Scenes
from demo.kubernetes.store import PodStore, applications, namespaces
from demo.matrix import PHASES
from demo.topology import BOOKBUYER, BOOKTHIEF, STORE_V1
from demo.walk import Walk
from tests.e2e.agent.conftest import missing_for_namespaces
from tools.real_parts.node import Node

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(bool(missing_for_namespaces()), reason=missing_for_namespaces() or "it can run"),
]

_PLACES: Final = (BOOKBUYER, BOOKTHIEF, STORE_V1)


@pytest.fixture
def plane(real_node: Node, tmp_path: Path) -> Iterator[Plane]:
    """Return a control plane to install, which is removed at the end with all applied objects."""
    equip(real_node)
    made = real_node.cluster
    kubectl = Kubectl(find(), made.kubeconfig, tmp_path / "kubectl", made.enter)
    plane = Plane(kubectl, Images(images.MESHWRIGHT, images.MESHWRIGHT, "Never"), tmp_path)
    yield plane
    asyncio.run(_remove(plane))


async def _remove(plane: Plane) -> None:
    names = [namespace["metadata"]["name"] for namespace in namespaces()]
    await plane.kubectl("delete", "namespace", *names, "--ignore-not-found", "--wait=false")
    # Kubernetes looks at a namespace again only after half of the grace period of a Pod that is still in it.
    await plane.kubectl("delete", "deployment", "meshwright", "-n", NAMESPACE, "--ignore-not-found")
    await plane.kubectl("delete", *SERVERS, "--ignore-not-found", "--grace-period=1")
    await plane.uninstall()
    await plane.kubectl("wait", "--for=delete", f"namespace/{NAMESPACE}", "--timeout=390s")


async def _demonstrated(plane: Plane) -> tuple[Verdict, ...]:
    await plane.install()
    await plane.kubectl.apply(namespaces())
    store = PodStore(plane, images.BOOKSTORE, _PLACES)
    try:
        await store.deploy(application for application in applications() if _is_wanted(application))
        await store.wait()
        walked = await Walk(store, print, _nothing, PHASES[:3]).run()
        return (*walked, *await Scenes(store, plane, print).run(("rolling", "job")))
    finally:
        await store.close()


def _is_wanted(document: dict[str, Any]) -> bool:
    workloads = ("bookbuyer", "bookthief", "bookstore")
    return "template" not in document.get("spec", {}) or document["metadata"]["name"] in workloads


async def _nothing(_phase: str) -> list[Verdict]:
    return []


def test_demo_applications_in_pods_see_the_policy_of_osm_manifests(plane: Plane) -> None:
    """The policy is that of Open Service Mesh's manifests.

    No call fails during a rolling update of the called workload.
    """
    verdicts = asyncio.run(_demonstrated(plane))
    assert wrong(verdicts) == ()
    assert len(verdicts) == 3 * (5 + 2) + 5 + 3
