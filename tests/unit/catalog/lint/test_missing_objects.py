"""Which problems end when another object comes: by their codes, and by what stands beside them."""

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


@pytest.mark.parametrize("code", [each for each in Code if each.name.startswith("UNKNOWN_")])
def test_whatever_names_an_unknown_object_waits_for_it(code: Code) -> None:
    """A new code of this kind must be in the list."""
    assert code in MISSING


def test_a_fault_that_follows_from_a_missing_object_ends_with_it() -> None:
    """That of another object, or without a missing one, is the object's own."""
    unknown, refused = problem(Code.UNKNOWN_ROUTE), problem(Code.ALL_REFUSED)
    assert passing([unknown, refused]) == {unknown, refused}
    assert passing([problem(Code.UNKNOWN_ROUTE, "other"), refused]) == {problem(Code.UNKNOWN_ROUTE, "other")}
    assert passing([problem(Code.UNKNOWN_SOURCES), refused]) == {problem(Code.UNKNOWN_SOURCES)}


def test_a_fault_of_the_object_itself_does_not_pass() -> None:
    """Whatever stands beside it."""
    own = problem(Code.FOREIGN_DESTINATION)
    assert not may_pass(own)
    assert passing([own, problem(Code.UNKNOWN_ROUTE)]) == {problem(Code.UNKNOWN_ROUTE)}
