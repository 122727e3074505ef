"""Tests of lint's budget: bounded work for each object, and a report where lint stopped."""

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
    return [problem for problem in problems(view) if problem.code == code]


def _matches(count: int) -> list[HTTPMatch]:
    """Return matches of one path that differ only in a header."""
    return [
        HTTPMatch(f"m{number}", "/a", headers=(HeaderMatch("x", f"{number}"),)) for number in range(count)
    ]


def test_matches_of_one_path_are_compared_up_to_the_limit() -> None:
    """A problem of the target names the number of steps made and the limit."""
    group = a.route_group("paths", *_matches(300))
    target = a.target("buy", "client", "store", a.http("paths"))
    (problem,) = _found(group, target)
    assert (problem.key, problem.field, problem.severity) == (
        ObjectKey.from_name(TRAFFIC_TARGET, target.key),
        "spec.rules",
        Severity.INFO,
    )
    assert problem.expected == (
        f"The search for matches without effect stopped after {MOST} steps (the limit is {MOST}), "
        "because the object is too large. The problems found by then are reported, and there may "
        "be more. Split the object into several smaller ones."
    )


def test_matches_of_different_paths_stay_within_the_limit() -> None:
    """Matches of different paths are not compared, so lint finishes and finds the shadowed match."""
    matches = [HTTPMatch(f"m{number}", f"/{number}", ("GET",)) for number in range(400)]
    group = a.route_group("paths", *matches, HTTPMatch("wide", "/7"))
    target = a.target("buy", "client", "store", a.http("paths"))
    assert _found(group, target) == []
    (shadowed,) = _found(group, target, code="MW2051")
    assert (shadowed.value, shadowed.expected) == (
        "paths/m7",
        (
            "Match paths/wide admits every request that this match admits, so this match is redundant "
            "here. Remove this match from the rules."
        ),
    )


def test_thousands_of_matches_are_read_up_to_the_limit() -> None:
    """Only the first matches are read. A problem among them is reported, and so is the limit."""
    matches = [
        HTTPMatch(f"m{number}", f"none{number}" if number in (3, 2700) else f"/{number}")
        for number in range(2800)
    ]
    group = a.route_group("paths", *matches)
    (never,) = _found(group, code="MW2057")
    (problem,) = _found(group)
    assert (never.field, problem.key, problem.field) == (
        "spec.matches[3].pathRegex",
        never.key,
        "spec.matches",
    )
    assert "for matches that never fit stopped after 50000 steps (the limit is 50000), " in problem.expected


def test_similar_targets_are_compared_with_at_most_64_others() -> None:
    """Each of 100 targets without overlap is compared with 64 others and reports the limit."""
    targets = [a.target(f"t{number:03}", f"client-{number}", "store", a.tcp("all")) for number in range(100)]
    result = _found(a.tcp_route("all"), *targets)
    assert len(result) == 100
    assert {problem.field for problem in result} == {"spec.sources"}
    assert all("stopped after 64 steps (the limit is 64), " in problem.expected for problem in result)


def test_problems_found_before_the_limit_are_reported() -> None:
    """Problems found within the limit come first, and the report of the limit is the last one."""
    place = Place(
        View.build(a.objects(*BASE), MeshSettings()), ObjectKey.from_name(TRAFFIC_TARGET, a.policy_key("t"))
    )
    one = _found(a.target("t", "client", "store", a.http("gone")), code="MW2001")[0]

    def check(budget: Budget) -> Iterator[Problem]:
        for _ in range(10):
            budget.spend(2)
            yield one

    assert [problem.code for problem in within(place, "spec", "anything", check, 5)] == [
        "MW2001",
        "MW2001",
        "MW2160",
    ]
    assert [problem.code for problem in within(place, "spec", "anything", check, 20)] == ["MW2001"] * 10


def test_step_beyond_the_budget_spends_nothing() -> None:
    """A step that is too large fails and leaves the rest of the budget to smaller steps."""
    budget = Budget(5)
    budget.spend(3)
    with pytest.raises(SpentError):
        budget.spend(3)
    budget.spend(2)
    assert budget.spent == 5
