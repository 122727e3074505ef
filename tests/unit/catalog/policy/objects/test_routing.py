"""Tests of RoutePolicies: the rules in force for a call by policy, oracle and explanation."""

from dataclasses import replace
from datetime import timedelta

import pytest

from catalog.explain import explain
from catalog.oracle.decide import decide
from catalog.oracle.request.request import Request
from catalog.oracle.routing import rule_for
from catalog.policy.group_policy import proxy_policy
from catalog.policy.values.route_actions import Forward, RequestMirror, WeightedBackend
from catalog.policy.values.route_table import AppliedRule, RouteEntry
from catalog.relations.groups import groups
from catalog.store.view import View
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.names import Namespace, Port, ServiceName
from meshwright.mesh.policies.routing import HeaderChanges, Mirror, RouteActions, RoutePolicy, RouteRule
from meshwright.mesh.policies.smi import HeaderMatch, HTTPMatch
from meshwright.mesh.service import ServicePattern
from tests.meshes import values as a

SHOP, RAW = a.service_key("shop"), a.service_key("raw")
MESH = (
    a.service("shop"),
    a.service("bank"),
    a.service("raw", a.port(90, 9090, a.TCP)),
    a.workload("shop", "10.0.0.1"),
    a.workload("bank", "10.0.0.2"),
    a.workload("raw", "10.0.0.3"),
    a.workload("buyer", "10.0.0.4"),
    *(a.target(f"to-{to}", "buyer", to, a.http("all"), a.tcp("any")) for to in ("shop", "bank", "raw")),
    a.route_group("all", a.match("beta", "/beta"), a.match("all", ".*")),
    a.tcp_route("any"),
)


def seconds(number: float) -> RouteActions:
    """Make actions with a timeout in seconds."""
    return RouteActions(timedelta(seconds=number))


def policy(name: str, *rules: RouteRule, to: str = "shop", created: str = "") -> RoutePolicy:
    """Make a RoutePolicy."""
    return RoutePolicy(a.policy_key(name), a.service_key(to), rules, created)


def table(view: View, to: str, who: str = "buyer") -> tuple[RouteEntry, ...]:
    """Return the route table of a workload's calls to a service."""
    (group,) = (proxy_group for proxy_group in groups(view) if proxy_group.primary.name == who)
    (called,) = (
        outbound_service
        for outbound_service in proxy_policy(view, group).outbound
        if outbound_service.upstream == a.service_key(to)
    )
    return called.table


def rules(view: View, to: str = "shop") -> list[tuple[str, str, timedelta | None]]:
    """Return policy, match (`*` for all) and timeout of each rule in a route table."""
    return [
        (source.part.by.name, "*" if source.match is None else source.match.name, entry.action.timeout)
        for entry in table(view, to)
        for source in entry.provenance
        if isinstance(source.part, AppliedRule) and isinstance(entry.action, Forward)
    ]


def mirrors(view: View) -> list[RequestMirror]:
    """Return the mirrors of the buyer's requests to the shop."""
    actions = [entry.action for entry in table(view, "shop")]
    return [mirror for action in actions if isinstance(action, Forward) for mirror in action.mirrors]


@pytest.mark.parametrize("permissive", [False, True])
def test_route_policy_applies_to_its_service_only(*, permissive: bool) -> None:
    """All callers are affected. A service of TCP has no rules, because no requests are seen there."""
    every = RouteRule((), seconds(1))
    view = a.view(*MESH, MeshConfig(permissive=permissive), policy("p", every), policy("r", every, to="raw"))
    assert {to: rules(view, to) for to in ("bank", "raw", "shop")} == {
        "bank": [],
        "raw": [],
        "shop": [("p", "*", timedelta(seconds=1))],
    }


def test_rules_after_one_for_all_requests_are_dropped() -> None:
    """A rule whose references are all unknown is dropped, and does not become a rule for all requests."""
    view = a.view(
        *MESH,
        policy(
            "p",
            RouteRule((a.http("nowhere"),), seconds(1)),
            RouteRule((a.http("all", "beta", "alpha"),), seconds(2)),
            RouteRule((a.http("all", "alpha"),), seconds(3)),
            RouteRule((), seconds(4)),
            RouteRule((), seconds(5)),
        ),
    )
    assert rules(view) == [("p", "beta", timedelta(seconds=2)), ("p", "*", timedelta(seconds=4))]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [("", "", "a"), ("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z", "b"), ("", "2026-01-01T00:00:00Z", "b")],
)
def test_oldest_route_policy_is_in_force(first: str, second: str, expected: str) -> None:
    """Ties are decided by name; a policy without a creation time comes last."""
    both = (
        policy("a", RouteRule((), seconds(1)), created=first),
        policy("b", RouteRule((), seconds(2)), created=second),
    )
    view = a.view(*MESH, *both)
    assert [name for name, _, _ in rules(view)] == [expected]
    request = Request(a.identity("buyer"), SHOP, Port(80), "GET", "/")
    (port,) = view.services[SHOP].ports
    result = rule_for(view, request, port)
    assert result is not None
    assert result[0].key.name == expected


