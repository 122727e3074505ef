"""Tests of TrafficTarget, HTTPRouteGroup, TCPRoute, UDPRoute and TrafficSplit in all versions."""

import pytest

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, Port, ServiceAccountName, ServiceName
from meshwright.mesh.policies.smi import (
    Backend,
    HeaderMatch,
    HTTPMatch,
    HTTPRouteGroup,
    PolicyKey,
    RouteKind,
    Rule,
    TCPRoute,
    TrafficSplit,
    TrafficTarget,
)
from meshwright.mesh.service import ServiceKey
from meshwright.specs.manifest import NAME_RULE
from tests.meshes.reading import complaints, reading, value

NS = Namespace("default")
KEY = PolicyKey(NS, "x")


def _account(name: str, namespace: str = "default") -> ServiceIdentity:
    return ServiceIdentity(Namespace(namespace), ServiceAccountName(name))


def _target(port: int | None) -> TrafficTarget:
    return TrafficTarget(
        KEY,
        _account("api"),
        (_account("a"), _account("b", "other")),
        (Rule(RouteKind.HTTP, "routes", ("m",)), Rule(RouteKind.TCP, "tcp")),
        Port(port) if port else None,
    )


_SOURCES = """
  sources:
  - {kind: ServiceAccount, name: b, namespace: other}
  - {kind: ServiceAccount, name: a}"""
_RULES = """
  - {kind: HTTPRouteGroup, name: routes, matches: [m]}
  - {kind: TCPRoute, name: tcp}"""


def _spec_target(version: str, port: str = "", rules: str = _RULES, sources: str = _SOURCES) -> str:
    return f"""
apiVersion: access.smi-spec.io/{version}
kind: TrafficTarget
metadata: {{name: x}}
spec:
  destination: {{kind: ServiceAccount, name: api, namespace: default{port}}}
  rules:{rules}{sources}
"""


@pytest.mark.parametrize("port", ["8080", '"8080"'])
def test_traffic_target_v1alpha1_has_its_fields_at_the_top_level(port: str) -> None:
    """Destination, specs and sources are beside metadata; the port may be a number or text."""
    text = f"""
apiVersion: access.smi-spec.io/v1alpha1
kind: TrafficTarget
metadata: {{name: x}}
destination: {{kind: ServiceAccount, name: api, port: {port}}}
specs:
- {{kind: HTTPRouteGroup, name: routes, matches: [m]}}
- {{kind: TCPRoute, name: tcp}}
sources:
- {{kind: ServiceAccount, name: b, namespace: other}}
- {{kind: ServiceAccount, name: a}}
"""
    assert value(text) == _target(8080)


def test_traffic_target_from_v1alpha2_has_a_spec() -> None:
    """v1alpha2 has a port, and v1alpha3 refuses it."""
    assert value(_spec_target("v1alpha2", ", port: 8080")) == _target(8080)
    assert value(_spec_target("v1alpha3")) == _target(None)
    assert complaints(_spec_target("v1alpha3", ", port: 8080")) == [
        ("error", "MW1012", "spec.destination.port", "8080")
    ]


def test_traffic_target_draft_version_is_refused_by_name() -> None:
    """The message for v1alpha4 lists the readable versions, and the key of the object is known."""
    manifest_reading = reading(_spec_target("v1alpha4"))
    assert [str(problem) for problem in manifest_reading.problems] == [
        (
            "MW1005 test.yaml:1 (document 1): TrafficTarget default/x: apiVersion is "
            '"access.smi-spec.io/v1alpha4": is a draft version of TrafficTarget that was never '
            "released; must be one of access.smi-spec.io/v1alpha1, access.smi-spec.io/v1alpha2, "
            "access.smi-spec.io/v1alpha3"
        )
    ]
    assert [str(unread_manifest.key) for unread_manifest in manifest_reading.unread] == [
        "TrafficTarget default/x"
    ]


def test_traffic_target_with_fields_beside_its_spec_is_refused() -> None:
    """The two forms together are ambiguous, so the old fields are not just ignored."""
    text = _spec_target("v1alpha3") + "specs: []\n"
    assert complaints(text) == [("error", "MW1012", "specs", "a list of 0 items")]


