"""Tests of routes: parents, hostnames, versions, and rules that are dropped."""

from datetime import timedelta

import pytest

from meshwright.mesh.gateway.filters import Filters
from meshwright.mesh.gateway.references import BackendObject, ParentRef
from meshwright.mesh.gateway.routes import (
    GrantedFrom,
    GrantedTo,
    GRPCRoute,
    HTTPRoute,
    ReferenceGrant,
    TCPRoute,
    TLSRoute,
)
from meshwright.mesh.gateway.rules import Backend, Rule, RuleRetry, Timeouts
from meshwright.mesh.kinds import GATEWAY_API, GATEWAY_TCP_ROUTE, HTTP_ROUTE, SERVICE, TCP_ROUTE, Kind
from meshwright.mesh.matching import Exact, GrpcMethod, Prefix, RequestMatch
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.specs.reader import read
from tests.unit.specs.gateway.manifests import (
    IN_CLUSTER,
    IN_FILE,
    PARENTS,
    faults,
    manifest,
    of_rule,
    route_of,
)

SHOP = Namespace("shop")
KEY = PolicyKey(SHOP, "r")
WEB = Backend(BackendObject(SERVICE, SHOP, "web", Port(80)))
ALL = RequestMatch(path=Prefix("/"))


def test_whole_http_route_is_read_in_both_versions() -> None:
    """Status and the version make no difference; the parent's group `core` is the empty one."""
    for version in ("v1", "v1beta1"):
        document = manifest(
            "HTTPRoute",
            """
            parentRefs:
            - {group: core, kind: Service, name: web, port: 80, sectionName: http}
            - {name: edge, namespace: infra}
            rules:
            - name: exact
              matches: [{path: {type: Exact, value: /a}}, {method: GET}]
              backendRefs: [{name: web, port: 80}, {name: next, namespace: other, port: 81, weight: 0}]
              timeouts: {request: 1m30s, backendRequest: 500ms}
              retry: {attempts: 3, codes: [503, 500], backoff: 0s}
            - {}
            """,
            version,
        )
        document["metadata"] |= {"generation": 7, "creationTimestamp": "2026-11-23T08:00:00Z"}
        document["status"] = {"parents": "anything"}
        reading = read(document, IN_FILE)
        assert reading.problems == ()
        assert route_of(reading) == HTTPRoute(
            KEY,
            (
                ParentRef(SERVICE, "web", None, "http", Port(80), is_core=True),
                ParentRef(Kind("Gateway", GATEWAY_API), "edge", Namespace("infra")),
            ),
            (),
            (
                Rule(
                    (RequestMatch(path=Exact("/a")), RequestMatch(path=Prefix("/"), methods=("GET",))),
                    Filters(),
                    (
                        WEB,
                        Backend(BackendObject(SERVICE, Namespace("other"), "next", Port(81)), 0),
                    ),
                    Timeouts(timedelta(seconds=90), timedelta(seconds=0.5)),
                    RuleRetry(3, (500, 503), timedelta(milliseconds=1)),
                    "exact",
                ),
                Rule((ALL,)),
            ),
            7,
            "2026-11-23T08:00:00Z",
        )


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ("0s", timedelta(milliseconds=1)),
        ("90s", timedelta(seconds=90)),
        ("99999h99999h99999h99999h", timedelta(days=1)),
    ],
)
def test_delay_before_a_retry_is_one_that_envoy_takes(written: str, read_as: timedelta) -> None:
    """The API has no limit; no request waits for a day."""
    (rule,) = route_of(of_rule(f"{{retry: {{backoff: {written}}}}}")).rules
    assert rule.retry == RuleRetry(1, (), read_as)


@pytest.mark.parametrize(
    ("written", "path"),
    [("/%41nn%7E", "/Ann~"), ("/%c3%A9", "/%c3%A9"), ("/a%2541", "/a%2541"), ("/a%20b", "/a%20b")],
)
def test_characters_that_need_no_escape_are_read_as_themselves(written: str, path: str) -> None:
    """A sidecar passes on requests in this form, so another one would never match."""
    reading = of_rule(
        f"{{matches: [{{path: {{type: Exact, value: '{written}'}}}}, {{path: {{value: '{written}'}}}}]}}"
    )
    (rule,) = route_of(reading).rules
    assert rule.matches == (RequestMatch(path=Exact(path)), RequestMatch(path=Prefix(path)))


def test_http_route_without_rules_has_the_default_rule_of_its_crd() -> None:
    """Its requests are answered with an error, because the rule has no backends."""
    assert route_of(read(manifest("HTTPRoute", "{}"), IN_FILE)).rules == (Rule((ALL,)),)
    assert faults(read(manifest("HTTPRoute", "{rules: []}"), IN_FILE)) == ["spec.rules"]


def test_grpc_route_matches_only_grpc_calls() -> None:
    """A rule without matches is for every call; a route without rules has none."""
    reading = of_rule("{}, {matches: [{method: {service: a.B, method: C}}]}", "GRPCRoute")
    assert route_of(reading) == GRPCRoute(
        KEY,
        PARENTS,
        rules=(
            Rule((RequestMatch(grpc=True),)),
            Rule((RequestMatch(path=GrpcMethod("a.B", "C"), grpc=True),)),
        ),
    )
    assert route_of(read(manifest("GRPCRoute", "{}"), IN_FILE)).rules == ()


@pytest.mark.parametrize("version", ["v1", "v1alpha3", "v1alpha2"])
def test_tls_route_is_read_in_each_version(version: str) -> None:
    """Connections have no requests, so the rule has backends alone."""
    spec = "{hostnames: [db.shop.example], rules: [{backendRefs: [{name: web, port: 80}]}]}"
    expected = TLSRoute(KEY, hostnames=("db.shop.example",), rules=(Rule(backends=(WEB,)),))
    assert route_of(read(manifest("TLSRoute", spec, version), IN_FILE)) == expected


@pytest.mark.parametrize(
    ("spec", "older", "newer"),
    [
        ("{rules: [{backendRefs: [{name: web, port: 80}]}]}", [], ["spec.hostnames"]),
        (
            "{hostnames: [10.0.0.7], rules: [{backendRefs: [{name: web, port: 80}]}]}",
            [],
            ["spec.hostnames[0]"],
        ),
        (
            "{hostnames: [a.b], rules: [" + ", ".join(["{backendRefs: [{name: a, port: 1}]}"] * 2) + "]}",
            [],
            ["spec.rules"],
        ),
        ("{hostnames: [a.b]}", ["spec.rules"], ["spec.rules"]),
        ("{hostnames: [a.b], rules: [{}]}", ["spec.rules[0].backendRefs"], ["spec.rules[0].backendRefs"]),
    ],
)
def test_tls_route_of_newer_versions_needs_names_and_one_rule(
    spec: str, older: list[str], newer: list[str]
) -> None:
    """The rules are those of the CRDs: v1alpha2 allows more than the others."""
    assert faults(read(manifest("TLSRoute", spec, "v1alpha2"), IN_FILE)) == older
    for version in ("v1", "v1alpha3"):
        assert faults(read(manifest("TLSRoute", spec, version), IN_FILE)) == newer


def test_older_tls_route_of_a_cluster_is_read_in_newer_versions() -> None:
    """An API server shows an object of v1alpha2 in v1 unchanged after an update of the definition."""
    rule = "{backendRefs: [{name: web, port: 80}]}"
    for version in ("v1", "v1alpha3", "v1alpha2"):
        reading = read(manifest("TLSRoute", f"{{rules: [{rule}, {rule}]}}", version), IN_CLUSTER)
        assert reading.problems == ()
        assert route_of(reading) == TLSRoute(KEY, rules=(Rule(backends=(WEB,)),) * 2)


def test_tcp_route_of_the_gateway_api_is_not_smis() -> None:
    """Both have the same name; SMI's is shown without its group."""
    reading = read(manifest("TCPRoute", "{rules: [{backendRefs: [{name: web, port: 80}]}]}"), IN_FILE)
    assert reading.key is not None
    assert (reading.key.kind, str(reading.key.kind)) == (
        GATEWAY_TCP_ROUTE,
        "TCPRoute.gateway.networking.k8s.io",
    )
    assert str(TCP_ROUTE) == "TCPRoute"
    assert route_of(reading) == TCPRoute(KEY, rules=(Rule(backends=(WEB,)),))


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_reference_grant_is_read_in_both_versions(version: str) -> None:
    """A target without a name stands for all objects of its kind."""
    spec = (
        "{from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: edge}], "
        'to: [{group: "", kind: Service}, {group: "", kind: Service, name: web}]}'
    )
    assert route_of(read(manifest("ReferenceGrant", spec, version), IN_FILE)) == ReferenceGrant(
        KEY,
        (GrantedFrom(HTTP_ROUTE, Namespace("edge")),),
        (GrantedTo(SERVICE), GrantedTo(SERVICE, "web")),
    )


@pytest.mark.parametrize(
    ("parents", "refused"),
    [
        ("[{name: a}, {name: b}]", False),
        ("[{name: a}, {name: a, namespace: x}]", False),
        ("[{name: a}, {name: a, namespace: shop}]", False),
        ("[{name: a, kind: Service, group: ''}, {name: a, kind: Service, group: core}]", False),
        ("[{name: a, kind: Service, group: core}, {name: a, kind: Service, group: core}]", True),
        ("[{name: a}, {name: a}]", True),
        ("[{name: a, sectionName: x}, {name: a}]", True),
        ("[{name: a, sectionName: x}, {name: a, sectionName: x}]", True),
        ("[{name: a, sectionName: x}, {name: a, sectionName: y}]", False),
        ("[{name: a, port: 1}, {name: a, port: 2}]", False),
        ("[{name: a, port: 1}, {name: a}]", True),
        ("[{name: a, port: 1}, {name: a, port: 1}]", True),
        ("[{name: a, sectionName: x, port: 1}, {name: a, sectionName: x, port: 2}]", False),
        ("[{name: a, sectionName: x, port: 1}, {name: a, sectionName: y}]", False),
    ],
)
def test_references_to_one_parent_must_differ(parents: str, refused: bool) -> None:
    """By sectionName, as in the standard CRDs, or by port, as in the experimental ones."""
    reading = read(manifest("HTTPRoute", f"{{parentRefs: {parents}}}"), IN_FILE)
    assert faults(reading) == (["spec.parentRefs"] if refused else [])


