"""What is known of a cluster's objects, and of which it is otherwise than was reported."""

from dataclasses import replace

from meshwright.kubernetes.status.object_status import ObjectStatusTable
from meshwright.mesh.kinds import TRAFFIC_TARGET, WORKLOAD
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.origins import InCluster, InFile
from meshwright.mesh.problems.problem import Problem, Severity
from tests.meshes import values as a

SHOP = Namespace("default")
TARGET = ObjectKey(TRAFFIC_TARGET, SHOP, "buyers")
TILL = ObjectKey(WORKLOAD, SHOP, "till")
HERE = InCluster("east", "7", 2)


def problem(key: ObjectKey | None = TARGET, severity: Severity = Severity.ERROR) -> Problem:
    """Make a problem."""
    return Problem(code="MW2001", severity=severity, origin=HERE, key=key, expected="must be there")


def till(origin: InCluster | InFile = HERE) -> SourcedObject:
    """Make a workload of the cluster."""
    return SourcedObject(TILL, a.workload("till", "10.0.0.1"), origin)


def test_problems_are_by_object_and_touch_it() -> None:
    """Coming and going; the errors are looked at first."""
    standing = ObjectStatusTable("east", {WORKLOAD})
    warning = problem(replace(TARGET, name="a"), Severity.WARNING)
    standing.heard({warning: True, problem(): True})
    assert standing.take() == (TARGET, warning.key)
    assert list(standing.problems(TARGET)) == [problem()]
    assert (standing.take(), standing.is_touched) == ((), False)
    standing.heard({problem(): False})
    assert (standing.take(), list(standing.problems(TARGET))) == ((TARGET,), [])


def test_what_is_not_of_the_cluster_is_left_alone() -> None:
    """Files, other clusters, and what names no object."""
    standing = ObjectStatusTable("east", {WORKLOAD})
    elsewhere = [replace(problem(), origin=each) for each in (InFile("a.yaml"), InCluster("west", "7"))]
    standing.heard(dict.fromkeys([*elsewhere, problem(None)], True))
    standing.held({TILL: till(InFile("a.yaml"))})
    standing.held({TILL: None})
    assert not standing.is_touched


def test_objects_with_a_status_are_known_while_they_are_in_force() -> None:
    """And touched by whatever becomes of them."""
    standing = ObjectStatusTable("east", {WORKLOAD})
    standing.held({TILL: till(), **a.objects(a.service("till", a.port(80)))})
    assert (standing.take(), standing.has_status(TILL)) == ((TILL,), True)
    standing.held({TILL: till(InFile("a.yaml"))})
    assert (standing.take(), standing.has_status(TILL)) == ((TILL,), False)


def test_the_generation_is_the_newest_that_was_read() -> None:
    """One that cannot be read leaves an older form in force."""
    standing = ObjectStatusTable("east", {WORKLOAD})
    assert standing.generation(TILL) is None
    standing.held({TILL: till()})
    assert standing.generation(TILL) == 2
    newer = replace(problem(TILL), origin=InCluster("east", "8", 3))
    standing.heard({newer: True})
    assert standing.generation(TILL) == 3
    standing.held({TILL: None})
    assert standing.generation(TILL) == 3
