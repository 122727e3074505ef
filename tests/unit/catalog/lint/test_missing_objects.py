"""Tests of problems that end when a missing object appears."""

import pytest

from catalog.lint.codes import Code
from catalog.lint.missing_objects import MISSING, may_pass, passing
from meshwright.mesh.kinds import TRAFFIC_TARGET
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import InCluster
from meshwright.mesh.problems.problem import Problem, Severity


def problem(code: Code, name: str = "buyers") -> Problem:
    """Make a problem of a TrafficTarget."""
    key = ObjectKey(TRAFFIC_TARGET, Namespace("shop"), name)
    return Problem(
        code=code, severity=Severity.ERROR, origin=InCluster("east", "7"), key=key, expected="be there"
    )


@pytest.mark.parametrize("code", [item for item in Code if item.name.startswith("UNKNOWN_")])
def test_every_code_of_an_unknown_object_is_in_the_list_of_missing_ones(code: Code) -> None:
    """Each `UNKNOWN_` code is in `MISSING`, so a new code of this kind must be added there."""
    assert code in MISSING


def test_problem_caused_by_a_missing_route_ends_with_it() -> None:
    """A target without rules in force passes with its own missing route.

    A missing route of another target, or unknown sources, do not explain it.
    """
    unknown, refused = problem(Code.UNKNOWN_ROUTE), problem(Code.ALL_REFUSED)
    assert passing([unknown, refused]) == {unknown, refused}
    assert passing([problem(Code.UNKNOWN_ROUTE, "other"), refused]) == {problem(Code.UNKNOWN_ROUTE, "other")}
    assert passing([problem(Code.UNKNOWN_SOURCES), refused]) == {problem(Code.UNKNOWN_SOURCES)}


def test_problem_of_the_object_itself_does_not_pass() -> None:
    """A problem with its cause in the object itself stays, whatever other problems the object has."""
    own = problem(Code.FOREIGN_DESTINATION)
    assert not may_pass(own)
    assert passing([own, problem(Code.UNKNOWN_ROUTE)]) == {problem(Code.UNKNOWN_ROUTE)}
