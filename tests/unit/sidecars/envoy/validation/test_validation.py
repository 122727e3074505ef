"""Tests of Envoy's rules, checked before delivery: exactly the messages that Envoy rejects have faults."""

import importlib
from hashlib import blake2b
from pathlib import Path
from typing import cast

import pytest
from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.wrappers_pb2 import UInt32Value

import protos
from meshwright.sidecars.envoy.validation import Step, UnknownRuleError, faults, messages, prepare
from protos.envoy.config.cluster.v3 import circuit_breaker_pb2, cluster_pb2, outlier_detection_pb2
from protos.envoy.config.core.v3 import address_pb2, base_pb2
from protos.envoy.config.core.v3 import protocol_pb2 as core_protocol_pb2
from protos.envoy.config.endpoint.v3 import endpoint_components_pb2, endpoint_pb2
from protos.envoy.config.listener.v3 import listener_components_pb2, listener_pb2
from protos.envoy.config.rbac.v3 import rbac_pb2
from protos.envoy.config.route.v3 import route_components_pb2, route_pb2
from protos.envoy.extensions.filters.http.rbac.v3 import rbac_pb2 as http_rbac_pb2
from protos.envoy.extensions.filters.http.router.v3 import router_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)
from protos.envoy.extensions.filters.network.tcp_proxy.v3 import tcp_proxy_pb2
from protos.envoy.extensions.transport_sockets.tls.v3 import common_pb2, secret_pb2, tls_pb2
from protos.envoy.type.matcher.v3 import path_pb2, regex_pb2, string_pb2
from protos.validate import validate_pb2

NAMED = cluster_pb2.Cluster(name="c")


def said(message: Message) -> list[str]:
    """Return the faults of a message as lines."""
    return [str(fault) for fault in faults(message)]


def packed(message: Message) -> any_pb2.Any:
    """Pack a message."""
    wrapped = any_pb2.Any()
    wrapped.Pack(message)
    return wrapped


def regex(text: str) -> regex_pb2.RegexMatcher:
    """Return a matcher of an expression."""
    return regex_pb2.RegexMatcher(regex=text)


def per_route(permission: rbac_pb2.Permission) -> route_pb2.RouteConfiguration:
    """Return a route configuration with one policy, `shop/x`, and one permission."""
    anybody = rbac_pb2.Principal(any=True)
    policy = rbac_pb2.Policy(permissions=[permission], principals=[anybody])
    rules = http_rbac_pb2.RBAC(rules=rbac_pb2.RBAC(policies={"shop/x": policy}))
    return route_pb2.RouteConfiguration(
        name="r", typed_per_filter_config={"rbac": packed(http_rbac_pb2.RBACPerRoute(rbac=rules))}
    )


IN_RULES = "typed_per_filter_config[rbac].rbac.rules.policies[shop/x]"


def test_fault_names_policy_permission_and_field() -> None:
    """Its path leads through maps, lists and an Any, as steps and as text."""
    empty_name = rbac_pb2.Permission(header=route_components_pb2.HeaderMatcher(name="", present_match=True))
    (fault,) = faults(per_route(empty_name))
    assert fault.path == f"{IN_RULES}.permissions[0].header.name"
    assert fault.steps[3] == Step("policies", "shop/x")
    assert fault.steps[4] == Step("permissions", 0)
    assert fault.expected == "must not be empty"


def locality(*weights: int) -> endpoint_components_pb2.LocalityLbEndpoints:
    """Return the endpoints of one locality with these weights."""
    address = address_pb2.Address(socket_address=address_pb2.SocketAddress(address="10.0.0.1", port_value=1))
    return endpoint_components_pb2.LocalityLbEndpoints(
        lb_endpoints=[
            endpoint_components_pb2.LbEndpoint(
                endpoint=endpoint_components_pb2.Endpoint(address=address),
                load_balancing_weight=UInt32Value(value=weight),
            )
            for weight in weights
        ]
    )


def cluster_at(host: str, kind: cluster_pb2.Cluster.DiscoveryType) -> cluster_pb2.Cluster:
    """Return a cluster with one endpoint."""
    made = cluster_pb2.Cluster(name="c", type=kind)
    endpoint = made.load_assignment.endpoints.add().lb_endpoints.add().endpoint
    made.load_assignment.cluster_name = "c"
    endpoint.address.socket_address.CopyFrom(address_pb2.SocketAddress(address=host, port_value=1))
    return made


