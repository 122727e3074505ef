"""Tests of Services without sidecars: policy, oracle, lint and explanation agree."""

from typing import Any

import pytest

from catalog.lint.codes import Code
from catalog.lint.problems import problems
from catalog.policy.group_policy import proxy_policy
from catalog.relations.groups import group_of
from meshwright.admin.pages.calls.explain import answer
from meshwright.admin.pages.calls.fields import QueryError
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import EndpointSlice
from meshwright.mesh.policies.egress import Egress
from tests.meshes import values as a

BUYER = a.workload("buyer", "10.0.0.9")
API = "10.96.0.1"
KUBERNETES = (
    a.service("kubernetes", a.port(443, 6443, a.TCP), app=None, address=API),
    EndpointSlice("kubernetes", Namespace("default"), "kubernetes", ("192.0.2.1",), (("https", 6443),)),
)
"""The Service of the API server: no selector, and an address that is no workload's."""
PLAIN = (
    a.service("kubernetes", a.port(443, 6443, a.TCP), address=API),
    a.workload("kubernetes", "10.0.0.7", sidecar=False),
)
"""A Service whose Pods have no sidecar."""
WITH_SIDECAR = (PLAIN[0], a.workload("kubernetes", "10.0.0.7"))
BY_ADDRESS = a.egress("api", "buyer", (443, "tcp"), networks=(f"{API}/32",))
BY_NAME = a.egress("api", "buyer", (443, "https"), hosts=("kubernetes.default.svc",))


def explained(to: str, *things: object) -> dict[str, Any]:
    """Explain a call by the buyer."""
    return dict(answer(a.view(BUYER, *things), {"from": "default/buyer", "to": to}, ()))


def is_enforced(*things: object) -> bool:
    """Return whether the buyer's sidecar lets calls out of the mesh at port 443."""
    view = a.view(BUYER, *things)
    buyer = next(workload for key, workload in view.workloads.items() if key.name == "buyer")
    return any(
        outside_port.port == 443 and outside_port.ranges
        for outside_port in proxy_policy(view, group_of(view, buyer)).outside
    )


def is_left_out(*things: object) -> bool:
    """Return whether lint reports an Egress as left out, because it names a host of the mesh."""
    return any(problem.code == Code.EGRESS_TO_MESH.value for problem in problems(a.view(BUYER, *things)))


@pytest.mark.parametrize("egress", [BY_ADDRESS, BY_NAME])
@pytest.mark.parametrize("service", [KUBERNETES, PLAIN])
def test_egress_to_a_service_without_sidecars_is_in_force(
    service: tuple[object, ...], egress: Egress
) -> None:
    """Such a Service is for example the API server, or a database without a sidecar."""
    things = (*service, egress)
    assert is_enforced(*things)
    assert not is_left_out(*things)
    result = explained("default/kubernetes:443", *things)
    assert (result["answer"], result["because"]) == ("allowed", ["Egress default/api"])


@pytest.mark.parametrize("egress", [BY_ADDRESS, BY_NAME])
def test_egress_to_a_service_of_the_mesh_is_left_out_and_reported(egress: Egress) -> None:
    """Every workload of the Service has a sidecar, which accepts no plain text."""
    things = (*WITH_SIDECAR, egress)
    assert not is_enforced(*things)
    assert is_left_out(*things)
    assert explained("default/kubernetes:443", *things)["answer"] == "unreachable"
    with pytest.raises(QueryError, match="ask about default/kubernetes:443"):
        explained(f"{API}:443", *things)


@pytest.mark.parametrize("to", ["default/kubernetes:443", f"{API}:443"])
@pytest.mark.parametrize("service", [KUBERNETES, PLAIN])
def test_missing_egress_to_a_service_without_sidecars_is_printed(
    service: tuple[object, ...], to: str
) -> None:
    """The call may name the Service or its address. With the same Egress the answer is `allowed`."""
    result = explained(to, *service)
    assert result["answer"] == "unreachable"
    (missing,) = result["missing"]
    assert missing["spec"] == {
        "sources": [{"kind": "ServiceAccount", "name": "buyer", "namespace": "default"}],
        "ipAddresses": [f"{API}/32"],
        "ports": [{"number": 443, "protocol": "tcp"}],
    }
    assert any(
        "is Service default/kubernetes, which is outside the mesh" in step["text"] for step in result["steps"]
    )
    assert explained(to, *service, BY_ADDRESS)["answer"] == "allowed"


def test_enable_egress_allows_calls_to_a_service_without_sidecars() -> None:
    """Every destination outside the mesh may be called, whether it is a Service or another address."""
    assert explained("default/kubernetes:443", *KUBERNETES, MeshConfig(egress=True))["answer"] == "allowed"


def test_service_without_workloads_counts_as_a_service_of_the_mesh() -> None:
    """A Deployment scaled to zero does not make its Service one outside the mesh."""
    result = explained("default/kubernetes:443", PLAIN[0])
    assert result["answer"] == "unreachable"
    assert any("No workload with a sidecar belongs to Service" in step["text"] for step in result["steps"])


def test_service_that_a_target_lets_the_client_call_is_left_out_of_its_egress() -> None:
    """Only some Pods of the Service have a sidecar, and a TrafficTarget lets the client call them."""
    things = (
        *PLAIN,
        a.workload("kubernetes-2", "10.0.0.8", app="kubernetes", account="kubernetes"),
        a.tcp_route("any"),
        a.target("t", "buyer", "kubernetes", a.tcp("any")),
        BY_ADDRESS,
    )
    assert not is_enforced(*things)
    assert is_left_out(*things)
