"""Tests of gateways and their classes: whole values, and what is tolerated from a cluster."""

import pytest

from meshwright.mesh.gateway.gateways import (
    AllowedRoutes,
    AllowedSets,
    ClientValidation,
    FrontendTls,
    Gateway,
    GatewayAddress,
    GatewayClass,
    GatewayTls,
    Infrastructure,
    Listener,
    ListenerTls,
    ObjectReference,
    RoutesFrom,
    TlsMode,
    ValidationMode,
)
from meshwright.mesh.kinds import CONFIG_MAP, GATEWAY_CLASS, GRPC_ROUTE, HTTP_ROUTE, SECRET, Kind
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import Origin
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.values.label_selector import LabelRequirement, LabelSelector, SelectorOperator
from meshwright.specs.reader import ManifestReading, read
from tests.unit.specs.gateway.manifests import IN_CLUSTER, IN_FILE, faults, manifest, route_of

KEY = PolicyKey(Namespace("shop"), "r")
HTTP = Listener("http", Port(80), "HTTP")
LISTENER = "{name: http, port: 80, protocol: HTTP}"


def of_listeners(listeners: str, origin: Origin = IN_FILE) -> ManifestReading:
    """Read a Gateway with listeners in YAML."""
    return read(manifest("Gateway", f"{{gatewayClassName: edge, listeners: [{listeners}]}}"), origin)


def listener_of(listener: str, origin: Origin = IN_FILE) -> Listener:
    """Return the one listener of a Gateway."""
    (result,) = route_of(of_listeners(listener, origin)).listeners
    assert isinstance(result, Listener)
    return result


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_whole_gateway_is_read_in_both_versions(version: str) -> None:
    """Selectors are sorted, so that their order makes no difference."""
    document = manifest(
        "Gateway",
        """
        gatewayClassName: edge
        listeners:
        - name: http
          port: 80
          protocol: HTTP
          hostname: "*.shop.example"
          allowedRoutes:
            namespaces:
              from: Selector
              selector:
                matchLabels: {team: shop}
                matchExpressions:
                - {key: tier, operator: NotIn, values: [b, a, b]}
                - {key: stage, operator: DoesNotExist}
            kinds: [{kind: HTTPRoute}, {group: "", kind: Custom}]
        - name: https
          port: 443
          protocol: HTTPS
          tls: {certificateRefs: [{name: own}, {group: x.y, kind: Vault, name: b, namespace: c}]}
          allowedRoutes: {namespaces: {from: All}}
        - {name: db, port: 5432, protocol: TLS, tls: {mode: Passthrough}}
        - {name: raw, port: 9000, protocol: TCP}
        addresses: [{value: 192.0.2.1}, {type: Hostname}, {type: example.com/pool, value: any}]
        infrastructure:
          labels: {b: "2", a: "1"}
          annotations: {example.com/note: two words}
          parametersRef: {group: "", kind: ConfigMap, name: sizes}
        """,
        version,
    )
    document["metadata"] |= {"generation": 7, "creationTimestamp": "2026-11-23T08:00:00Z"}
    document["status"] = {"addresses": "anything"}
    reading = read(document, IN_FILE)
    assert reading.problems == ()
    selector = LabelSelector(
        (
            LabelRequirement("stage", SelectorOperator.DOES_NOT_EXIST),
            LabelRequirement("team", SelectorOperator.IN, ("shop",)),
            LabelRequirement("tier", SelectorOperator.NOT_IN, ("a", "b")),
        )
    )
    assert route_of(reading) == Gateway(
        KEY,
        "edge",
        (
            Listener(
                "http",
                Port(80),
                "HTTP",
                "*.shop.example",
                allowed=AllowedRoutes(RoutesFrom.SELECTOR, selector, (HTTP_ROUTE, Kind("Custom"))),
            ),
            Listener(
                "https",
                Port(443),
                "HTTPS",
                tls=ListenerTls(
                    TlsMode.TERMINATE,
                    (
                        ObjectReference(SECRET, "own"),
                        ObjectReference(Kind("Vault", "x.y"), "b", Namespace("c")),
                    ),
                ),
                allowed=AllowedRoutes(RoutesFrom.ALL),
            ),
            Listener("db", Port(5432), "TLS", tls=ListenerTls(TlsMode.PASSTHROUGH)),
            Listener("raw", Port(9000), "TCP"),
        ),
        (
            GatewayAddress("IPAddress", "192.0.2.1"),
            GatewayAddress("Hostname"),
            GatewayAddress("example.com/pool", "any"),
        ),
        Infrastructure(
            (("a", "1"), ("b", "2")),
            (("example.com/note", "two words"),),
            ObjectReference(CONFIG_MAP, "sizes"),
        ),
        7,
        "2026-11-23T08:00:00Z",
    )


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_class_is_read_without_a_namespace(version: str) -> None:
    """A namespace in the manifest of a cluster-wide object has no effect, as in kubectl."""
    spec = (
        "{controllerName: meshwright.dev/gateway-controller, description: ours, "
        "parametersRef: {group: '', kind: ConfigMap, name: sizes, namespace: home}}"
    )
    document = manifest("GatewayClass", spec, version)
    document["metadata"]["generation"] = 2
    expected = GatewayClass(
        "r",
        "meshwright.dev/gateway-controller",
        ObjectReference(CONFIG_MAP, "sizes", Namespace("home")),
        2,
    )
    reading = read(document, IN_FILE)
    assert reading.problems == ()
    assert reading.objects == ((ObjectKey(GATEWAY_CLASS, Namespace(""), "r"), expected),)