def test_traffic_target_with_a_destination_in_another_namespace_is_refused() -> None:
    """An object may only allow traffic to its own namespace."""
    text = _spec_target("v1alpha3").replace("namespace: default", "namespace: other")
    assert complaints(text) == [("error", "MW1016", "spec.destination.namespace", '"other"')]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("\n  - {kind: UDPRoute, name: u}", ("error", "MW1024", "spec.rules[0].kind", '"UDPRoute"')),
        ("\n  - {kind: Route, name: u}", ("error", "MW1013", "spec.rules[0].kind", '"Route"')),
        ("\n  - {kind: TCPRoute}", ("error", "MW1011", "spec.rules[0].name", "")),
        (
            "\n  - {kind: TCPRoute, name: t, matches: [a]}",
            ("error", "MW1013", "spec.rules[0].matches", "a list of 1 item"),
        ),
        (
            "\n  - {kind: TCPRoute, name: t, mathces: [a]}",
            ("error", "MW1012", "spec.rules[0].mathces", "a list of 1 item"),
        ),
        ("\n  - 7", ("error", "MW1010", "spec.rules[0]", "7")),
        (" 7", ("error", "MW1010", "spec.rules", "7")),
        (" []", ("warning", "MW1017", "spec.rules", "")),
    ],
)
def test_invalid_rule_of_a_traffic_target_is_reported_with_its_field(
    rules: str, expected: tuple[str, str, str, str]
) -> None:
    """A TrafficTarget with empty rules is in force with a warning."""
    text = _spec_target("v1alpha3", rules=rules)
    assert complaints(text) == [expected]
    assert len(reading(text).objects) == (1 if expected[0] == "warning" else 0)


def test_misspelt_field_is_reported_with_the_probable_one() -> None:
    """The missing field itself is reported too."""
    text = _spec_target("v1alpha3").replace("destination:", "destnation:")
    manifest_reading = reading(text)
    assert [problem.expected for problem in manifest_reading.problems] == [
        "is missing; must be a mapping",
        "is missing; must be ServiceAccount",
        f"is missing; {NAME_RULE}",
        "unknown field; did you mean destination?",
    ]


_GROUP = """
apiVersion: specs.smi-spec.io/{version}
kind: HTTPRouteGroup
metadata: {{name: x}}
{body}
"""
_MATCH = "{{name: m, pathRegex: /a, methods: [PUT, GET], headers: {headers}}}"


@pytest.mark.parametrize("version", ["v1alpha1", "v1alpha2", "v1alpha3", "v1alpha4"])
@pytest.mark.parametrize("headers", ["{Host: h, a: b.*}", "[{Host: h}, {a: b.*}]"])
def test_http_route_group_is_read_in_all_versions(version: str, headers: str) -> None:
    """Matches are at the top level or in the spec, and headers are a mapping or a list."""
    matches = f"matches: [{{name: m, pathRegex: /a, methods: [PUT, GET], headers: {headers}}}, {{name: all}}]"
    body = matches if version in ("v1alpha1", "v1alpha2") else f"spec: {{{matches}}}"
    assert value(_GROUP.format(version=version, body=body)) == HTTPRouteGroup(
        KEY,
        (
            HTTPMatch("m", "/a", ("GET", "PUT"), (HeaderMatch("a", "b.*"), HeaderMatch("host", "h"))),
            HTTPMatch("all"),
        ),
    )


