"""Requested addresses of the Service of a gateway, at an API server with a range of addresses."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from ipaddress import ip_address, ip_network

import pytest

from meshwright.kube.api import Api
from meshwright.kubernetes.gateways.addresses import ServiceAddresses, requested_addresses
from meshwright.kubernetes.gateways.infrastructure import Document, Home, infrastructure
from meshwright.kubernetes.gateways.parameters import GatewayParameters, ServiceType
from meshwright.mesh.gateway.gateways import GatewayAddress
from tests.meshes import gateway as g
from tests.unit.kube.scripted_api import Line, ReceivedRequest, ScriptedServer, api_of

BEHIND = GatewayParameters(1, ServiceType.CLUSTER_IP)
BALANCED = GatewayParameters(1, ServiceType.LOAD_BALANCER)
GATEWAY = replace(g.gateway("edge"), uid="6f0c")
RANGE = ip_network("10.96.0.0/16")
GOOD, OTHER, TAKEN, OUTSIDE = "10.96.0.9", "10.96.0.10", "10.96.0.1", "192.0.2.1"
CHOSEN = "10.96.0.77"
"""The address that the server chooses if none is requested."""


class Cluster:
    """An API server for one Service: it refuses addresses outside its range, taken ones, and changes."""

    def __init__(self) -> None:
        self.service: Document | None = None
        self.removed = 0

    @property
    def address(self) -> object:
        """The address of the Service."""
        return None if self.service is None else self.service["spec"]["clusterIP"]

    async def play(self, asked: ReceivedRequest, line: Line) -> None:
        """Answer a request."""
        if asked.method == "DELETE":
            self.service, self.removed = None, self.removed + 1
            return await line.answer({"kind": "Status"})
        body = json.loads(asked.body)
        before = self.service if body["metadata"]["name"] == "edge-meshwright" else None
        own = CHOSEN if before is None else before["spec"]["clusterIP"]
        address = body["spec"].setdefault("clusterIP", own)
        is_changed = before is not None and address != own
        if is_changed or ip_address(address) not in RANGE or address == TAKEN:
            return await line.refuse(422, "Invalid", "spec.clusterIP: Invalid value")
        if "dryRun=All" not in asked.path:
            self.service = body
        return await line.answer(body)


@pytest.fixture
async def cluster() -> Cluster:
    """Return a cluster without a Service."""
    return Cluster()


@pytest.fixture
async def api(cluster: Cluster) -> AsyncIterator[Api]:
    """Run the API server of the cluster."""
    async with ScriptedServer(cluster.play) as server, api_of(server) as result:
        yield result


async def apply(api: Api, *addresses: str, parameters: GatewayParameters = BEHIND) -> None:
    """Apply the Service of the gateway."""
    (service,) = (
        item for item in infrastructure(GATEWAY, parameters, Home("home")) if item["kind"] == "Service"
    )
    await ServiceAddresses(api, "manager").apply(service, addresses, parameters)


def test_only_ip_addresses_with_a_value_are_requested() -> None:
    """An unsupported type refuses the Gateway in the status, and an empty value asks for any address."""
    written = (
        GatewayAddress("test/fake-invalid-type", "fake"),
        GatewayAddress("IPAddress", OUTSIDE),
        GatewayAddress("IPAddress"),
        GatewayAddress("IPAddress", GOOD),
    )
    assert requested_addresses(replace(GATEWAY, addresses=written)) == (OUTSIDE, GOOD)


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        ((), CHOSEN),
        ((GOOD,), GOOD),
        ((OUTSIDE, TAKEN, GOOD, OTHER), GOOD),
        ((OUTSIDE,), CHOSEN),
    ],
    ids=["none", "usable", "first usable", "unusable"],
)
async def test_new_service_has_the_first_usable_address(
    cluster: Cluster, api: Api, addresses: tuple[str, ...], expected: str
) -> None:
    """GatewayStaticAddresses: without a usable address the gateway is served at another one."""
    await apply(api, *addresses)
    assert (cluster.address, cluster.removed) == (expected, 0)
    await apply(api, *addresses)
    assert (cluster.address, cluster.removed) == (expected, 0), "nothing has changed"


async def test_service_with_another_address_is_replaced_only_for_a_usable_one(
    cluster: Cluster, api: Api
) -> None:
    """Kubernetes never changes the address of a Service; without a request the Service keeps its address."""
    await apply(api)
    await apply(api, OUTSIDE)
    assert (cluster.address, cluster.removed) == (CHOSEN, 0)
    await apply(api, OUTSIDE, GOOD)
    assert (cluster.address, cluster.removed) == (GOOD, 1)
    await apply(api)
    assert (cluster.address, cluster.removed) == (GOOD, 1)


async def test_load_balancer_is_asked_for_the_first_address(cluster: Cluster, api: Api) -> None:
    """The load balancer decides, and may be outside of the cluster's range."""
    await apply(api, OUTSIDE, GOOD, parameters=BALANCED)
    assert cluster.service is not None
    assert cluster.service["spec"]["loadBalancerIP"] == OUTSIDE
    assert (cluster.address, cluster.removed) == (CHOSEN, 0)
    await apply(api, parameters=BALANCED)
    assert "loadBalancerIP" not in cluster.service["spec"]
