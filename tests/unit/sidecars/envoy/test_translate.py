"""Tests of the translation from ProxyPolicy to Envoy resources: properties of any policy."""

import re
from dataclasses import replace
from typing import Any

import pytest
from google.protobuf import any_pb2, json_format
from google.protobuf.message import Message

from catalog.policy.values.destinations import Destination, DestinationEndpoint, ServiceDestination
from catalog.policy.values.inbound import Access, AccessRule, EveryoneInTheMesh, InboundPort, OnlyRules
from catalog.policy.values.interception import InterceptionKind, SocketAddress
from catalog.policy.values.outbound import OutboundService
from catalog.policy.values.proxy import ProxyPolicy, ReachableServices
from catalog.policy.values.route_actions import WeightedBackend
from catalog.policy.values.route_table import RouteEntry
from catalog.policy.values.terms import TlsRange
from meshwright.mesh.config import TlsVersion
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import TRAFFIC_TARGET
from meshwright.mesh.names import IpAddress, Namespace, Port, ServiceAccountName, ServiceName, TrustDomain
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import HTTPMatch, PolicyKey
from meshwright.mesh.service import Protocol, ServiceKey
from meshwright.mesh.workload import Capture, Transparent
from meshwright.sidecars.envoy.listeners.chains import OWN_CHAINS
from meshwright.sidecars.envoy.rules import matching
from protos.envoy.config.cluster.v3 import cluster_pb2
from protos.envoy.config.endpoint.v3 import endpoint_pb2
from protos.envoy.config.listener.v3 import listener_pb2
from protos.envoy.config.route.v3 import route_pb2
from tests.meshes.resources import resources
from tests.meshes.route_entries import entry
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, Resource

DEFAULT = Namespace("default")
SHOP = ServiceKey(DEFAULT, ServiceName("shop"))
BUYER = ServiceIdentity(DEFAULT, ServiceAccountName("buyer"))
KEY = PolicyKey(DEFAULT, "split")


def by(name: str) -> ObjectKey:
    """Return the key of a TrafficTarget."""
    return ObjectKey(TRAFFIC_TARGET, DEFAULT, name)


BY = by("target")
CHAIN = "inbound_default/shop_8080_tcp"
MESSAGES: dict[str, type[Message]] = {
    LISTENER: listener_pb2.Listener,
    ROUTE: route_pb2.RouteConfiguration,
    CLUSTER: cluster_pb2.Cluster,
    ENDPOINT: endpoint_pb2.ClusterLoadAssignment,
}


def policy(
    *,
    inbound: tuple[InboundPort, ...] = (),
    outbound: tuple[OutboundService, ...] = (),
    destinations: tuple[Destination, ...] = (),
    passthrough: bool = False,
) -> ProxyPolicy:
    """Make the policy of a proxy in transparent interception."""
    return ProxyPolicy(
        identity=ServiceIdentity(DEFAULT, ServiceAccountName("shop")),
        primary=SHOP,
        trust_domain=TrustDomain("cluster.local"),
        interception=InterceptionKind.TRANSPARENT,
        tls=TlsRange(TlsVersion.V1_2, TlsVersion.V1_3),
        inbound=inbound,
        reachable=(ReachableServices.from_sorted(outbound, destinations),),
        passthrough=passthrough,
    )


def inbound(access: Access, protocol: Protocol = Protocol.HTTP) -> InboundPort:
    """Make inbound port 8080."""
    where = SocketAddress(IpAddress("127.0.0.1"), Port(8080))
    return InboundPort(Port(8080), protocol, (SHOP,), where, access)


def outbound(protocol: Protocol, *table: RouteEntry) -> OutboundService:
    """Make an outbound service at one address."""
    return OutboundService(SHOP, Port(80), protocol, table, addresses=(IpAddress("10.96.0.1"),))


def backend(name: str, weight: int) -> WeightedBackend:
    """Make a weighted backend."""
    return WeightedBackend(ServiceKey(DEFAULT, ServiceName(name)), "8080", weight)


def names(proxy_policy: ProxyPolicy) -> list[tuple[str, str]]:
    """Return the types and names of a policy's resources."""
    return [(resource.type_url.rpartition(".")[2], resource.name) for resource in resources(proxy_policy)]


def decoded(resource: Resource) -> dict[str, Any]:
    """Decode a resource."""
    message = MESSAGES[resource.type_url]()
    message.ParseFromString(any_pb2.Any.FromString(resource.body).value)
    return json_format.MessageToDict(message)


def only(proxy_policy: ProxyPolicy, type_url: str) -> dict[str, Any]:
    """Return the only resource of a type, decoded."""
    (resource,) = [item for item in resources(proxy_policy) if item.type_url == type_url]
    return decoded(resource)


def test_empty_policy_has_no_resources() -> None:
    """A proxy without calls in either direction has no listener, instead of an empty one."""
    assert resources(policy()) == ()


def test_tcp_port_without_admitted_callers_is_closed() -> None:
    """A TCP port without rules has neither chain nor cluster, while an HTTP port answers 403."""
    assert names(policy(inbound=(inbound(OnlyRules(), Protocol.TCP),))) == []
    assert names(policy(inbound=(inbound(OnlyRules()),))) == [
        ("Cluster", "default/shop|8080|local"),
        ("Listener", "inbound-listener"),
        ("RouteConfiguration", "rds-inbound.8080"),
    ]
    result = only(policy(inbound=(inbound(OnlyRules()),)), ROUTE)
    assert result["typedPerFilterConfig"]["envoy.filters.http.rbac"]["rbac"] == {"rules": {}}


def test_tcp_port_checks_callers_in_handshake_and_rbac() -> None:
    """Two lists have the same callers, so that a mistake in one of them opens nothing."""
    other = ServiceIdentity(DEFAULT, ServiceAccountName("clerk"))
    rules = (
        AccessRule(BY, (BUYER, other)),
        AccessRule(by("u"), (BUYER,)),
    )
    both = [f"spiffe://cluster.local/ns/default/sa/{item}" for item in ("buyer", "clerk")]
    for demanded, admitted in tcp_chains(*rules).values():
        assert demanded == admitted
    assert [demanded for demanded, _ in tcp_chains(*rules).values()] == [both, both[:1], both[1:]]


def test_callers_chain_stays_unchanged_while_it_is_admitted() -> None:
    """Changes for other callers or of the admitting rules end no connections of this caller."""
    clerk, guest = (ServiceIdentity(DEFAULT, ServiceAccountName(item)) for item in ("clerk", "guest"))
    other = by("u")
    changes = (
        (AccessRule(BY, (BUYER,)),),
        (AccessRule(BY, (BUYER, clerk)),),
        (AccessRule(BY, (BUYER, clerk)), AccessRule(other, (BUYER, guest))),
        (AccessRule(other, (BUYER, guest)),),
    )
    mine = f"{CHAIN}_{BUYER}"
    made = [
        {filter_chain["name"]: filter_chain for filter_chain in tcp_listener(*rules)["filterChains"]}
        for rules in changes
    ]
    assert all(result[mine] == made[0][mine] for result in made)
    assert [sorted(result) for result in made] == [
        sorted([CHAIN, mine, *(f"{CHAIN}_{identity}" for identity in more)])
        for more in ((), (clerk,), (clerk, guest), (guest,))
    ]


def test_number_of_own_chains_of_callers_is_limited() -> None:
    """The first callers by name have chains, and the common chain admits all callers."""
    accounts = (ServiceAccountName(f"c{number:04}") for number in range(OWN_CHAINS + 2))
    callers = [ServiceIdentity(DEFAULT, account) for account in accounts]
    result = tcp_chains(AccessRule(BY, tuple(reversed(callers))))
    assert list(result) == [CHAIN, *(f"{CHAIN}_{caller}" for caller in callers[:OWN_CHAINS])]
    assert len(result[CHAIN][0]) == OWN_CHAINS + 2


