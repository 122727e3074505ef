"""Problems of workloads that stand behind no Service."""

from dataclasses import replace

from catalog.lint.problems import problems
from mesh.names import Port
from mesh.workload import Workload, WorkloadPort
from tests.meshes import values as a

CLIENT = a.workload("client", "10.0.0.5", WorkloadPort(Port(9090)))


def found(workload: Workload) -> list[tuple[str, str]]:
    """Return code and value of what is said of a workload without a Service."""
    return [(each.code, each.value) for each in problems(a.view(workload))]


def test_a_pod_that_is_only_a_client_has_no_problem() -> None:
    """It names no service, and its port is one for metrics; a service that is named must exist."""
    assert found(replace(CLIENT, names_service=False)) == []
    assert found(CLIENT) == [("MW2030", "client")]
