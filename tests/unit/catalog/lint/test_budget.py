"""Lint looks at so much of one object, and says where it stopped."""

from collections.abc import Iterator

import pytest

from catalog.lint.budget import MOST, Budget, SpentError, within
from catalog.lint.problems import problems
from catalog.lint.wording import Place
from catalog.store.view import MeshSettings, View
from meshwright.mesh.kinds import TRAFFIC_TARGET
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import HeaderMatch, HTTPMatch
from meshwright.mesh.problems.problem import Problem, Severity
from tests.meshes import values as a

BASE = (
    a.service("store"),
    a.workload("store-1", "10.0.0.1", app="store", account="store"),
    a.workload("client-1", "10.0.0.2", app="client", account="client"),
)


def _found(*things: object, code: str = "MW2160") -> list[Problem]:
    view = View.build(a.objects(*BASE, *things), MeshSettings())
    return [each for each in problems(view) if each.code == code]


def _matches(count: int) -> list[HTTPMatch]:
    """Return matches of one path that are alike in everything but a header."""
    return [
        HTTPMatch(f"m{number}", "/a", headers=(HeaderMatch("x", f"{number}"),)) for number in range(count)
    ]


def test_of_matches_that_cannot_be_told_apart_without_a_comparison_lint_looks_at_some() -> None:
    """It says of the object how many comparisons it made, and how many it may make."""
    group = a.route_group("paths", *_matches(300))
    target = a.target("buy", "client", "store", a.http("paths"))
    (found,) = _found(group, target)
    assert (found.key, found.field, found.severity) == (
        ObjectKey.of(TRAFFIC_TARGET, target.key),
        "spec.rules",
        Severity.INFO,
    )
    assert found.expected == (
        f"The search for matches without effect stopped after {MOST} steps (the limit is {MOST}), "
        "because the object is too large. The problems found by then are reported, and there may "
        "be more. Split the object into several smaller ones."
    )


def test_so_many_matches_are_all_looked_at_where_their_paths_differ() -> None:
    """None of them is compared with one of another path: nothing is left out, and what is wrong is found."""
    matches = [HTTPMatch(f"m{number}", f"/{number}", ("GET",)) for number in range(400)]
    group = a.route_group("paths", *matches, HTTPMatch("wide", "/7"))
    target = a.target("buy", "client", "store", a.http("paths"))
    assert _found(group, target) == []
    (shadowed,) = _found(group, target, code="MW2051")
    assert (shadowed.value, shadowed.expected) == (
        "paths/m7",
        (
            "Match paths/wide admits every request that this match admits, so this match has no effect "
            "here. Remove this match from the rules."
        ),
    )


def test_of_thousands_of_matches_the_first_are_read() -> None:
    """The 2,501st is one too many for one look: what is wrong with those before it is said."""
    matches = [
        HTTPMatch(f"m{number}", f"none{number}" if number in (3, 2700) else f"/{number}")
        for number in range(2800)
    ]
    group = a.route_group("paths", *matches)
    (never,) = _found(group, code="MW2057")
    (found,) = _found(group)
    assert (never.field, found.key, found.field) == ("spec.matches[3].pathRegex", never.key, "spec.matches")
    assert "for matches that never fit stopped after 50000 steps (the limit is 50000), " in found.expected


def test_targets_that_are_alike_are_compared_with_so_many_others() -> None:
    """Of a hundred each is compared with the first 64, none of which takes in any other."""
    targets = [a.target(f"t{number:03}", f"client-{number}", "store", a.tcp("all")) for number in range(100)]
    found = _found(a.tcp_route("all"), *targets)
    assert len(found) == 100
    assert {each.field for each in found} == {"spec.sources"}
    assert all("stopped after 64 steps (the limit is 64), " in each.expected for each in found)


def test_what_was_found_before_the_bound_is_said() -> None:
    """And the finding comes last."""
    place = Place(
        View.build(a.objects(*BASE), MeshSettings()), ObjectKey.of(TRAFFIC_TARGET, a.policy_key("t"))
    )
    one = _found(a.target("t", "client", "store", a.http("gone")), code="MW2001")[0]

    def check(budget: Budget) -> Iterator[Problem]:
        for _ in range(10):
            budget.spend(2)
            yield one

    assert [each.code for each in within(place, "spec", "anything", check, 5)] == [
        "MW2001",
        "MW2001",
        "MW2160",
    ]
    assert [each.code for each in within(place, "spec", "anything", check, 20)] == ["MW2001"] * 10


def test_a_budget_is_not_overdrawn() -> None:
    """A step that is too large takes nothing of what is left."""
    budget = Budget(5)
    budget.spend(3)
    with pytest.raises(SpentError):
        budget.spend(3)
    budget.spend(2)
    assert budget.spent == 5