def tcp_listener(*rules: AccessRule) -> dict[str, Any]:
    """Return the listener of a TCP port with rules."""
    return only(policy(inbound=(inbound(OnlyRules(rules), Protocol.TCP),)), LISTENER)


def tcp_chains(*rules: AccessRule) -> dict[str, tuple[list[str], list[str]]]:
    """Return the callers that handshake and rules admit, by chain of a TCP port."""
    result = {}
    for chain in tcp_listener(*rules)["filterChains"]:
        context = chain["transportSocket"]["typedConfig"]["commonTlsContext"]["combinedValidationContext"]
        sans = context["defaultValidationContext"]["matchTypedSubjectAltNames"]
        policies = chain["filters"][0]["typedConfig"]["rules"]["policies"].values()
        admitted = {
            principal["authenticated"]["principalName"]["exact"]
            for item in policies
            for principal in item["principals"]
        }
        result[chain["name"]] = ([san["matcher"]["exact"] for san in sans], sorted(admitted))
    return result


@pytest.mark.parametrize(
    ("transparent", "inbound_at", "outbound_at"),
    [
        (Transparent(), ["0.0.0.0:15003"], ["0.0.0.0:15001 10.96.0.1"]),
        (Transparent(Capture.TPROXY), ["0.0.0.0:15003", "0.0.0.0:15006 T"], ["0.0.0.0:15001 10.96.0.1"]),
        (
            Transparent(ipv6=True),
            ["0.0.0.0:15003", "[::]:15003"],
            ["0.0.0.0:15001 10.96.0.1", "[::]:15001 fd00::1"],
        ),
        (
            Transparent(Capture.TPROXY, ipv6=True),
            ["0.0.0.0:15003", "[::]:15003", "0.0.0.0:15006 T", "[::]:15006 T"],
            ["0.0.0.0:15001 10.96.0.1", "[::]:15001 fd00::1"],
        ),
    ],
)
def test_each_captured_socket_has_a_listener(
    transparent: Transparent, inbound_at: list[str], outbound_at: list[str]
) -> None:
    """Each family has its own listener with addresses of this family only.

    The listeners of TPROXY are transparent (T).
    """
    both = (IpAddress("10.96.0.1"), IpAddress("fd00::1"))
    called = replace(outbound(Protocol.TCP, entry(backend("a", 1))), addresses=both)
    wanted = replace(policy(inbound=(inbound(OnlyRules()),), outbound=(called,)), transparent=transparent)
    result = [decoded(resource) for resource in resources(wanted) if resource.type_url == LISTENER]
    assert sorted(map(_at, result)) == sorted([*inbound_at, *outbound_at])


def _at(listener: dict[str, Any]) -> str:
    """Return a listener's address, whether it is transparent, and the addresses of its chains."""
    at = listener["address"]["socketAddress"]
    matches = [chain["filterChainMatch"] for chain in listener["filterChains"]]
    addresses = [
        prefix_range["addressPrefix"] for match in matches for prefix_range in match.get("prefixRanges", ())
    ]
    where = SocketAddress(IpAddress(at["address"]), Port(at["portValue"]))
    return " ".join([str(where), *(["T"] if listener.get("transparent") else []), *addresses])


def sans(proxy_policy: ProxyPolicy) -> list[dict[str, Any]]:
    """Return the names that the inbound TLS context accepts."""
    chain, *_ = only(proxy_policy, LISTENER)["filterChains"]
    context = chain["transportSocket"]["typedConfig"]
    assert context["requireClientCertificate"] is True
    validation = context["commonTlsContext"]["combinedValidationContext"]["defaultValidationContext"]
    matchers = validation["matchTypedSubjectAltNames"]
    assert {matcher["sanType"] for matcher in matchers} == {"URI"}
    return [matcher["matcher"] for matcher in matchers]


def test_handshake_accepts_admitted_callers_or_the_trust_domain() -> None:
    """A TCP port with rules accepts exactly its callers.

    Other ports accept every SPIFFE ID of the trust domain.
    """
    rules = OnlyRules((AccessRule(BY, (BUYER,)),))
    exact = [{"exact": "spiffe://cluster.local/ns/default/sa/buyer"}]
    anyone = [{"prefix": "spiffe://cluster.local/"}]
    assert sans(policy(inbound=(inbound(rules, Protocol.TCP_SERVER_FIRST),))) == exact
    assert sans(policy(inbound=(inbound(EveryoneInTheMesh(), Protocol.TCP),))) == anyone
    assert sans(policy(inbound=(inbound(rules),))) == anyone


@pytest.mark.parametrize("identities", [(), (BUYER,)])
def test_client_never_accepts_every_certificate(identities: tuple[ServiceIdentity, ...]) -> None:
    """Without an expected identity, the cluster requires a SPIFFE ID that no certificate has."""
    wanted = ServiceDestination(SHOP, "8080", True, "shop.default.svc.cluster.local", identities, ())
    tls = only(policy(destinations=(wanted,)), CLUSTER)["transportSocket"]["typedConfig"]
    assert tls["sni"] == "shop.default.svc.cluster.local"  # at a TCP port it also identifies the caller
    common = tls["commonTlsContext"]
    assert common["tlsParams"] == {
        "tlsMinimumProtocolVersion": "TLSv1_2",
        "tlsMaximumProtocolVersion": "TLSv1_3",
    }
    validation = common["combinedValidationContext"]["defaultValidationContext"]
    suffix = "ns/default/sa/buyer" if identities else ""
    assert validation["matchTypedSubjectAltNames"] == [
        {"sanType": "URI", "matcher": {"exact": f"spiffe://cluster.local/{suffix}"}}
    ]


def test_backend_of_weight_zero_is_kept_for_http_and_left_out_for_tcp() -> None:
    """Envoy rejects a weight of 0 in a TCP proxy."""
    shares = entry(backend("a", 1), backend("b", 0), backend("c", 2), split=KEY)
    http = only(policy(outbound=(outbound(Protocol.HTTP, shares),)), ROUTE)
    (route,) = http["virtualHosts"][0]["routes"]
    clusters = route["route"]["weightedClusters"]["clusters"]
    assert [(cluster["name"], cluster["weight"]) for cluster in clusters] == [
        ("default/a|8080", 1),
        ("default/b|8080", 0),
        ("default/c|8080", 2),
    ]
    assert route["route"]["timeout"] == "0s"
    tcp = only(policy(outbound=(outbound(Protocol.TCP, shares),)), LISTENER)
    proxy = tcp["filterChains"][0]["filters"][0]["typedConfig"]
    assert [cluster["name"] for cluster in proxy["weightedClusters"]["clusters"]] == [
        "default/a|8080",
        "default/c|8080",
    ]


def test_route_without_backends_answers_503() -> None:
    """Requests that no backend may answer get 503, and later routes stay as they are."""
    nobody = entry(split=KEY, match=HTTPMatch("m", "/beta.*"))
    rest = entry(backend("a", 1))
    result = only(policy(outbound=(outbound(Protocol.HTTP, nobody, rest),)), ROUTE)
    first, second = result["virtualHosts"][0]["routes"]
    assert first["directResponse"] == {"status": 503}
    assert first["match"] == {"safeRegex": {"regex": "/beta.*"}}
    assert second["route"]["cluster"] == "default/a|8080"


def test_listener_of_a_server_first_protocol_inspects_no_bytes() -> None:
    """An inspector would wait for the client's first bytes, while the client waits for the server."""
    shares = entry(backend("a", 1))
    result = only(policy(outbound=(outbound(Protocol.TCP_SERVER_FIRST, shares),)), LISTENER)
    assert [listener_filter["name"] for listener_filter in result["listenerFilters"]] == [
        "envoy.filters.listener.original_dst"
    ]
    assert result["enableReusePort"] is False