def test_star_among_methods_means_any_method() -> None:
    """Other methods beside the star have no effect."""
    text = _GROUP.format(version="v1alpha4", body="spec: {matches: [{name: m, methods: [GET, '*']}]}")
    assert value(text) == HTTPRouteGroup(KEY, (HTTPMatch("m"),))


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        ("{pathRegex: /a}", ("error", "MW1011", "spec.matches[0].name", "")),
        ("{name: m, pathRegex: '(a'}", ("error", "MW1014", "spec.matches[0].pathRegex", '"(a"')),
        ("{name: m, pathRegex: '(?=a)'}", ("error", "MW1014", "spec.matches[0].pathRegex", '"(?=a)"')),
        ("{name: m, pathRegex: 7}", ("error", "MW1010", "spec.matches[0].pathRegex", "7")),
        ("{name: m, methods: [get]}", ("error", "MW1013", "spec.matches[0].methods[0]", '"get"')),
        ("{name: m, methods: GET}", ("error", "MW1010", "spec.matches[0].methods", '"GET"')),
        (r"{name: m, pathRegex: '/[\b]x'}", ("error", "MW1014", "spec.matches[0].pathRegex", r'"/[\\b]x"')),
        (r"{name: m, headers: {a: 'caf\é'}}", ("error", "MW1014", "spec.matches[0].headers.a", r'"caf\\é"')),
        ("{name: m, headers: {x-a: ''}}", ("error", "MW1014", "spec.matches[0].headers.x-a", '""')),
        ("{name: m, headers: {a: '['}}", ("error", "MW1014", "spec.matches[0].headers.a", '"["')),
        ("{name: m, headers: [{'a b': c}]}", ("error", "MW1013", "spec.matches[0].headers[0].a b", '"c"')),
        ("{name: m, headers: {a: null}}", ("error", "MW1010", "spec.matches[0].headers.a", "null")),
        ("{name: m, headers: [{a: null}]}", ("error", "MW1010", "spec.matches[0].headers[0].a", "null")),
        ("{name: m, path: /a}", ("error", "MW1012", "spec.matches[0].path", '"/a"')),
        ("{name: m}, {name: m}", ("error", "MW1015", "spec.matches[1].name", '"m"')),
        ("", ("warning", "MW1017", "spec.matches", "")),
    ],
)
def test_invalid_match_of_a_route_group_is_reported_with_its_field(
    match: str, expected: tuple[str, str, str, str]
) -> None:
    """Each invalid match is one problem with its value."""
    assert complaints(_GROUP.format(version="v1alpha4", body=f"spec: {{matches: [{match}]}}")) == [expected]


def test_empty_path_matches_any_path() -> None:
    """It is read like an omitted path, with information about this meaning."""
    text = _GROUP.format(version="v1alpha4", body="spec: {matches: [{name: m, pathRegex: ''}]}")
    ((_, made),) = reading(text).objects
    assert made == HTTPRouteGroup(KEY, (HTTPMatch("m"),))
    assert complaints(text) == [("info", "MW1026", "spec.matches[0].pathRegex", "")]


def test_tcp_route_is_read_in_all_versions() -> None:
    """Only v1alpha4 has ports; without ports every port is meant."""
    head = "apiVersion: specs.smi-spec.io/{}\nkind: TCPRoute\nmetadata: {{name: x}}\n"
    assert value(head.format("v1alpha1")) == TCPRoute(KEY)
    assert value(head.format("v1alpha2")) == TCPRoute(KEY)
    assert value(head.format("v1alpha3") + "spec: {}") == TCPRoute(KEY)
    assert value(head.format("v1alpha4") + "spec: {matches: {ports: []}}") == TCPRoute(KEY)
    assert value(head.format("v1alpha4") + "spec: {matches: {ports: [80, 70, 80]}}") == TCPRoute(
        KEY, (Port(70), Port(80))
    )
    assert complaints(head.format("v1alpha3") + "spec: {matches: {ports: [80]}}") == [
        ("error", "MW1012", "spec.matches", "a mapping of 1 key")
    ]
    assert complaints(head.format("v1alpha4") + "spec: {matches: {ports: [0]}}") == [
        ("error", "MW1013", "spec.matches.ports[0]", "0")
    ]


def test_udp_route_is_refused_with_its_own_code() -> None:
    """The code MW1024 explains why UDPRoute is not supported."""
    text = "apiVersion: specs.smi-spec.io/v1alpha4\nkind: UDPRoute\nmetadata: {name: x}\nspec: {}"
    assert complaints(text) == [("error", "MW1024", "kind", '"UDPRoute"')]


def _split(version: str, weights: tuple[str, str], more: str = "", service: str = "apex") -> str:
    return f"""
apiVersion: split.smi-spec.io/{version}
kind: TrafficSplit
metadata: {{name: x, creationTimestamp: "2026-01-02T03:04:05Z"}}
spec:
  service: {service}
  backends:
  - {{service: one, weight: {weights[0]}}}
  - {{service: two.default, weight: {weights[1]}}}
{more}"""