def weighted(*weights: int) -> route_components_pb2.WeightedCluster:
    """Return weighted clusters with these weights."""
    one = route_components_pb2.WeightedCluster.ClusterWeight
    return route_components_pb2.WeightedCluster(
        clusters=[one(name="c", weight=UInt32Value(value=weight)) for weight in weights]
    )


def tcp_shares(*weights: int) -> tcp_proxy_pb2.TcpProxy:
    """Return a TCP proxy to weighted clusters."""
    share = tcp_proxy_pb2.TcpProxy.WeightedCluster.ClusterWeight
    clusters = [share(name="c", weight=weight) for weight in weights]
    weighted_clusters = tcp_proxy_pb2.TcpProxy.WeightedCluster(clusters=clusters)
    return tcp_proxy_pb2.TcpProxy(stat_prefix="t", weighted_clusters=weighted_clusters)


def hosts(*domains: str) -> route_pb2.RouteConfiguration:
    """Return virtual hosts with one domain each."""
    return route_pb2.RouteConfiguration(
        virtual_hosts=[
            route_components_pb2.VirtualHost(name=f"v{index}", domains=[domain])
            for index, domain in enumerate(domains)
        ]
    )


def chain(port: int, *prefixes: str) -> listener_components_pb2.FilterChain:
    """Return a filter chain for a port and addresses."""
    match = listener_components_pb2.FilterChainMatch(
        destination_port=UInt32Value(value=port),
        prefix_ranges=[
            address_pb2.CidrRange(address_prefix=prefix, prefix_len=UInt32Value(value=32))
            for prefix in prefixes
        ],
    )
    return listener_components_pb2.FilterChain(filter_chain_match=match)


def route(match: route_components_pb2.RouteMatch) -> route_components_pb2.Route:
    """Return a route with a direct response."""
    answer = route_components_pb2.DirectResponseAction(status=200)
    return route_components_pb2.Route(match=match, direct_response=answer)


