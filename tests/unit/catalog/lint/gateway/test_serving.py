"""Lint of the places at which Gateways are served: workloads, addresses and ports."""

from dataclasses import replace

import pytest

import catalog.lint.problems
from catalog.store.edits import Edits
from catalog.store.view import View
from meshwright.mesh.gateway.gateways import AGENT_PORT, GatewayAddress
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject, ObjectKey, SourcedObject
from meshwright.mesh.origins import InCluster
from meshwright.sidecars.layout import STATUS_PORT
from tests.meshes import gateway as g
from tests.meshes import values as a
from tests.unit.catalog.lint.gateway.test_gateways import serving

CODES = ("MW2190", "MW2191", "MW2192", "MW2193")
IN_CLUSTER = InCluster("east", "1", 1)


def found(mesh: View) -> list[tuple[str, str, str, str, str]]:
    """Return code, severity, field, value and text of the problems with places."""
    return [
        (item.code, item.severity.value, item.field, item.value, item.expected)
        for item in catalog.lint.problems.problems(mesh)
        if item.code in CODES
    ]


def test_address_of_another_type_is_an_error() -> None:
    """The status has UnsupportedAddress too."""
    address = GatewayAddress("Hostname", "edge.example")
    mesh = g.view(serving(), g.CLASS, replace(g.gateway("edge"), addresses=(address,)))
    wanted = (
        "Addresses of this type are not supported (UnsupportedAddress), so the address has no effect. The "
        "type must be IPAddress."
    )
    assert found(mesh) == [("MW2190", "error", "spec.addresses[0].type", "Hostname", wanted)]


def test_address_that_no_workload_has_is_a_warning() -> None:
    """The other address is that of the workload."""
    addresses = (GatewayAddress("IPAddress", "10.0.0.9"), GatewayAddress("IPAddress", "10.0.0.8"))
    mesh = g.view(serving(), g.CLASS, replace(g.gateway("edge"), addresses=addresses))
    wanted = (
        "No workload that serves the Gateway, and no Service of one, has this address (AddressNotUsable), so "
        "the Gateway is not served there, but at 10.0.0.9. Correct or delete the address."
    )
    assert found(mesh) == [("MW2191", "warning", "spec.addresses[1].value", "10.0.0.8", wanted)]


@pytest.mark.parametrize(("other", "severity"), [((a.workload("v1", "10.0.0.2"),), "warning"), ((), "info")])
def test_gateway_without_a_workload_is_reported(other: tuple[object, ...], severity: str) -> None:
    """A mesh without any machine may be of manifests for a cluster, where the control plane runs gateways."""
    mesh = g.view(*other, g.CLASS, g.gateway("edge"))
    wanted = (
        "No workload serves this Gateway, so it answers nothing. On a machine, create a Workload with "
        "`gateway: edge` in namespace default. In a cluster, the control plane creates the proxies (value "
        "gateways.enabled of the chart)."
    )
    assert found(mesh) == [("MW2192", severity, "metadata.name", "edge", wanted)]


def test_gateway_in_a_cluster_is_not_expected_to_have_a_workload() -> None:
    """A Gateway of the cluster, and one from a file that is tried in a cluster."""
    gateway, namespace = g.gateway("edge"), NamespaceObject(Namespace("default"))
    for key, value in (
        (g.key_of(gateway), gateway),
        (ObjectKey.of_namespace(namespace.name), namespace),
    ):
        mesh = g.view(g.CLASS, gateway, a.workload("v1", "10.0.0.2"))
        mesh.apply(Edits(objects={key: SourcedObject(key, value, IN_CLUSTER)}))
        assert found(mesh) == []


def test_gateway_of_another_controller_has_no_such_problem() -> None:
    """Negative control for all of them."""
    gateway = replace(
        g.gateway("edge", g.listener("http", AGENT_PORT), class_name="other"),
        addresses=(GatewayAddress("Hostname", "edge.example"),),
    )
    assert found(g.view(a.workload("v1", "10.0.0.2"), g.FOREIGN_CLASS, gateway)) == []


def test_listener_at_the_port_of_the_agent_is_a_warning() -> None:
    """The agent listens at all addresses, so Envoy could not."""
    assert AGENT_PORT == STATUS_PORT
    mesh = g.view(serving(), g.CLASS, g.gateway("edge", g.listener(), g.listener("own", STATUS_PORT)))
    wanted = (
        "The agent of the proxy answers probes and metrics at this port of all addresses, so the proxy "
        "cannot listen there. Choose another port."
    )
    assert found(mesh) == [("MW2193", "warning", "spec.listeners[1].port", "15020", wanted)]