def test_unknown_protocol_is_read() -> None:
    """Only its listener is refused, in the status."""
    assert listener_of("{name: a, port: 1, protocol: example.com/custom}").protocol == "example.com/custom"
    assert listener_of("{name: a, port: 1, protocol: INVALID}").protocol == "INVALID"


def test_fields_without_effect_are_noted_in_the_value() -> None:
    """They are a problem only of gateways whose class is ours, so reading reports none."""
    spec = """
        gatewayClassName: edge
        listeners:
        - {name: https, port: 443, protocol: HTTPS, tls: {options: {a: b}}}
        addresses: [{routability: Cluster}]
        defaultScope: All
        """
    for origin in (IN_FILE, IN_CLUSTER):
        reading = read(manifest("Gateway", spec), origin)
        assert reading.problems == ()
        assert route_of(reading).unused == (
            "spec.defaultScope",
            "spec.addresses[0].routability",
            "spec.listeners[0].tls.options",
        )


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{}", None),
        ("{clientCertificateRef: {name: own}}", ObjectReference(SECRET, "own")),
        (
            "{clientCertificateRef: {group: x.y, kind: Vault, name: own, namespace: certs}}",
            ObjectReference(Kind("Vault", "x.y"), "own", Namespace("certs")),
        ),
    ],
    ids=["none", "Secret", "another kind"],
)
def test_client_certificate_is_read(written: str, expected: ObjectReference | None) -> None:
    """A reference to another kind is refused in the status alone."""
    spec = f"{{gatewayClassName: edge, listeners: [{LISTENER}], tls: {{backend: {written}}}}}"
    gateway = Gateway(KEY, "edge", (HTTP,), tls=GatewayTls(expected))
    assert route_of(read(manifest("Gateway", spec), IN_FILE)) == gateway
    assert route_of(read(manifest("Gateway", spec), IN_CLUSTER)) == gateway


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{from: All}", AllowedSets(RoutesFrom.ALL)),
        ("{from: Same}", AllowedSets(RoutesFrom.SAME)),
        ("{from: Selector, selector: {}}", AllowedSets(RoutesFrom.SELECTOR, LabelSelector())),
        ("{from: Selector, selector: {matchLabels: {-a: b}}}", AllowedSets(RoutesFrom.SELECTOR)),
        ("{from: All, selector: {}}", AllowedSets(RoutesFrom.ALL)),
    ],
)
def test_allowed_listener_sets_are_read(written: str, expected: AllowedSets) -> None:
    """The selector counts for `from: Selector` alone, and an unusable one selects no namespace."""
    spec = f"{{gatewayClassName: edge, listeners: [{LISTENER}], allowedListeners: {{namespaces: {written}}}}}"
    gateway = Gateway(KEY, "edge", (HTTP,), allowed_sets=expected)
    assert route_of(read(manifest("Gateway", spec), IN_FILE)) == gateway
    assert route_of(read(manifest("Gateway", spec), IN_CLUSTER)) == gateway