@pytest.mark.parametrize(("path", "expected"), [("/beta", "0.5 s"), ("/beta?x", "0.5 s"), ("/other", "2 s")])
def test_explanation_mentions_the_rule_that_fits_the_request(path: str, expected: str) -> None:
    """A step gives the rule's index and its timeout."""
    fits = RouteRule((a.http("all", "beta"),), seconds(0.5))
    view = a.view(*MESH, policy("p", fits, RouteRule((), seconds(2))))
    explanation = explain(view, Request(a.identity("buyer"), SHOP, Port(80), "GET", path))
    steps = [step.text for step in explanation.steps if "RoutePolicy" in step.text]
    rule = 0 if expected == "0.5 s" else 1
    does = f"makes the client's sidecar answer 504 if the response has not ended after {expected}."
    assert steps == [f"RoutePolicy default/p, rules[{rule}], {does}"]


@pytest.mark.parametrize(
    ("changes", "headers", "allowed"),
    [
        (HeaderChanges(), (), False),
        (HeaderChanges(), (("X-Key", "opens"),), True),
        (HeaderChanges(put=(("x-key", "opens"),)), (), True),
        (HeaderChanges(put=(("x-key", "opens"),)), (("x-key", "no"),), True),
        (HeaderChanges(put=(("x-key", "no"),)), (("x-key", "opens"),), False),
        (HeaderChanges(add=(("x-key", "opens"),)), (("x-key", "no"),), True),
        (HeaderChanges(remove=("x-key",)), (("X-KEY", "opens"),), False),
    ],
)
def test_server_judges_headers_after_the_changes_of_a_rule(
    changes: HeaderChanges, headers: tuple[tuple[str, str], ...], *, allowed: bool
) -> None:
    """The client's sidecar changes headers first, so the server's rules see the changed ones."""
    group = a.route_group("keyed", HTTPMatch("any", ".*", headers=(HeaderMatch("x-key", "opens"),)))
    things = (*MESH[:7], group, a.target("to-shop", "buyer", "shop", a.http("keyed")))
    rule = RouteRule((), RouteActions(request_headers=changes))
    view = a.view(*things, policy("p", rule))
    request = Request(a.identity("buyer"), SHOP, Port(80), "GET", "/", headers)
    assert decide(view, request).allowed is allowed


def test_requests_are_mirrored_only_to_a_callable_service() -> None:
    """There is no mirror to a service that the client may not call, or to a headless service."""
    to_bank = RouteRule((), RouteActions(mirror=Mirror(ServiceName("bank"), 50)))
    there = a.view(*MESH, policy("p", to_bank))
    assert mirrors(there) == [RequestMirror(WeightedBackend(a.service_key("bank"), "8080", 1), 50)]
    without = (item for item in MESH if item != MESH[8])
    assert mirrors(a.view(*without, policy("p", to_bank))) == []
    headless = replace(a.service("bank"), headless=True)
    others = (item for item in MESH if item != a.service("bank"))
    assert mirrors(a.view(*others, headless, policy("p", to_bank))) == []


def test_mirror_is_a_destination_but_no_callable_service_of_a_narrowed_client() -> None:
    """A copy needs a cluster but no listener, also if the scope excludes the mirror."""
    to_bank = RouteRule((), RouteActions(mirror=Mirror(ServiceName("bank"), 50)))
    scope = (ServicePattern(Namespace("default"), ServiceName("shop")),)
    things = (item for item in MESH if item != a.workload("buyer", "10.0.0.4"))
    view = a.view(*things, replace(a.workload("buyer", "10.0.0.4"), scope=scope), policy("p", to_bank))
    (group,) = (proxy_group for proxy_group in groups(view) if proxy_group.primary.name == "buyer")
    result = proxy_policy(view, group)
    assert [str(outbound_service.upstream) for outbound_service in result.outbound] == ["default/shop"]
    assert [service_destination.service.name for service_destination in result.service_destinations] == [
        "bank",
        "shop",
    ]