def test_invalid_regex_drops_its_rule_and_not_the_route() -> None:
    """The API server accepts any text, so the route keeps its other rules, also from a file."""
    reading = of_rule("{name: bad, matches: [{path: {type: RegularExpression, value: '('}}]}, {name: good}")
    bad, good = route_of(reading).rules
    assert (bad.name, good.dropped, good.name) == ("bad", "", "good")
    assert bad.dropped.startswith("spec.rules[0].matches[0].path.value: must be a regular expression (RE2)")
    assert [(item.code, item.severity.value) for item in reading.problems] == [("MW1014", "error")]


def test_every_rule_with_an_invalid_regex_is_dropped_however_many_problems_there_are() -> None:
    """Only some hundred problems are kept, but no rule with an error may apply."""
    many = ", ".join([f"{{type: RegularExpression, name: h{number}, value: '('}}" for number in range(16)])
    rule = "{matches: [" + ", ".join([f"{{headers: [{many}]}}"] * 8) + "]}"
    reading = of_rule(", ".join([rule] * 16))
    assert all(item.dropped for item in route_of(reading).rules)
    assert len(reading.problems) < 300


@pytest.mark.parametrize(
    "rule", ["{unheard: 1}", "{matches: [{method: PURGE}]}", "{timeouts: {request: 1d}}"]
)
def test_error_of_a_rule_refuses_a_file_and_drops_the_rule_of_a_cluster(rule: str) -> None:
    """A cluster has checked its object with its own CRDs, which can be older or newer than the reader."""
    refused = of_rule(f"{rule}, {{name: good}}")
    assert (refused.objects, len(refused.unread)) == ((), 1)
    reading = of_rule(f"{rule}, {{name: good}}", origin=IN_CLUSTER)
    assert [bool(item.dropped) for item in route_of(reading).rules] == [True, False]


def test_problems_of_a_clusters_route_for_gateways_alone_are_not_reported() -> None:
    """Another controller serves it, by its own rules; the route is read all the same."""
    rules = "rules: [{matches: [{path: {type: RegularExpression, value: '(?=a)'}}]}, {unheard: 1}]"
    reading = read(manifest("HTTPRoute", f"{{parentRefs: [{{name: edge}}], {rules}}}"), IN_CLUSTER)
    assert [bool(item.dropped) for item in route_of(reading).rules] == [True, True]
    assert reading.problems == ()


def test_unknown_field_of_the_spec_is_ignored_only_from_a_cluster() -> None:
    """Newer CRDs have fields that older ones lack; a file with such a field has a spelling mistake."""
    document = manifest("HTTPRoute", "{hostname: a}")
    assert faults(read(document, IN_FILE)) == ["spec.hostname"]
    reading = read(document, IN_CLUSTER)
    assert route_of(reading) == HTTPRoute(KEY, rules=(Rule((ALL,)),))
    assert [item.severity.value for item in reading.problems] == ["warning"]


@pytest.mark.parametrize("kind", ["HTTPRoute", "GRPCRoute"])
def test_experimental_fields_are_a_warning(kind: str) -> None:
    """The route applies without them."""
    spec = "{useDefaultGateways: All, rules: [{sessionPersistence: {type: Cookie, cookie: {}}}]}"
    reading = read(manifest(kind, spec), IN_FILE)
    assert [(item.code, item.field) for item in reading.problems] == [
        ("MW1021", "spec.rules[0].sessionPersistence"),
        ("MW1021", "spec.useDefaultGateways"),
    ]
    assert not route_of(reading).rules[0].dropped


def test_route_of_a_megabyte_is_refused_without_reading_each_item() -> None:
    """A list that is too long is one problem."""
    document = manifest("HTTPRoute", "{}")
    document["spec"] = {
        "rules": [{"matches": [{"path": {"value": "/a"}}] * 65}] * 16,
        "hostnames": ["a"] * 99999,
    }
    problems = read(document, IN_FILE).problems
    assert [item.field for item in problems] == [
        "spec.hostnames",
        *(f"spec.rules[{number}].matches" for number in range(16)),
        "spec.rules",
    ]
    document["spec"] = {"rules": [{}] * 100_000, "parentRefs": [{"name": "a"}] * 100_000}
    assert faults(read(document, IN_FILE)) == ["spec.parentRefs", "spec.rules"]