CA = ObjectReference(CONFIG_MAP, "ca")
FAR = ObjectReference(Kind("Vault", "x.y"), "ca", Namespace("certs"))
VALID, INSECURE = ValidationMode.VALID_ONLY, ValidationMode.INSECURE_FALLBACK
FALLBACK = (
    "{validation: {mode: AllowInsecureFallback, caCertificateRefs: [{group: '', kind: ConfigMap, name: ca}]}}"
)
NAMED = "{group: '', kind: ConfigMap, name: ca}, {group: x.y, kind: Vault, name: ca, namespace: certs}"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{default: {}}", FrontendTls()),
        (
            f"{{default: {{validation: {{caCertificateRefs: [{NAMED}]}}}}}}",
            FrontendTls(ClientValidation((CA, FAR), VALID)),
        ),
        (
            f"{{default: {{}}, perPort: [{{port: 8443, tls: {{}}}}, {{port: 443, tls: {FALLBACK}}}]}}",
            FrontendTls(None, ((Port(8443), None), (Port(443), ClientValidation((CA,), INSECURE)))),
        ),
    ],
    ids=["none", "default", "per port"],
)
def test_validation_of_clients_is_read(written: str, expected: FrontendTls) -> None:
    """References to other kinds are refused in the status alone."""
    spec = f"{{gatewayClassName: edge, listeners: [{LISTENER}], tls: {{frontend: {written}}}}}"
    gateway = Gateway(KEY, "edge", (HTTP,), tls=GatewayTls(frontend=expected))
    assert route_of(read(manifest("Gateway", spec), IN_FILE)) == gateway
    assert route_of(read(manifest("Gateway", spec), IN_CLUSTER)) == gateway


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        (
            "{default: {validation: {caCertificateRefs: [{group: '', kind: A, name: a}], depth: 1}}}",
            "spec.tls.frontend.default.validation.depth: unknown field",
        ),
        (
            "{default: {validation: {caCertificateRefs: [{group: '', kind: A, name: a}], mode: New}}}",
            "spec.tls.frontend.default.validation.mode: must be one of",
        ),
        ("{default: {}, byName: []}", "spec.tls.frontend.byName: unknown field"),
        ("{}", "spec.tls.frontend.default: is missing"),
    ],
    ids=["field", "mode", "other rule", "no default"],
)
def test_validation_of_a_cluster_that_cannot_be_read_is_dropped(written: str, fault: str) -> None:
    """A newer CRD can have a rule that would keep a client out."""
    spec = f"{{gatewayClassName: edge, listeners: [{LISTENER}], tls: {{frontend: {written}}}}}"
    reading = read(manifest("Gateway", spec), IN_CLUSTER)
    assert reading.problems == ()
    assert route_of(reading).tls.frontend.dropped.startswith(fault)
    assert read(manifest("Gateway", spec), IN_FILE).objects == ()


def test_no_listener_sets_are_allowed_by_default() -> None:
    """An absent field, or a part of it, is read as None."""
    for allowed in ("{}", "{namespaces: {}}", "{namespaces: {from: None}}"):
        spec = f"{{gatewayClassName: edge, listeners: [{LISTENER}], allowedListeners: {allowed}}}"
        assert route_of(read(manifest("Gateway", spec), IN_FILE)) == Gateway(KEY, "edge", (HTTP,))


@pytest.mark.parametrize(
    ("selector", "field"),
    [
        ("null", "selector"),
        ("{matchLabels: {-a: b}}", "selector.matchLabels[-a]"),
        ("{matchLabels: {a: b c}}", "selector.matchLabels[a]"),
        ("{matchExpressions: [{key: a, operator: Near, values: [b]}]}", "selector.matchExpressions[0]"),
        ("{matchExpressions: [{key: a, operator: In}]}", "selector.matchExpressions[0]"),
        ("{matchExpressions: [{key: a, operator: Exists, values: [b]}]}", "selector.matchExpressions[0]"),
    ],
)
def test_unusable_selector_selects_no_namespace(selector: str, field: str) -> None:
    """The API server accepts it, so it is a warning, and the other listeners apply."""
    allowed = f"{{namespaces: {{from: Selector, selector: {selector}}}}}"
    reading = of_listeners(f"{{name: http, port: 80, protocol: HTTP, allowedRoutes: {allowed}}}")
    (problem,) = reading.problems
    place = "spec.listeners[0].allowedRoutes.namespaces"
    assert (problem.field, problem.severity.value) == (f"{place}.{field}", "warning")
    assert problem.expected.endswith("all namespaces are excluded")
    assert route_of(reading).listeners[0].allowed == AllowedRoutes(RoutesFrom.SELECTOR, None)


def test_empty_selector_selects_every_namespace_and_others_have_none() -> None:
    """The selector counts for `from: Selector` alone, even if it could not be used."""
    for written, expected in (
        ("{from: Selector, selector: {}}", AllowedRoutes(RoutesFrom.SELECTOR, LabelSelector())),
        ("{from: All, selector: {matchLabels: {-a: b}}}", AllowedRoutes(RoutesFrom.ALL)),
        ("{selector: {matchLabels: {a: b}}}", AllowedRoutes()),
    ):
        listener = f"{{name: http, port: 80, protocol: HTTP, allowedRoutes: {{namespaces: {written}}}}}"
        assert of_listeners(listener).problems == ()
        assert listener_of(listener).allowed == expected


BAD = "{name: bad, port: 81, protocol: HTTP, unheard: 1}"


def test_error_of_a_listener_refuses_a_file_and_drops_the_listener_of_a_cluster() -> None:
    """A cluster has checked its object with its own CRDs, which can be older or newer than the reader."""
    good = "{name: http, port: 80, protocol: HTTP}"
    refused = of_listeners(f"{BAD}, {good}")
    assert (refused.objects, faults(refused)) == ((), ["spec.listeners[0].unheard"])
    reading = of_listeners(f"{BAD}, {good}", IN_CLUSTER)
    assert reading.problems == ()
    bad, http = route_of(reading).listeners
    assert (bad.name, bad.port, bad.protocol, http) == ("bad", 81, "HTTP", HTTP)
    assert bad.dropped.startswith("spec.listeners[0].unheard: unknown field")


def test_gateway_of_a_cluster_is_read_whatever_its_other_fields_are() -> None:
    """The class can be another controller's, so there is no problem to report."""
    spec = """
        gatewayClassName: other
        listeners: [{name: http, port: 80, protocol: HTTP}]
        addresses: [{type: IPAddress, value: pool}]
        infrastructure: {labels: {-a: b}}
        tls: {frontend: {}}
        news: 1
        """
    reading = read(manifest("Gateway", spec), IN_CLUSTER)
    assert reading.problems == ()
    gateway = route_of(reading)
    assert (gateway.class_name, gateway.listeners) == ("other", (HTTP,))
    assert gateway.addresses == (GatewayAddress("IPAddress", "pool"),)
    assert "spec.news" in gateway.unused
    document = manifest("GatewayClass", "{controllerName: example.com/other, news: 1}")
    assert read(document, IN_CLUSTER).problems == ()
    assert route_of(read(document, IN_CLUSTER)) == GatewayClass("r", "example.com/other")


def test_kinds_of_routes_keep_their_order() -> None:
    """They appear in this order in the status of the listener."""
    listener = (
        "{name: a, port: 1, protocol: HTTP, allowedRoutes: {kinds: [{kind: GRPCRoute}, {kind: HTTPRoute}]}}"
    )
    assert listener_of(listener).allowed.kinds == (GRPC_ROUTE, HTTP_ROUTE)
