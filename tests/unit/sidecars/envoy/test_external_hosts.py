"""Tests of hosts outside the mesh as destinations in a policy."""

from dataclasses import replace
from typing import Any

import pytest

from catalog.policy.values.destinations import ExternalDestination, TlsOrigination
from catalog.policy.values.interception import InterceptionKind
from catalog.policy.values.proxy import ReachableServices
from catalog.policy.values.route_actions import WeightedBackend
from meshwright.admin.pages.proxies import description as describe
from meshwright.mesh.names import IpAddress, Port
from meshwright.mesh.service import ExternalHost
from meshwright.sidecars.contract.driver import Capability
from meshwright.sidecars.document.driver import DocumentDriver
from meshwright.sidecars.envoy.listeners.chain_names import called_service
from meshwright.sidecars.requirements import Requirement, requirements
from tests.golden.policies import calling, external
from tests.meshes.resources import resources
from tests.meshes.route_entries import entry
from tests.unit.sidecars.envoy.test_translate import decoded, only
from xds.protocol.resources.resource import CLUSTER, LISTENER, ROUTE

TLS = TlsOrigination("api.example.org", "roots")
API = external("api.example.org", 443, http=True, tls=TLS)
DATABASE = external("192.0.2.7", 5432, http=False)


def cluster(to: ExternalDestination) -> dict[str, Any]:
    """Return the cluster of a destination."""
    return only(calling(to), CLUSTER)


@pytest.mark.parametrize(
    ("host", "kind", "name"),
    [
        ("api.example.org", "LOGICAL_DNS", "api.example.org:80"),
        ("192.0.2.7", "STATIC", "192.0.2.7:80"),
        ("2001:db8::1", "STATIC", "[2001:db8::1]:80"),
    ],
)
def test_host_name_is_resolved_by_dns_and_an_address_is_static(host: str, kind: str, name: str) -> None:
    """The cluster contains its only endpoint, so it needs no load assignment of its own."""
    result = cluster(external(host, 80, http=True))
    (locality,) = result["loadAssignment"]["endpoints"]
    assert locality["lbEndpoints"] == [
        {"endpoint": {"address": {"socketAddress": {"address": host, "portValue": 80}}}}
    ]
    assert (result["name"], result["loadAssignment"]["clusterName"], result["type"]) == (name, name, kind)


def test_outside_host_receives_no_certificate_of_the_mesh() -> None:
    """The cluster has no secrets of the mesh. With TLS, the host must prove the configured name."""
    assert "transportSocket" not in cluster(external("api.example.org", 80, http=True))
    tls = cluster(API)["transportSocket"]["typedConfig"]
    assert (tls["sni"], "tlsCertificateSdsSecretConfigs" in tls["commonTlsContext"]) == (
        TLS.server_name,
        False,
    )
    assert tls["commonTlsContext"]["validationContext"] == {
        "trustedCa": {"inlineString": "roots"},
        "matchTypedSubjectAltNames": [{"sanType": "DNS", "matcher": {"exact": "api.example.org"}}],
    }
    secrets = [
        reference
        for made in resources(calling(API))
        for reference in made.references
        if "Secret" in reference[0]
    ]
    assert secrets == []
    assert "roots" not in repr(TLS)


def test_calls_reach_an_outside_host_by_route_or_directly() -> None:
    """HTTP has a route configuration and TCP a proxy to the cluster.

    The chain's name is that of no service.
    """
    policy = calling(API, DATABASE)
    (route,) = only(policy, ROUTE)["virtualHosts"][0]["routes"]
    assert (route["name"], route["route"]["cluster"]) == ("host:api.example.org", "api.example.org:443")
    result = [decoded(resource) for resource in resources(policy) if resource.type_url == LISTENER]
    chains = [chain for item in result for chain in item["filterChains"]]
    assert [item["name"] for item in chains] == [
        "outbound_api.example.org_443_http",
        "outbound_192.0.2.7_5432_tcp",
    ]
    assert [called_service(item["name"]) for item in chains] == [None, None]
    http, tcp = (item["filters"][0]["typedConfig"] for item in chains)
    assert http["httpProtocolOptions"]["defaultHostForHttp10"] == "api.example.org"
    assert tcp["cluster"] == "192.0.2.7:5432"


def test_transparent_interception_matches_the_hosts_addresses() -> None:
    """Chains are chosen by known addresses, as for services."""
    policy = calling(DATABASE)
    at = (replace(policy.outbound[0], listen=(), addresses=(IpAddress("192.0.2.7"),)),)
    wanted = replace(
        policy, reachable=(ReachableServices.from_sorted(at),), interception=InterceptionKind.TRANSPARENT
    )
    (chain,) = only(wanted, LISTENER)["filterChains"]
    assert chain["filterChainMatch"] == {
        "prefixRanges": [{"addressPrefix": "192.0.2.7", "prefixLen": 32}],
        "destinationPort": 5432,
    }


def test_outside_host_may_be_a_weighted_backend() -> None:
    """A route to a host may share its requests with another host by weight."""
    policy = calling(API)
    backends = (
        WeightedBackend(API.host, "443", 1),
        WeightedBackend(ExternalHost("other.example.org"), "443", 3),
    )
    called = replace(policy.outbound[0], table=(entry(*backends),))
    result = only(replace(policy, reachable=(ReachableServices.from_sorted((called,)),)), ROUTE)[
        "virtualHosts"
    ][0]["routes"][0]["route"]
    shares = [(item["name"], item["weight"]) for item in result["weightedClusters"]["clusters"]]
    assert shares == [("api.example.org:443", 1), ("other.example.org:443", 3)]


def test_outside_hosts_need_a_driver_with_the_capability() -> None:
    """The document leaves such hosts out, because they have no certificate that its readers could verify."""
    policy = calling(API)
    assert Requirement(Capability.EXTERNAL_DESTINATIONS, API.host) in requirements(policy)
    assert Capability.EXTERNAL_DESTINATIONS not in DocumentDriver().capabilities
    (made,) = (resource for piece in DocumentDriver().pieces(policy) for resource in piece.resources())
    assert b'"outbound":[]' in made.body


def test_outside_hosts_are_described_on_every_page() -> None:
    """Listeners, routes and clusters have their host, port and TLS name; they have no endpoints."""
    policy = calling(API, DATABASE)
    messages = [item["text"] for page in (describe.listeners, describe.routes) for item in page(policy)]
    assert messages == [
        "outbound api.example.org:443, http, at 127.0.90.1:9000",
        "outbound 192.0.2.7:5432, tcp, at 127.0.90.1:9001",
        "outbound api.example.org:443: everything -> api.example.org port 443",
        "outbound 192.0.2.7:5432: everything -> 192.0.2.7 port 5432",
    ]
    assert describe.clusters(policy) == [
        {
            "direction": "outbound",
            "host": "api.example.org",
            "port": Port(443),
            "http": True,
            "server_name": "api.example.org",
            "text": "outbound api.example.org port 443, HTTP, over TLS as api.example.org, outside the mesh",
        },
        {
            "direction": "outbound",
            "host": "192.0.2.7",
            "port": Port(5432),
            "http": False,
            "server_name": None,
            "text": "outbound 192.0.2.7 port 5432, TCP, outside the mesh",
        },
    ]
    assert describe.endpoints(policy) == []