def _split_value(first: int, second: int, matches: tuple[str, ...] = ()) -> TrafficSplit:
    return TrafficSplit(
        KEY,
        ServiceKey(NS, ServiceName("apex")),
        (Backend(ServiceName("one"), first), Backend(ServiceName("two"), second)),
        matches,
        "2026-01-02T03:04:05Z",
    )


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (("1", "2"), (1, 2)),
        (('"1"', "500m"), (1000, 500)),
        (("0.5", "1k"), (500, 1_000_000)),
        (('"0.0005"', "1m"), (500, 1000)),
        (('"1e3"', '"2E2"'), (1000, 200)),
        (('"5e-1"', '"+1."'), (500, 1000)),
        (('".5"', "1u"), (500_000, 1)),
        (("1u", "1n"), (1000, 1)),
        (("1Ki", "1Mi"), (1024, 1_048_576)),
        (("1Gi", "1G"), (1_073_741_824, 1_000_000_000)),
        (("0Ti", "0E"), (0, 0)),
    ],
)
def test_v1alpha1_weights_are_read_as_quantities(weights: tuple[str, str], expected: tuple[int, int]) -> None:
    """They become integers with the same ratio."""
    assert value(_split("v1alpha1", weights)) == _split_value(*expected)


def test_later_traffic_splits_have_integer_weights_and_matches() -> None:
    """v1alpha2 has integer weights; v1alpha3 and v1alpha4 have matches as well."""
    matches = "  matches: [{kind: HTTPRouteGroup, name: ab, apiGroup: specs.smi-spec.io}]\n"
    assert value(_split("v1alpha2", ("90", "10"))) == _split_value(90, 10)
    assert value(_split("v1alpha3", ("90", "10"), matches)) == _split_value(90, 10, ("ab",))
    assert value(_split("v1alpha4", ("0", "0"), matches)) == _split_value(0, 0, ("ab",))
    assert complaints(_split("v1alpha2", ("90", "10"), matches)) == [
        ("error", "MW1012", "spec.matches", "a list of 1 item")
    ]


@pytest.mark.parametrize("service", ["apex.default", "apex.default.svc", "apex.default.svc.cluster.local"])
def test_apex_of_a_split_may_have_any_of_its_service_names(service: str) -> None:
    """All names by which a client may call the apex service are equal."""
    assert value(_split("v1alpha4", ("1", "1"), service=service)) == _split_value(1, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (_split("v1alpha2", ("-1", "1")), ("error", "MW1013", "spec.backends[0].weight", "-1")),
        (_split("v1alpha2", ("500m", "1")), ("error", "MW1010", "spec.backends[0].weight", '"500m"')),
        (_split("v1alpha1", ("x", "1")), ("error", "MW1013", "spec.backends[0].weight", '"x"')),
        (_split("v1alpha1", ("1e", "1")), ("error", "MW1013", "spec.backends[0].weight", '"1e"')),
        (_split("v1alpha1", ("1K", "1")), ("error", "MW1013", "spec.backends[0].weight", '"1K"')),
        (_split("v1alpha1", ("1mi", "1")), ("error", "MW1013", "spec.backends[0].weight", '"1mi"')),
        (_split("v1alpha1", ("'-1Ki'", "1")), ("error", "MW1013", "spec.backends[0].weight", '"-1Ki"')),
        (_split("v1alpha1", ("1Ei", "1")), ("error", "MW1013", "spec.backends", "a list of 2 items")),
        (_split("v1alpha1", ("'1e99'", "1")), ("error", "MW1013", "spec.backends", "a list of 2 items")),
        (_split("v1alpha4", ("null", "1")), ("error", "MW1011", "spec.backends[0].weight", "")),
        (
            _split("v1alpha4", ("4294967295", "1")),
            ("error", "MW1013", "spec.backends", "a list of 2 items"),
        ),
        (
            _split("v1alpha4", ("1", "1"), service="apex.other"),
            ("error", "MW1016", "spec.service", '"apex.other"'),
        ),
        (
            _split("v1alpha4", ("1", "1")).replace("two.default", "two.other"),
            ("error", "MW1016", "spec.backends[1].service", '"two.other"'),
        ),
        (
            _split("v1alpha4", ("1", "1")).replace("two.default", "one"),
            ("error", "MW1015", "spec.backends[1].service", '"one"'),
        ),
    ],
)
def test_invalid_traffic_split_is_refused_with_its_field(
    text: str, expected: tuple[str, str, str, str]
) -> None:
    """Each invalid field is one problem with its value."""
    assert complaints(text) == [expected]
    assert reading(text).objects == ()
