"""Conditions: what the status of an object says, whole values."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from meshwright.kubernetes.status.conditions import conditions as of
from meshwright.kubernetes.status.conditions.conditions import Condition, differ, differ_in_words, read
from meshwright.kubernetes.status.rollouts import Progress
from meshwright.mesh.kinds import WORKLOAD
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import InCluster
from meshwright.mesh.problems.problem import Problem, Severity

NOW = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
SECOND = NOW.replace(microsecond=0)
KEY = ObjectKey(WORKLOAD, Namespace("shop"), "till-1")

conditions = partial(of.conditions, server="a")


def problem(code: str, severity: Severity = Severity.ERROR, field: str = "spec.address") -> Problem:
    """Make a problem of the workload."""
    return Problem(
        code=code,
        severity=severity,
        origin=InCluster("east", "7", 2),
        key=KEY,
        field=field,
        value='"nowhere"',
        expected="must be an IP address",
    )


def said(*found: Condition) -> list[tuple[str, str, str, str]]:
    """Return what conditions say."""
    return [(each.type, each.status, each.reason, each.message) for each in found]


FINE = [
    ("Accepted", "True", "Accepted", "the whole object is in force"),
    ("Conflicted", "False", "NoConflict", "no other object or source conflicts with this object"),
    ("Programmed", "True", "Applied", "applied by 3 of 3 proxies connected to a"),
]


def test_an_object_with_which_all_is_well() -> None:
    """In force, not contradicted, and all who are concerned have it."""
    found = conditions((), Progress(3, 3), 2, (), NOW)
    assert said(*found) == FINE
    assert {(each.generation, each.since) for each in found} == {(2, SECOND)}


def test_what_cannot_be_read_is_not_accepted() -> None:
    """With code, field, value and what would be right; the worst first, and not all of many."""
    many = [problem("MW1013"), *(problem("MW1012", field=f"spec.x{n}") for n in range(4))]
    accepted, *_ = conditions([problem("MW1010", Severity.WARNING), *many], None, 2, (), NOW)
    assert said(accepted) == [
        (
            "Accepted",
            "False",
            "MW1012",
            "; ".join(f'MW1012: spec.x{n} is "nowhere": must be an IP address' for n in range(3))
            + "; and 3 more",
        )
    ]


def test_a_warning_is_told_and_leaves_the_object_accepted() -> None:
    """And what is merely worth knowing is not told."""
    accepted, *_ = conditions([problem("MW2030", Severity.WARNING)], Progress(0, 0), 1, (), NOW)
    text = 'MW2030: spec.address is "nowhere": must be an IP address'
    assert said(accepted) == [("Accepted", "True", "Accepted", text)]
    accepted, *_ = conditions([problem("MW1020", Severity.INFO)], Progress(0, 0), 1, (), NOW)
    assert said(accepted) == [("Accepted", "True", "Accepted", "the whole object is in force")]


def test_another_source_that_says_otherwise_is_a_conflict() -> None:
    """It is not in force as it stands here, and what is wrong is not in the object itself."""
    accepted, conflicted, _ = conditions([problem("MW1108")], Progress(0, 0), 1, (), NOW)
    assert (accepted.status, conflicted.status, conflicted.reason) == ("True", "True", "MW1108")


def test_what_is_not_in_force_is_neither_accepted_nor_programmed() -> None:
    """Another source's form is, or none ever was; the reason is what keeps it out."""
    elsewhere = problem("MW1108", Severity.WARNING)
    said_of = [
        conditions([each], Progress(3, 3), 1, (), NOW, in_force=False)
        for each in (elsewhere, problem("MW1013"))
    ]
    assert [[(each.status, each.reason) for each in found] for found in said_of] == [
        [("False", "MW1108"), ("True", "MW1108"), ("False", "NotInForce")],
        [("False", "MW1013"), ("False", "NoConflict"), ("False", "NotInForce")],
    ]
    accepted, *_ = conditions((), None, 1, (), NOW, in_force=False)
    assert said(accepted) == [("Accepted", "False", "NotInForce", "no part of the object is in force")]


