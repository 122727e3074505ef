"""Test of an injected sidecar, started with the rights of its security context."""

import subprocess

import pytest

from meshwright.mesh.config import MeshConfig
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import Namespace
from meshwright.mesh.workload import Capture, Transparent
from meshwright.sidecars.contract.kubernetes import Container, Pod, SecurityContext
from meshwright.sidecars.contract.pod import InjectorContext, PodOs
from meshwright.sidecars.contract.selection import Selection
from meshwright.sidecars.envoy.driver import EnvoyDriver
from meshwright.sidecars.injection.names import SIDECAR_CONTAINER
from tests.e2e.agent.conftest import missing_for_namespaces

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(bool(missing_for_namespaces()), reason=missing_for_namespaces() or "it can run"),
]
AGENT = ["meshwright", "agent"]
NET_RAW = 1 << 13


def _sidecar(how: Transparent) -> Container:
    """Return the sidecar of a pod with this interception."""
    pod: Pod = {
        "metadata": {"name": "store-0"},
        "spec": {"containers": [{"name": "store", "image": "store:1"}]},
    }
    made = EnvoyDriver().patch(
        InjectorContext(
            pod=pod,
            os=PodOs.LINUX,
            namespace=Namespace("shop"),
            mesh_name="mesh",
            control_plane_namespace=Namespace("meshwright-system"),
            proxy=ProxyName.parse("1.store.shop"),
            config=MeshConfig(),
            selection=Selection("envoy", "proxy:1", "", "init:1", 15128),
            interception=how,
        )
    )
    spec = made["spec"]
    every: list[Container] = [*spec.get("initContainers", []), *spec["containers"]]  # it may be in either
    return next(item for item in every if item["name"] == SIDECAR_CONTAINER)


def _confined(security: SecurityContext) -> list[str]:
    """Return a command prefix that sets the user and rights of a security context, like a runtime."""
    added = [f"+{item.lower()}" for item in security["capabilities"].get("add", ())]
    user = ["--reuid", str(security["runAsUser"]), "--regid", str(security["runAsGroup"]), "--clear-groups"]
    assert security["capabilities"]["drop"] == ["ALL"]
    assert security["allowPrivilegeEscalation"] is False
    bounds = ["--bounding-set", ",".join(["-all", *added]), "--inh-caps", "-all", "--no-new-privs"]
    return ["setpriv", *bounds, *user, "--"]


@pytest.mark.parametrize(
    ("how", "expected"), [(Transparent(), 0), (Transparent(Capture.TPROXY, ipv6=True), NET_RAW)]
)
def test_agent_runs_as_the_proxy_user_with_only_the_needed_capability(
    how: Transparent, expected: int
) -> None:
    """With TPROXY, the agent and its children have NET_RAW alone, and otherwise no capability."""
    sidecar = _sidecar(how)
    assert sidecar["command"][-2:] == AGENT
    begun = [*_confined(sidecar["securityContext"]), *sidecar["command"][:-2]]
    shown = subprocess.run(
        [*begun, "sh", "-c", "id -u; id -g; sed -n 's/^CapEff:\\t*//p; s/^CapPrm:\\t*//p' /proc/self/status"],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    ).stdout.split()
    assert shown[:2] == ["1500", "1500"]
    assert [int(item, 16) for item in shown[2:]] == [expected, expected]