WRONG: tuple[tuple[Message, str], ...] = (
    # The rules of the API, one of each kind.
    (cluster_pb2.Cluster(), "name: must not be empty"),
    (regex_pb2.RegexMatcher(), "regex: must not be empty"),
    (per_route(rbac_pb2.Permission()), "permissions[0].rule: is missing; must be one of and_rules, or_rules"),
    (
        per_route(rbac_pb2.Permission(and_rules=rbac_pb2.Permission.Set())),
        "permissions[0].and_rules.rules: must not be empty",
    ),
    (rbac_pb2.Policy(permissions=[rbac_pb2.Permission(any=True)]), "principals: must not be empty"),
    (
        route_components_pb2.HeaderMatcher(name="a\nb"),
        r"name: must be the name of a header, not 'a\nb'",
    ),
    (
        base_pb2.HeaderValue(key="k", value="a\x00"),
        r"value: must be the value of a header, on one line, not 'a\x00'",
    ),
    (base_pb2.HeaderValue(key="k" * 16385), "key: must have at most 16384 bytes, not 'kkk"),
    (base_pb2.HeaderValue(key="é" * 8193), "key: must have at most 16384 bytes"),
    (
        address_pb2.SocketAddress(address="10.0.0.1", port_value=65536),
        "port_value: must be at most 65535, not 65536",
    ),
    (address_pb2.SocketAddress(address="10.0.0.1"), "port_specifier: is missing"),
    (address_pb2.Address(), "address: is missing"),
    (
        listener_components_pb2.FilterChainMatch(destination_port=UInt32Value(value=0)),
        "destination_port: must be at least 1, not 0",
    ),
    (cluster_pb2.Cluster(name="c", lb_policy=99), "lb_policy: must be a value of LbPolicy, not 99"),  # type: ignore[arg-type]
    (
        cluster_pb2.Cluster(name="c", connect_timeout=Duration()),
        "connect_timeout: must be above 0 s",
    ),
    (outlier_detection_pb2.OutlierDetection(interval=Duration(nanos=-1)), "interval: must be above 0 s"),
    (
        outlier_detection_pb2.OutlierDetection(max_ejection_percent=UInt32Value(value=101)),
        "max_ejection_percent: must be at most 100, not 101",
    ),
    (route_components_pb2.VirtualHost(name="v"), "domains: must not be empty"),
    (
        route_components_pb2.VirtualHost(name="v", domains=["*"], routes=[route_components_pb2.Route()]),
        "routes[0].match: is missing",
    ),
    (
        hcm_pb2.HttpConnectionManager(stat_prefix="h", codec_type=9),  # type: ignore[arg-type]
        "codec_type: must be a value of CodecType, not 9",
    ),
    (
        circuit_breaker_pb2.CircuitBreakers(
            thresholds=[circuit_breaker_pb2.CircuitBreakers.Thresholds(priority=7)]  # type: ignore[arg-type]
        ),
        "thresholds[0].priority: must be a value of RoutingPriority, not 7",
    ),
    (tls_pb2.UpstreamTlsContext(sni="s" * 256), "sni: must have at most 255 bytes"),
    (tcp_shares(0), "weighted_clusters.clusters[0].weight: must be at least 1"),
    (
        common_pb2.SubjectAltNameMatcher(san_type=common_pb2.SubjectAltNameMatcher.SanType.EMAIL),
        "matcher: is missing",
    ),
    (
        core_protocol_pb2.KeepaliveSettings(timeout=Duration(seconds=1), interval=Duration(nanos=999)),
        "interval: must be at least 0.001 s",
    ),
    (
        core_protocol_pb2.QuicKeepAliveSettings(initial_interval=Duration(nanos=9)),
        "0.001 s, or must be at most 0 s",
    ),
    # What Envoy's code checks.
    (regex(r"/caf\é"), r"regex: must be a regular expression of RE2: invalid escape sequence: \é"),
    (regex(r"/[\b]x"), "regex: must be a regular expression of RE2: invalid escape sequence"),
    (regex("(" * 5), "regex: must be a regular expression of RE2: missing )"),
    (regex("x{1001}"), "regex: must be a regular expression of RE2: invalid repetition size: {1001}"),
    (regex("x" * 70_000), "regex: must be a smaller regular expression: 70004 instructions"),
    (
        per_route(
            rbac_pb2.Permission(
                url_path=path_pb2.PathMatcher(path=string_pb2.StringMatcher(safe_regex=regex("(")))
            )
        ),
        f"{IN_RULES}.permissions[0].url_path.path.safe_regex.regex: must be a regular expression of RE2",
    ),
    (
        route(route_components_pb2.RouteMatch(safe_regex=regex("a**"))),
        "match.safe_regex.regex: must be a regular expression of RE2: bad repetition operator: **",
    ),
    (
        address_pb2.SocketAddress(address="fe80::1%eth9x.y", port_value=1),
        "address: must be an IP address, not 'fe80::1%eth9x.y'",
    ),
    (address_pb2.SocketAddress(address="here", port_value=1), "address: must be an IP address"),
    (
        cluster_at("here", cluster_pb2.Cluster.DiscoveryType.STATIC),
        "endpoints[0].lb_endpoints[0].endpoint.address.socket_address.address: must be an IP address",
    ),
    (address_pb2.CidrRange(address_prefix="10.0.0.256"), "address_prefix: must be an IP address"),
    (
        address_pb2.CidrRange(address_prefix="10.0.0.1", prefix_len=UInt32Value(value=33)),
        "prefix_len: must be at most 32, not 33",
    ),
    (weighted(0, 0), "clusters: must have weights that add up to more than 0"),
    (weighted(2**32 - 1, 1), "clusters: must have weights that add up to at most 4294967295, not 4294967296"),
    (tcp_shares(2**32 - 1, 1), "weighted_clusters.clusters: must have weights that add up to at most"),
    (hosts("a", "A"), "virtual_hosts: must not have the same domain twice, not 'a'"),
    (
        listener_pb2.Listener(filter_chains=[chain(1, "10.0.0.1"), chain(1, "10.0.0.1")]),
        "filter_chains: must not have the same match twice",
    ),
    (
        listener_pb2.Listener(filter_chains=[chain(1, "10.0.0.1", "10.0.0.2"), chain(1, "10.0.0.2")]),
        "filter_chains: must not have the same match twice",
    ),
    (
        cluster_pb2.Cluster(name="c", cleanup_interval=Duration(seconds=10**12)),
        "cleanup_interval: must be at",
    ),
    # An Any.
    (any_pb2.Any(type_url="type.googleapis.com/no.Such"), "must contain a message of a known type"),
    (
        any_pb2.Any(type_url="type.googleapis.com/envoy.config.cluster.v3.Cluster", value=b"\xff"),
        "must contain a message of the type in type_url",
    ),
)