@pytest.mark.parametrize("code", ["resource-rejected", "policy-left-out"])
def test_what_proxies_reject_is_not_programmed(code: str) -> None:
    """Whatever a roll-out has come to."""
    *_, programmed = conditions([problem(code)], Progress(2, 2), 1, (), NOW)
    reason = {"resource-rejected": "ResourceRejected", "policy-left-out": "PolicyLeftOut"}[code]
    assert (programmed.status, programmed.reason) == ("False", reason)


def test_a_rollout_is_pending_until_all_have_it() -> None:
    """One that concerns nobody is over as soon as it began."""
    *_, pending = conditions((), Progress(1, 3), 1, (), NOW)
    *_, nobody = conditions((), Progress(0, 0), 1, (), NOW)
    assert said(pending, nobody) == [
        ("Programmed", "False", "Pending", "applied by 1 of 3 proxies connected to a"),
        ("Programmed", "True", "NoProxyConcerned", "no proxy connected to a needed a change"),
    ]


def test_the_moment_stays_as_long_as_the_status_does() -> None:
    """Whatever the message says meanwhile."""
    before = conditions((), Progress(1, 3), 1, (), NOW)
    later = NOW + timedelta(hours=1)
    after = conditions((), Progress(2, 3), 2, before, later)
    assert [each.since for each in after] == [SECOND] * 3
    *_, done = conditions((), Progress(3, 3), 2, after, later)
    assert done.since == later.replace(microsecond=0)


def test_what_an_earlier_server_wrote_stays_where_nothing_else_is_known() -> None:
    """A restart writes nothing: of the same generation what was said of its roll-out still holds."""
    before = conditions((), Progress(5, 5), 2, (), NOW)
    after = conditions((), None, 2, before, NOW + timedelta(days=1))
    assert after == before
    assert not differ(after, before)
    *_, other = conditions((), None, 3, before, NOW + timedelta(days=1))
    assert other.reason == "NoProxyConcerned"


def test_a_rejection_is_not_taken_back_before_proxies_have_come_back() -> None:
    """They say after a while what they reject; then its absence says something."""
    before = conditions([problem("resource-rejected")], Progress(1, 2), 2, (), NOW)
    assert conditions((), None, 2, before, NOW, settled=False)[2] == before[2]
    assert conditions((), None, 2, before, NOW)[2].reason == "NoProxyConcerned"


def test_only_what_is_other_is_written() -> None:
    """How far a roll-out has come may wait; anything else does not."""
    before = conditions((), Progress(3, 3), 1, (), NOW)
    edited = conditions((), Progress(1, 3), 2, before, NOW)
    assert (differ(edited, before), differ_in_words(edited, before)) == (True, False)
    wrong = conditions([problem("MW1013")], Progress(1, 3), 2, before, NOW)
    assert differ_in_words(wrong, before)


def test_conditions_are_read_as_they_were_written() -> None:
    """Those of others are not ours, and nonsense is nothing."""
    found = conditions((), Progress(3, 3), 2, (), NOW)
    others = {"type": "Ready", "status": "True"}
    raw = {"status": {"conditions": [others, *(each.written() for each in found), 7, {"type": 1}]}}
    assert read(raw) == found
    nonsenses: tuple[object, ...] = (None, 7, {}, {"status": []}, {"status": {"conditions": "no"}})
    for nonsense in nonsenses:
        assert read(nonsense) == ()
    wrong = {"type": "Accepted", "status": "True", "observedGeneration": "2", "lastTransitionTime": "today"}
    assert read({"status": {"conditions": [wrong]}}) == (Condition("Accepted", "True", "", ""),)


def test_a_condition_is_written_as_the_api_takes_it() -> None:
    """Every field of metav1.Condition."""
    first, *_ = conditions((), Progress(0, 0), 2, (), NOW)
    assert replace(first, message="fine").written() == {
        "type": "Accepted",
        "status": "True",
        "reason": "Accepted",
        "message": "fine",
        "observedGeneration": 2,
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }
