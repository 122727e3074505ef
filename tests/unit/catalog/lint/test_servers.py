"""Tests of lint for servers that sidecars call in plain text, although they have sidecars."""

from datetime import timedelta

import pytest

from catalog.lint.problems import problems
from meshwright.mesh.config import MeshConfig, Tracing
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.policies.authorization import Authorizer
from tests.meshes import values as a

AUTHORIZER = "spec.traffic.inboundExternalAuthorization.address"
COLLECTOR = "spec.observability.tracing.address"


def found(config: MeshConfig, *, sidecar: bool = True) -> list[tuple[str, str, str]]:
    """Return code, field and value of the problems of a mesh with Service default/opa."""
    view = a.view(a.service("opa"), a.workload("opa", "10.0.0.5", sidecar=sidecar), config)
    return [
        (problem.code, problem.field, problem.value)
        for problem in problems(view)
        if problem.field.startswith("spec.")
    ]


def asked(host: str) -> MeshConfig:
    """Make a MeshConfig with an authorizer."""
    return MeshConfig(authorization=Authorizer(HostPort(host, 9191), "asked", timedelta(seconds=1)))


@pytest.mark.parametrize(
    "host", ["opa.default", "opa.default.svc", "opa.default.svc.cluster.local", "opa.default.svc.example.org"]
)
def test_authorizer_behind_a_sidecar_is_reported(host: str) -> None:
    """A server with a sidecar takes no plain text, so it is reported under each of its names."""
    assert found(asked(host)) == [("MW2041", AUTHORIZER, f"{host}:9191")]
    assert found(asked(host), sidecar=False) == []


def test_collector_behind_a_sidecar_is_reported() -> None:
    """The trace collector is checked like the authorizer, and reported at its own field."""
    config = MeshConfig(tracing=Tracing(HostPort("opa.default", 9411)))
    assert found(config) == [("MW2041", COLLECTOR, "opa.default:9411")]


@pytest.mark.parametrize("host", ["opa", "opa.other", "opa.default.example.org", "10.0.0.5", "fd00::5"])
def test_server_that_is_no_service_of_the_mesh_has_no_problem(host: str) -> None:
    """Other DNS names and addresses may belong to any server, so they are not reported."""
    assert found(asked(host)) == []
