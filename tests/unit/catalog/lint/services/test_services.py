"""Problems of workloads without a Service, and of Services that the mesh does not know."""

from dataclasses import replace

import pytest

from catalog.lint.problems import problems
from meshwright.mesh.names import Port
from meshwright.mesh.policies.mutual_tls import MutualTLS, PlainText, TlsMode
from meshwright.mesh.policies.retries import Retries, Retry
from meshwright.mesh.policies.smi import TrafficTarget
from meshwright.mesh.workload import Workload, WorkloadPort
from tests.meshes import values as a

CLIENT = a.workload("client", "10.0.0.5", WorkloadPort(Port(9090)))


def found(workload: Workload) -> list[tuple[str, str]]:
    """Return code and value of what is said of a workload without a Service."""
    return [(each.code, each.value) for each in problems(a.view(workload))]


def test_a_pod_that_is_only_a_client_has_no_problem() -> None:
    """It names no service, and its port is one for metrics; a service that is named must exist."""
    assert found(replace(CLIENT, names_service=False)) == []
    assert found(CLIENT) == [("MW2030", "client")]


OUTSIDE = "or its namespace is not part of the mesh (settings namespaces and namespace_selector)"
WEB = a.service_key("web", "elsewhere")
SOURCE = TrafficTarget(
    a.policy_key("t"), a.identity("shop"), (a.identity("buyer", "elsewhere"),), (a.tcp("x"),)
)
RETRY = Retry(a.policy_key("r"), a.identity("shop"), (WEB,), Retries(()))
INGRESS = replace(a.ingress("i", ("shop", 8080, "NOTHING")), services=(WEB,))
PLAIN = MutualTLS(a.policy_key("m"), TlsMode.PERMISSIVE, plaintext=PlainText(services=(WEB,)))


@pytest.mark.parametrize(
    ("thing", "code"), [(SOURCE, "MW2008"), (RETRY, "MW2087"), (INGRESS, "MW2063"), (PLAIN, "MW2135")]
)
def test_an_object_of_a_namespace_outside_the_mesh_may_be_there(thing: object, code: str) -> None:
    """The cluster may have it although the mesh does not know it: the settings that decide are named."""
    (said,) = (each for each in problems(a.view(thing)) if each.code == code)
    assert OUTSIDE in said.expected
