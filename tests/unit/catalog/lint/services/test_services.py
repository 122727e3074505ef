"""Tests of lint for workloads without a Service, and for objects of namespaces outside the mesh."""

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
    """Return code and value of each problem of a workload without a Service."""
    return [(problem.code, problem.value) for problem in problems(a.view(workload))]


def test_client_without_a_service_has_no_problem() -> None:
    """A pod that names no Service has no problem; a Service that a workload names must exist."""
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
def test_object_of_a_namespace_outside_the_mesh_is_reported_with_settings(thing: object, code: str) -> None:
    """The cluster may have the object, so the problem names the settings that choose namespaces."""
    (problem,) = (item for item in problems(a.view(thing)) if item.code == code)
    assert OUTSIDE in problem.expected
