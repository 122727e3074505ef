"""Test of an endpoint that its callers have ejected, and that is dead because its proxy is gone too."""

from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from meshwright.agent.peers.reporting import LOOK_SECONDS
from meshwright.mesh.workload import Capture, Transparent
from tests.e2e.agent.conftest import missing_for_namespaces
from tests.e2e.agent.mesh_of_machines import V4, Meshed, bound, policy
from tests.e2e.agent.scenes import end
from tests.e2e.policy import applications
from tests.e2e.policy.applications import HTTP
from tests.tools.deadline import until

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(missing_for_namespaces()), reason=missing_for_namespaces() or "it can run"),
]
BOTH = f"""
---
apiVersion: v1
kind: Service
metadata: {{name: both, namespace: default}}
spec:
  clusterIP: 10.96.0.2
  selector: {{kept: by-us}}
  ports: [{{name: web, port: 80, targetPort: {HTTP}, appProtocol: http}}]
---
apiVersion: access.smi-spec.io/v1alpha3
kind: TrafficTarget
metadata: {{name: of-alice, namespace: default}}
spec:
  destination: {{kind: ServiceAccount, name: alice, namespace: default}}
  sources: [{{kind: ServiceAccount, name: shop, namespace: default}}]
  rules: [{{kind: HTTPRouteGroup, name: books}}]
"""
CALLER = "shop-uuid.shop.default"
EJECTED_SECONDS = 2 * LOOK_SECONDS
"""An agent looks for ejected endpoints now and then, and would seldom see a shorter ejection."""


async def test_ejected_endpoint_without_a_proxy_is_dead_until_it_returns(
    envoy: str, tmp_path: Path, ends: AsyncExitStack
) -> None:
    """One of two endpoints is killed.

    No request fails, the caller reports the ejected endpoint, and the endpoint is no longer dead once its
    agent runs again.
    """
    tmp_path.chmod(0o755)
    how = Transparent(Capture.REDIRECT, ipv6=True)
    soon = ("dead_after_seconds=1", f"ejected_seconds={EJECTED_SECONDS}")
    meshed = await Meshed.start(tmp_path, V4, how, envoy, ends, joining=True, settings=soon)
    await applications.start("alice", partial(bound, meshed.machines["alice"], V4), ends)
    meshed.apply(policy("alice", "shop") + BOTH)
    assert (await _alice(meshed))[:2] == ([], False)

    async def called() -> bool:
        status, _ = await meshed.get("shop", "http://10.96.0.2/books")
        return status == 200

    async def has_both() -> bool:
        return await called() and await meshed.stat("shop", "default/both.*membership_healthy") == 2

    await until(has_both)
    meshed.agents["alice"].process.kill()
    await meshed.agents["alice"].process.wait()

    async def is_dead() -> bool:
        # It is readmitted after a while, and ejected again by its active callers.
        assert all([await called() for _ in range(10)])
        return (await _alice(meshed))[1]

    await until(is_dead, 60)
    by, _, why = await _alice(meshed)
    assert by == [CALLER]
    assert why.startswith("dead: disconnected ")
    assert why.endswith(f" ago; ejected by {CALLER}")

    await end(meshed.agents["alice"])
    await meshed.begin("alice")

    async def is_well() -> bool:
        assert await called()
        return (await _alice(meshed)) == ([], False, "")

    await until(is_well, 60)


async def _alice(meshed: Meshed) -> tuple[list[str], bool, str]:
    listed: list[dict[str, Any]] = (await meshed.ask("/debug/proxy"))["proxies"]
    (result,) = (item for item in listed if item["uuid"] == "alice-uuid")
    return result["ejected_by"], result["dead"], result["why"]
