"""Problems that may end by themselves are passed on when they have stood for ten seconds, others at once."""

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


def test_an_object_that_comes_within_seconds_is_never_told() -> None:
    """The route group comes after the TrafficTarget: neither its absence nor its coming is passed on."""
    patience = Patience()
    assert patience.passed({MISSING: True}, 100.0) == {}
    assert patience.seconds(104.0) == HELD_SECONDS - 4.0
    assert patience.passed({MISSING: False}, 105.0) == {}
    assert patience.seconds(105.0) is None
    assert patience.passed({}, 200.0) == {}


def test_an_object_that_does_not_come_is_told_after_ten_seconds() -> None:
    """Once, and its end as well."""
    patience = Patience()
    assert patience.passed({MISSING: True}, 100.0) == {}
    assert patience.passed({}, 109.9) == {}
    assert patience.passed({}, 110.0) == {MISSING: True}
    assert patience.passed({}, 120.0) == {}
    assert patience.seconds(120.0) is None
    assert patience.passed({MISSING: False}, 130.0) == {MISSING: False}


def test_a_fault_of_the_object_itself_is_passed_on_at_once() -> None:
    """No other object mends it."""
    patience = Patience()
    assert patience.passed({MISSING: True, FOREIGN: True}, 100.0) == {FOREIGN: True}
    assert patience.passed({FOREIGN: False}, 101.0) == {FOREIGN: False}


def test_an_object_applied_again_with_its_fault_is_given_no_more_time() -> None:
    """Neither while it waits nor after it was told, whatever it names in the same field."""
    again = replace(MISSING, origin=InCluster("east", "8"))
    other = replace(again, value="path", expected="HTTPRouteGroup shop/path does not exist")
    waiting = Patience()
    waiting.passed({MISSING: True}, 100.0)
    assert waiting.passed({MISSING: False, again: True}, 109.0) == {}
    assert waiting.passed({}, 110.0) == {again: True}
    assert waiting.passed({again: False, other: True}, 111.0) == {again: False, other: True}


def test_each_problem_has_its_own_time() -> None:
    """The second of two that come one after another waits longer."""
    later = replace(MISSING, field="spec.rules[1].name")
    patience = Patience()
    patience.passed({MISSING: True}, 100.0)
    patience.passed({later: True}, 104.0)
    assert patience.passed({}, 110.0) == {MISSING: True}
    assert patience.seconds(110.0) == 4.0
    assert patience.passed({}, 114.0) == {later: True}