@pytest.mark.parametrize(("message", "expected"), WRONG, ids=[item for _, item in WRONG])
def test_message_that_envoy_rejects_has_a_fault(message: Message, expected: str) -> None:
    """The expected fault is found, and the same faults are found when the message is checked again."""
    first = said(message)
    assert [item for item in first if expected in item], first
    assert said(message) == first


RIGHT: tuple[Message, ...] = (
    NAMED,
    core_protocol_pb2.QuicKeepAliveSettings(initial_interval=Duration()),
    core_protocol_pb2.QuicKeepAliveSettings(initial_interval=Duration(seconds=1)),
    cluster_pb2.Cluster(name="c", connect_timeout=Duration(nanos=1)),
    cluster_at("here", cluster_pb2.Cluster.DiscoveryType.LOGICAL_DNS),
    cluster_at("here", cluster_pb2.Cluster.DiscoveryType.STRICT_DNS),
    cluster_at("10.0.0.1", cluster_pb2.Cluster.DiscoveryType.STATIC),
    regex(r"/api/\d+(/.*)?"),
    regex("x" * 4096),
    weighted(0, 1),
    weighted(2**32 - 1, 0),
    tcp_shares(2**32 - 2, 1),
    hosts("a", "b", "*"),
    listener_pb2.Listener(filter_chains=[chain(1, "10.0.0.1"), chain(2, "10.0.0.1")]),
    endpoint_pb2.ClusterLoadAssignment(cluster_name="c", endpoints=[locality(2**32 - 1, 1)]),
    base_pb2.HeaderValue(key="é" * 8192, value=""),
    base_pb2.HeaderValue(key="k", value="a\tb"),
    address_pb2.SocketAddress(address="::ffff:10.0.0.1", port_value=0),
    route(route_components_pb2.RouteMatch(prefix="")),
    tls_pb2.UpstreamTlsContext(sni="s" * 255),
    any_pb2.Any(
        type_url="type.googleapis.com/envoy.config.cluster.v3.Cluster", value=NAMED.SerializeToString()
    ),
)


@pytest.mark.parametrize("message", RIGHT, ids=[item.DESCRIPTOR.name for item in RIGHT])
def test_message_that_envoy_accepts_has_no_fault(message: Message) -> None:
    """The messages have values at the limits, and lack optional fields."""
    assert said(message) == []


def test_every_fault_of_a_message_is_found() -> None:
    """A fault does not hide another, and the path has the index in a list."""
    message = route_components_pb2.VirtualHost(
        name="v",
        domains=["*"],
        routes=[route(route_components_pb2.RouteMatch(safe_regex=regex(item))) for item in ("(", "a", ")")],
    )
    assert [fault.path for fault in faults(message)] == [
        "routes[0].match.safe_regex.regex",
        "routes[2].match.safe_regex.regex",
    ]


def test_fault_never_shows_a_secret() -> None:
    """Bytes and text of fields that the API marks as sensitive are hidden."""
    text = "-----BEGIN PRIVATE KEY-----"
    key = base_pb2.DataSource(inline_string=text, watched_directory=base_pb2.WatchedDirectory())
    secret = secret_pb2.Secret(name="s", tls_certificate=common_pb2.TlsCertificate(private_key=key))
    (fault,) = faults(secret)
    assert fault.path.endswith("private_key.watched_directory.path")
    assert text not in repr(fault)
    marked, value = _sensitive_text("secret")
    (hidden,) = faults(marked)
    assert hidden.value == "(hidden)"
    assert value not in repr(hidden)


def test_long_value_of_a_fault_is_truncated() -> None:
    """The value has at most 80 characters."""
    (fault,) = faults(regex("(" + "x" * 1000))
    assert len(fault.value) <= 80
    assert fault.value.startswith("'(xxx")


def _generated() -> list[FileDescriptor]:
    root = Path(protos.__path__[0])
    names = [path.relative_to(root.parent).with_suffix("") for path in root.rglob("*_pb2.py")]
    return [importlib.import_module(".".join(name.parts)).DESCRIPTOR for name in sorted(names)]


def _messages(of: FileDescriptor | Descriptor) -> list[Descriptor]:
    below = of.nested_types if isinstance(of, Descriptor) else of.message_types_by_name.values()
    return [descriptor for one in below for descriptor in (one, *_messages(one))]


def test_every_rule_of_the_api_is_implemented() -> None:
    """All messages of the generated API can be prepared, so no rule is silently ignored."""
    every = [message for file in _generated() for message in _messages(file) if file.package != "validate"]
    names = prepare(every)
    assert len(names) > 400
    assert {"envoy.config.route.v3.HeaderMatcher", "envoy.config.rbac.v3.Permission"} <= names


def test_generated_api_contains_validation_rules() -> None:
    """Without the options of Envoy's API, no message above could have a fault."""
    field = route_components_pb2.HeaderMatcher.DESCRIPTOR.fields_by_name["name"]
    assert field.GetOptions().Extensions[validate_pb2.rules].string.min_len == 1  # type: ignore[index]


def _dynamic(name: str, rules: validate_pb2.FieldRules, *, sensitive: bool = False) -> type[Message]:
    """Return a new message type with one text field, `text`, under rules."""
    file = descriptor_pb2.FileDescriptorProto(
        name=f"test/{name}.proto", package=f"test.{name}", syntax="proto3"
    )
    file.dependency.extend(["validate/validate.proto", "udpa/annotations/sensitive.proto"])
    field = file.message_type.add(name="Made").field.add(name="text", number=1)
    field.type = descriptor_pb2.FieldDescriptorProto.TYPE_STRING
    field.label = descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL
    options = field.options
    options.Extensions[validate_pb2.rules].CopyFrom(rules)  # type: ignore[index]
    if sensitive:
        from protos.udpa.annotations import sensitive_pb2

        options.Extensions[sensitive_pb2.sensitive] = True  # type: ignore[index]
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"test.{name}.Made"))


def _sensitive_text(value: str) -> tuple[Message, str]:
    rules = validate_pb2.FieldRules(string=validate_pb2.StringRules(max_len=1))
    return _dynamic("sensitive", rules, sensitive=True)(text=value), value


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("email", validate_pb2.FieldRules(string=validate_pb2.StringRules(email=True))),
        ("contains", validate_pb2.FieldRules(string=validate_pb2.StringRules(contains="x"))),
        ("bytes_of_text", validate_pb2.FieldRules(string=validate_pb2.StringRules(len_bytes=3))),
    ],
)
def test_unknown_rule_is_an_error(name: str, rules: validate_pb2.FieldRules) -> None:
    """The error occurs when a type is prepared and when a message is checked, so no rule is ignored."""
    made = _dynamic(name, rules)
    with pytest.raises(UnknownRuleError):
        prepare([cast("Descriptor", made.DESCRIPTOR)])
    with pytest.raises(UnknownRuleError):
        faults(made(text="x"))


def test_equal_bytes_of_another_type_are_checked_again() -> None:
    """The same empty bytes are a valid router and an invalid connection manager."""
    router, manager = any_pb2.Any(), any_pb2.Any()
    router.Pack(router_pb2.Router())
    manager.Pack(hcm_pb2.HttpConnectionManager())
    assert router.value == manager.value
    result = [
        said(listener_components_pb2.Filter(name="f", typed_config=item))
        for item in (router, router, manager, router)
    ]
    assert [bool(item) for item in result] == [False, False, True, False]


def test_part_of_a_message_is_hashed_once_for_each_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The digest used for the look-up is also the one that is stored.

    Parts that are too large have no digest.
    """
    digested = list[bytes]()

    def counted(part: bytes, *, digest_size: int) -> object:
        digested.append(part)
        return blake2b(part, digest_size=digest_size)

    monkeypatch.setattr(messages, "blake2b", counted)
    for _ in range(2):
        assert said(hosts("once.example", "digested.example", f"{'l' * 4096}.example")) == []
        assert len(digested) == 2
        digested.clear()
