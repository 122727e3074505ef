"""Tests of the table of a cluster's objects, their problems, and which of them have a report due."""

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
    """Return a problem."""
    return Problem(code="MW2001", severity=severity, origin=HERE, key=key, expected="must be there")


def till(origin: InCluster | InFile = HERE) -> SourcedObject:
    """Return a workload of the cluster."""
    return SourcedObject(TILL, a.workload("till", "10.0.0.1"), origin)


def test_begun_and_ended_problems_mark_their_object_for_a_report() -> None:
    """Both the begin and the end of a problem mark the object.

    Objects with errors precede objects with warnings.
    """
    standing = ObjectStatusTable("east", {WORKLOAD})
    warning = problem(replace(TARGET, name="a"), Severity.WARNING)
    standing.apply_problems({warning: True, problem(): True})
    assert standing.take() == (TARGET, warning.key)
    assert list(standing.problems(TARGET)) == [problem()]
    assert (standing.take(), standing.is_touched) == ((), False)
    standing.apply_problems({problem(): False})
    assert (standing.take(), list(standing.problems(TARGET))) == ((TARGET,), [])


def test_problems_and_objects_outside_the_cluster_are_ignored() -> None:
    """Files, other clusters and problems without an object mark nothing for a report."""
    standing = ObjectStatusTable("east", {WORKLOAD})
    elsewhere = [replace(problem(), origin=item) for item in (InFile("a.yaml"), InCluster("west", "7"))]
    standing.apply_problems(dict.fromkeys([*elsewhere, problem(None)], True))
    standing.apply_edits({TILL: till(InFile("a.yaml"))})
    standing.apply_edits({TILL: None})
    assert not standing.is_touched


def test_object_has_a_status_while_its_form_of_the_cluster_is_in_force() -> None:
    """The object is marked for a report when it is added and when a file's form replaces it."""
    standing = ObjectStatusTable("east", {WORKLOAD})
    standing.apply_edits({TILL: till(), **a.objects(a.service("till", a.port(80)))})
    assert (standing.take(), standing.has_status(TILL)) == ((TILL,), True)
    standing.apply_edits({TILL: till(InFile("a.yaml"))})
    assert (standing.take(), standing.has_status(TILL)) == ((TILL,), False)


def test_generation_is_the_newest_that_was_read() -> None:
    """A problem of a newer, unreadable form counts, although the older form remains in force."""
    standing = ObjectStatusTable("east", {WORKLOAD})
    assert standing.generation(TILL) is None
    standing.apply_edits({TILL: till()})
    assert standing.generation(TILL) == 2
    newer = replace(problem(TILL), origin=InCluster("east", "8", 3))
    standing.apply_problems({newer: True})
    assert standing.generation(TILL) == 3
    standing.apply_edits({TILL: None})
    assert standing.generation(TILL) == 3
