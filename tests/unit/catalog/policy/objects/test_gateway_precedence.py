"""Tests of the order of matches across Gateway API routes, by the words of the specification."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from catalog.policy.objects.gateway_precedence import by_age, ordered, precedence
from meshwright.mesh.gateway.routes import GatewayRoute, HTTPRoute
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.matching import Exact, FieldMatch, GrpcMethod, Prefix, Regex, RequestMatch
from tests.meshes import gateway as g
from tests.meshes import values as a

PARENTS = (g.parent("echo"),)
OLD, YOUNG = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


def rule(*matches: RequestMatch) -> Rule:
    """Make a rule with these matches."""
    return Rule(matches)


def names(routes: Sequence[GatewayRoute]) -> list[str]:
    """Return the order of matches as `route/rule/match`."""
    return [f"{item.route.key.name}/{item.rule}/{item.match}" for item in ordered(routes)]


@pytest.mark.parametrize(
    "matches",
    [
        # Each list is in the order in which the matches decide.
        (g.exact("/a"), g.regex("/a.*"), g.prefix("/a/b"), g.prefix("/a"), RequestMatch()),
        (
            g.prefix("/long"),
            g.prefix("/"),
        ),
        (g.exact("/a"), g.prefix("/a-much-longer-path")),
        (g.prefix("/a"), RequestMatch(Prefix("/"), methods=("GET",))),
        (RequestMatch(methods=("GET",)), g.prefix("/", ("a", "1"), ("b", "2"))),
        (g.prefix("/", ("a", "1"), ("b", "2")), g.prefix("/", ("a", "1")), g.prefix("/")),
        (
            g.prefix("/", ("a", "1")),
            RequestMatch(parameters=(FieldMatch("p", Exact("1")), FieldMatch("q", Exact("2")))),
            RequestMatch(parameters=(FieldMatch("p", Exact("1")),)),
            RequestMatch(),
        ),
        (
            g.call("shop.Cart", "Add"),
            g.call("shop.Cart", "Ad"),
            g.call("shop.Cart", None, ("a", "1")),
            g.call("shop.Cart"),
            g.call("shop.Car", "AddAndMore"),
            g.call(None, "Add"),
            g.call(None, None, ("a", "1"), ("b", "2")),
            g.call(),
        ),
    ],
)
def test_the_match_decides_before_age_and_name(matches: tuple[RequestMatch, ...]) -> None:
    """A more specific match of the younger route precedes, in whatever order rules and routes are."""
    routes = [
        g.http_route(
            f"r{len(matches) - index}", rule(match), parents=PARENTS, created=OLD if index else YOUNG
        )
        for index, match in enumerate(matches)
    ]
    expected = [f"{route.key.name}/0/0" for route in routes]
    assert names(routes) == names(routes[::-1]) == expected
    assert names([g.http_route("one", *map(rule, matches[::-1]), parents=PARENTS)]) == [
        f"one/{len(matches) - 1 - index}/0" for index in range(len(matches))
    ]


def test_equal_matches_are_ordered_by_age_then_name_then_rule_then_match() -> None:
    """Routes without a time come last; names are compared as one text with the namespace."""
    match = g.prefix("/x")
    routes = [
        g.http_route("z", rule(match), parents=PARENTS, created=OLD),
        g.http_route("a", rule(match), parents=PARENTS, created=YOUNG),
        g.http_route("c", rule(match, match), rule(match), parents=PARENTS),
        # As one text, `a-b/y` precedes `a/z`, because `-` precedes `/`.
        g.http_route("z2", rule(match), parents=PARENTS, namespace="a"),
        g.http_route("y2", rule(match), parents=PARENTS, namespace="a-b"),
    ]
    assert names(routes) == ["z/0/0", "a/0/0", "y2/0/0", "z2/0/0", "c/0/0", "c/0/1", "c/1/0"]


def test_only_the_number_of_distinct_names_counts() -> None:
    """Of several matches of one header the first counts, so the others do not make a match more specific."""
    twice = g.http_route("twice", rule(g.prefix("/", ("a", "1"), ("a", "2"))), parents=PARENTS)
    once = g.http_route("once", rule(g.prefix("/", ("a", "1"))), parents=PARENTS, created=OLD)
    assert names([twice, once]) == ["once/0/0", "twice/0/0"]


def test_dropped_rules_have_no_place_in_the_order() -> None:
    """The indexes of the other rules stay those of the manifest."""
    route = g.http_route("r", Rule(dropped="bad"), rule(g.prefix("/")), parents=PARENTS)
    assert names([route]) == ["r/1/0"]


def test_the_oldest_route_takes_all_connections() -> None:
    """Kinds without matches have one winner at a port."""
    old = g.tcp_route("z", Rule(dropped="bad"), Rule(), Rule(), parents=PARENTS, created=OLD)
    young = g.tcp_route("a", Rule(), parents=PARENTS, created=YOUNG)
    empty = g.tcp_route("b", parents=PARENTS, created=YOUNG)
    assert [(item.route, item.rule) for item in by_age([young, empty, old])] == [(old, 1), (young, 0)]


TEXTS = some.text("ab/", min_size=1, max_size=3)
FIELDS = some.lists(
    some.builds(FieldMatch, some.sampled_from("abc"), some.builds(Exact, TEXTS)), max_size=3
).map(tuple)
PATHS = some.one_of(
    some.none(),
    some.builds(Exact, TEXTS),
    some.builds(Prefix, TEXTS),
    some.builds(Regex, TEXTS),
    some.builds(GrpcMethod, TEXTS, some.none() | TEXTS),
)
MATCHES = some.builds(RequestMatch, PATHS, some.sampled_from([(), ("GET",)]), FIELDS, FIELDS, some.booleans())
RULES = some.lists(some.builds(Rule, some.lists(MATCHES, min_size=1, max_size=3).map(tuple)), max_size=3).map(
    tuple
)
ROUTES = some.lists(
    some.builds(
        HTTPRoute,
        some.builds(a.policy_key, some.sampled_from("ab"), some.sampled_from(["a", "a-b", "b"])),
        rules=RULES,
        created=some.sampled_from(["", OLD, YOUNG]),
    ),
    max_size=5,
    unique_by=lambda route: route.key,
)


@given(ROUTES, some.randoms(use_true_random=False))
def test_the_order_is_total_and_does_not_depend_on_the_input(routes: list[HTTPRoute], random: Random) -> None:
    """No two matches are equal in precedence, and every shuffled list gives the same order."""
    first = ordered(routes)
    keys = [precedence(item) for item in first]
    assert len(set(keys)) == len(keys) == sum(len(rule.matches) for route in routes for rule in route.rules)
    assert keys == sorted(keys)
    shuffled = list(routes)
    random.shuffle(shuffled)
    assert ordered(shuffled) == first