def test_egress_adds_a_default_chain_and_ends_loops() -> None:
    """The default chain leads out of the mesh, and a chain ends calls of the listener's own port."""
    result = only(policy(passthrough=True), LISTENER)
    assert result["defaultFilterChain"]["name"] == "outbound-egress-filter-chain"
    (loop,) = result["filterChains"]
    assert loop["filterChainMatch"] == {"destinationPort": 15001}
    assert [name for kind, name in names(policy(passthrough=True)) if kind == "Cluster"] == [
        "blackhole-outbound",
        "passthrough-outbound",
    ]


def test_endpoints_keep_weight_and_locality() -> None:
    """Endpoints are grouped by locality; a weight of 1 is Envoy's default and not written."""
    wanted = ServiceDestination(
        SHOP,
        "8080",
        True,
        "shop",
        (BUYER,),
        (
            DestinationEndpoint(IpAddress("10.0.0.1"), Port(8080), "eu/a/rack-1", 3),
            DestinationEndpoint(IpAddress("10.0.0.2"), Port(8080)),
        ),
    )
    plain, located = only(policy(destinations=(wanted,)), ENDPOINT)["endpoints"]
    assert "locality" not in plain
    assert "loadBalancingWeight" not in plain["lbEndpoints"][0]
    assert located["locality"] == {"region": "eu", "zone": "a", "subZone": "rack-1"}
    assert located["lbEndpoints"][0]["loadBalancingWeight"] == 3


def test_destination_as_called_has_its_own_cluster_without_endpoints() -> None:
    """Such a cluster uses the original destination of the connection."""
    chosen = ServiceDestination(SHOP, "8080", False, "shop", (BUYER,), ())
    proxy_policy = policy(destinations=(chosen, replace(chosen, as_called=True)))
    assert names(proxy_policy) == [
        ("Cluster", "default/shop|8080"),
        ("Cluster", "default/shop|8080|as-called"),
        ("ClusterLoadAssignment", "default/shop|8080"),
    ]
    cluster = only(policy(destinations=(replace(chosen, as_called=True),)), CLUSTER)
    assert (cluster["type"], cluster["lbPolicy"]) == ("ORIGINAL_DST", "CLUSTER_PROVIDED")
    assert cluster["transportSocket"] == only(policy(destinations=(chosen,)), CLUSTER)["transportSocket"]


def test_method_is_matched_literally() -> None:
    """A method with characters of expressions fits only itself."""
    matcher = matching.one_of(("GET", "M.SEARCH", "A|B"))
    expression = matcher.safe_regex.regex
    assert re.fullmatch(expression, "M.SEARCH")
    assert not re.fullmatch(expression, "MXSEARCH")
    assert not re.fullmatch(expression, "A")
    assert matching.one_of(("GET",)).exact == "GET"


def test_equal_policies_make_equal_bytes() -> None:
    """This includes RBAC's map of policies, and the order of rules has no effect."""
    rules = tuple(AccessRule(by(f"t{number}"), (BUYER,)) for number in range(50))
    proxy_policy = policy(inbound=(inbound(OnlyRules(rules)),))
    assert [resource.body for resource in resources(proxy_policy)] == [
        resource.body for resource in resources(proxy_policy)
    ]
    turned = policy(inbound=(inbound(OnlyRules(rules[::-1])),))
    assert [resource.version for resource in resources(turned)] == [
        resource.version for resource in resources(proxy_policy)
    ]


def test_access_log_has_caller_route_and_upstream() -> None:
    """Each HTTP chain logs JSON with the caller's SPIFFE ID."""
    result = only(policy(inbound=(inbound(EveryoneInTheMesh()),)), LISTENER)
    manager = result["filterChains"][0]["filters"][0]["typedConfig"]
    log, tap = manager["accessLog"]
    assert tap["name"] == "tap"
    fields = log["typedConfig"]["logFormat"]["jsonFormat"]
    assert fields["caller"] == "%DOWNSTREAM_PEER_URI_SAN%"
    assert {"start_time", "method", "path", "response_code", "response_flags", "duration", "authority"} < set(
        fields
    )
    assert {"route_name", "upstream_cluster", "upstream_host"} < set(fields)
