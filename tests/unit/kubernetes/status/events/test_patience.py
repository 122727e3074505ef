"""Tests of the delay of problems that may end by themselves: reported after ten seconds, others at once."""

from dataclasses import replace

from meshwright.kubernetes.status.events.patience import HELD_SECONDS, Patience
from meshwright.mesh.kinds import TRAFFIC_TARGET
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import InCluster
from meshwright.mesh.problems.problem import Problem, Severity

MISSING = Problem(
    code="MW2001",
    severity=Severity.ERROR,
    origin=InCluster("east", "7"),
    key=ObjectKey(TRAFFIC_TARGET, Namespace("shop"), "buyers"),
    field="spec.rules[0].name",
    value="paths",
    expected="HTTPRouteGroup shop/paths does not exist",
)
FOREIGN = replace(MISSING, code="MW2005", field="spec.destination.namespace")


def test_object_that_arrives_within_seconds_is_never_reported_missing() -> None:
    """A route group may be applied after its TrafficTarget: neither the problem nor its end is passed on."""
    patience = Patience()
    assert patience.passed({MISSING: True}, 100.0) == {}
    assert patience.seconds(104.0) == HELD_SECONDS - 4.0
    assert patience.passed({MISSING: False}, 105.0) == {}
    assert patience.seconds(105.0) is None
    assert patience.passed({}, 200.0) == {}


def test_missing_object_is_reported_once_after_ten_seconds() -> None:
    """The problem is passed on exactly once, and its end as well."""
    patience = Patience()
    assert patience.passed({MISSING: True}, 100.0) == {}
    assert patience.passed({}, 109.9) == {}
    assert patience.passed({}, 110.0) == {MISSING: True}
    assert patience.passed({}, 120.0) == {}
    assert patience.seconds(120.0) is None
    assert patience.passed({MISSING: False}, 130.0) == {MISSING: False}


def test_fault_of_the_object_itself_is_passed_on_at_once() -> None:
    """No other object can resolve such a problem, so a delay would not help."""
    patience = Patience()
    assert patience.passed({MISSING: True, FOREIGN: True}, 100.0) == {FOREIGN: True}
    assert patience.passed({FOREIGN: False}, 101.0) == {FOREIGN: False}


def test_object_applied_again_with_its_fault_keeps_its_deadline() -> None:
    """A new version of the object does not delay the report, neither before nor after the deadline.

    This holds even if the same field names another object.
    """
    again = replace(MISSING, origin=InCluster("east", "8"))
    other = replace(again, value="path", expected="HTTPRouteGroup shop/path does not exist")
    waiting = Patience()
    waiting.passed({MISSING: True}, 100.0)
    assert waiting.passed({MISSING: False, again: True}, 109.0) == {}
    assert waiting.passed({}, 110.0) == {again: True}
    assert waiting.passed({again: False, other: True}, 111.0) == {again: False, other: True}


def test_each_problem_has_its_own_deadline() -> None:
    """A problem that begins four seconds later is passed on four seconds later."""
    later = replace(MISSING, field="spec.rules[1].name")
    patience = Patience()
    patience.passed({MISSING: True}, 100.0)
    patience.passed({later: True}, 104.0)
    assert patience.passed({}, 110.0) == {MISSING: True}
    assert patience.seconds(110.0) == 4.0
    assert patience.passed({}, 114.0) == {later: True}
