"""Servers that sidecars call in plain text, and that stand behind sidecars themselves."""

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
    """Return code, field and value of what is said of a mesh with Service default/opa."""
    view = a.view(a.service("opa"), a.workload("opa", "10.0.0.5", sidecar=sidecar), config)
    return [(each.code, each.field, each.value) for each in problems(view) if each.field.startswith("spec.")]


def asked(host: str) -> MeshConfig:
    """Make the MeshConfig with an authorizer."""
    return MeshConfig(authorization=Authorizer(HostPort(host, 9191), "asked", timedelta(seconds=1)))


@pytest.mark.parametrize(
    "host", ["opa.default", "opa.default.svc", "opa.default.svc.cluster.local", "opa.default.svc.example.org"]
)
def test_a_service_of_the_mesh_takes_no_plain_text(host: str) -> None:
    """By any of its names; without a sidecar it is as good a server as others."""
    assert found(asked(host)) == [("MW2041", AUTHORIZER, f"{host}:9191")]
    assert found(asked(host), sidecar=False) == []


def test_the_collector_is_judged_the_same() -> None:
    """Each by its own field."""
    config = MeshConfig(tracing=Tracing(HostPort("opa.default", 9411)))
    assert found(config) == [("MW2041", COLLECTOR, "opa.default:9411")]


@pytest.mark.parametrize("host", ["opa", "opa.other", "opa.default.example.org", "10.0.0.5", "fd00::5"])
def test_of_others_nothing_is_known(host: str) -> None:
    """A name in the DNS may be anybody's."""
    assert found(asked(host)) == []
