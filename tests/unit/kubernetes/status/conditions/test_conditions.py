"""Tests of conditions in the status of an object, by complete values."""

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
    """Return a problem of the workload."""
    return Problem(
        code=code,
        severity=severity,
        origin=InCluster("east", "7", 2),
        key=KEY,
        field=field,
        value='"nowhere"',
        expected="must be an IP address",
    )


def said(*result: Condition) -> list[tuple[str, str, str, str]]:
    """Return type, status, reason and message of conditions."""
    return [(condition.type, condition.status, condition.reason, condition.message) for condition in result]


FINE = [
    ("Accepted", "True", "Accepted", "the whole object is in force"),
    ("Conflicted", "False", "NoConflict", "other objects and sources do not conflict with this object"),
    ("Programmed", "True", "Applied", "applied by 3 of 3 proxies connected to a"),
]


def test_object_without_problems_is_accepted_and_programmed() -> None:
    """An object in force is Accepted, not Conflicted, and Programmed once all concerned proxies have it."""
    result = conditions((), Progress(3, 3), 2, (), NOW)
    assert said(*result) == FINE
    assert {(condition.generation, condition.since) for condition in result} == {(2, SECOND)}


def test_object_with_errors_is_not_accepted() -> None:
    """The message has code, field, value and expectation of each problem.

    Errors precede warnings, and only the first three are listed.
    """
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


def test_warning_is_in_the_message_of_an_accepted_object() -> None:
    """A warning is reported and leaves the object accepted. A problem of severity INFO is not reported."""
    accepted, *_ = conditions([problem("MW2030", Severity.WARNING)], Progress(0, 0), 1, (), NOW)
    text = 'MW2030: spec.address is "nowhere": must be an IP address'
    assert said(accepted) == [("Accepted", "True", "Accepted", text)]
    accepted, *_ = conditions([problem("MW1020", Severity.INFO)], Progress(0, 0), 1, (), NOW)
    assert said(accepted) == [("Accepted", "True", "Accepted", "the whole object is in force")]


def test_contradicting_source_is_a_conflict() -> None:
    """An object that contradicts another source is Conflicted.

    It is still Accepted, because its own content has no fault.
    """
    accepted, conflicted, _ = conditions([problem("MW1108")], Progress(0, 0), 1, (), NOW)
    assert (accepted.status, conflicted.status, conflicted.reason) == ("True", "True", "MW1108")


def test_object_not_in_force_is_neither_accepted_nor_programmed() -> None:
    """Another source's form is in force, or none is. The reason is the problem that keeps the object out."""
    elsewhere = problem("MW1108", Severity.WARNING)
    said_of = [
        conditions([item], Progress(3, 3), 1, (), NOW, in_force=False)
        for item in (elsewhere, problem("MW1013"))
    ]
    assert [[(condition.status, condition.reason) for condition in result] for result in said_of] == [
        [("False", "MW1108"), ("True", "MW1108"), ("False", "NotInForce")],
        [("False", "MW1013"), ("False", "NoConflict"), ("False", "NotInForce")],
    ]
    accepted, *_ = conditions((), None, 1, (), NOW, in_force=False)
    assert said(accepted) == [("Accepted", "False", "NotInForce", "all parts of the object are out of force")]


@pytest.mark.parametrize("code", ["resource-rejected", "policy-left-out"])
def test_rejected_resource_is_not_programmed(code: str) -> None:
    """A rejected resource or an omitted policy makes Programmed false, even after a complete roll-out."""
    *_, programmed = conditions([problem(code)], Progress(2, 2), 1, (), NOW)
    reason = {"resource-rejected": "ResourceRejected", "policy-left-out": "PolicyLeftOut"}[code]
    assert (programmed.status, programmed.reason) == ("False", reason)


def test_rollout_is_pending_until_all_proxies_have_applied_it() -> None:
    """A roll-out that concerns no proxy is complete at once."""
    *_, pending = conditions((), Progress(1, 3), 1, (), NOW)
    *_, nobody = conditions((), Progress(0, 0), 1, (), NOW)
    assert said(pending, nobody) == [
        ("Programmed", "False", "Pending", "applied by 1 of 3 proxies connected to a"),
        ("Programmed", "True", "NoProxyConcerned", "no proxy connected to a needed a change"),
    ]


def test_transition_time_stays_while_the_status_stays() -> None:
    """A new message or generation does not change lastTransitionTime; only a new status does."""
    before = conditions((), Progress(1, 3), 1, (), NOW)
    later = NOW + timedelta(hours=1)
    after = conditions((), Progress(2, 3), 2, before, later)
    assert [condition.since for condition in after] == [SECOND] * 3
    *_, done = conditions((), Progress(3, 3), 2, after, later)
    assert done.since == later.replace(microsecond=0)


def test_restart_keeps_the_programmed_condition_of_the_same_generation() -> None:
    """A restart writes nothing, because the earlier roll-out of the same generation remains valid.

    A new generation has a new reason.
    """
    before = conditions((), Progress(5, 5), 2, (), NOW)
    after = conditions((), None, 2, before, NOW + timedelta(days=1))
    assert after == before
    assert not differ(after, before)
    *_, other = conditions((), None, 3, before, NOW + timedelta(days=1))
    assert other.reason == "NoProxyConcerned"


def test_rejection_stays_until_proxies_have_reconnected() -> None:
    """Proxies report their rejections only some time after reconnecting.

    Until then the absence of a rejection proves nothing.
    """
    before = conditions([problem("resource-rejected")], Progress(1, 2), 2, (), NOW)
    assert conditions((), None, 2, before, NOW, settled=False)[2] == before[2]
    assert conditions((), None, 2, before, NOW)[2].reason == "NoProxyConcerned"


def test_progress_of_a_rollout_may_be_written_later() -> None:
    """A difference in progress alone can wait, and any other difference is written at once."""
    before = conditions((), Progress(3, 3), 1, (), NOW)
    edited = conditions((), Progress(1, 3), 2, before, NOW)
    assert (differ(edited, before), differ_in_words(edited, before)) == (True, False)
    wrong = conditions([problem("MW1013")], Progress(1, 3), 2, before, NOW)
    assert differ_in_words(wrong, before)


def test_conditions_are_read_as_they_were_written() -> None:
    """Conditions of other types are ignored, and malformed values are read as empty."""
    result = conditions((), Progress(3, 3), 2, (), NOW)
    others = {"type": "Ready", "status": "True"}
    raw = {"status": {"conditions": [others, *(condition.written() for condition in result), 7, {"type": 1}]}}
    assert read(raw) == result
    nonsenses: tuple[object, ...] = (None, 7, {}, {"status": []}, {"status": {"conditions": "no"}})
    for nonsense in nonsenses:
        assert read(nonsense) == ()
    wrong = {"type": "Accepted", "status": "True", "observedGeneration": "2", "lastTransitionTime": "today"}
    assert read({"status": {"conditions": [wrong]}}) == (Condition("Accepted", "True", "", ""),)


def test_condition_has_every_field_of_the_api() -> None:
    """The written form has every required field of metav1.Condition."""
    first, *_ = conditions((), Progress(0, 0), 2, (), NOW)
    assert replace(first, message="fine").written() == {
        "type": "Accepted",
        "status": "True",
        "reason": "Accepted",
        "message": "fine",
        "observedGeneration": 2,
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }
