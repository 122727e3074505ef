"""Tests of the rules of a Lease: it expires by our own clock, counted from the last observed renewal."""

from datetime import UTC, datetime

import pytest

from meshwright.kube.lease import LONGEST, TERMS, LeaseObservation, LeaseRecord, Step, document, seen, step

NOW = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)

NAMED = {"name": "writing", "namespace": "home"}
RAW = {
    "kind": "Lease",
    "metadata": {**NAMED, "resourceVersion": "77", "labels": {"team": "mesh"}, "annotations": {"seen": "1"}},
    "spec": {"holderIdentity": "b", "strategy": "OldestEmulationVersion"},
}


def held(holder: str, renewed: str = "t1", lasts: float = 15.0, changes: int = 3) -> LeaseRecord:
    """Return the record of a Lease."""
    return LeaseRecord(holder, renewed, lasts, changes, "t0", RAW)


def test_missing_lease_is_created() -> None:
    """The first candidate creates the Lease."""
    assert step(None, "a", 100.0) is Step.CREATE


def test_lease_expires_its_duration_after_the_last_observed_renewal() -> None:
    """The holder's clock does not matter: its renewTime may even be in the future."""
    known = seen(None, held("b", "2027-01-01T00:00:00Z"), 100.0)
    assert step(known, "a", 114.9) is Step.WAIT
    assert step(known, "a", 115.0) is Step.TAKE
    same = seen(known, held("b", "2027-01-01T00:00:00Z"), 114.0)
    assert same.since == 100.0
    renewed = seen(same, held("b", "2026-06-01T00:00:00Z"), 114.0)
    assert step(renewed, "a", 128.9) is Step.WAIT


def test_duration_of_the_lease_itself_counts_up_to_a_limit() -> None:
    """A holder of another version may have another duration. The limit prevents an endless wait."""
    assert step(LeaseObservation(held("b", lasts=40.0), 0.0), "a", 39.0) is Step.WAIT
    assert LeaseRecord.parse({"spec": {"leaseDurationSeconds": 10**9}}, TERMS).lasts == LONGEST


def test_released_lease_is_taken_at_once() -> None:
    """A Lease without a holder was released, so no expiry is necessary."""
    assert step(LeaseObservation(held(""), 100.0), "a", 100.0) is Step.TAKE


def test_own_lease_is_renewed_even_after_its_expiry() -> None:
    """No other candidate has taken the Lease."""
    assert step(LeaseObservation(held("a"), 0.0), "a", 1000.0) is Step.RENEW


def test_written_lease_has_the_right_acquire_time_and_transitions() -> None:
    """Taking a Lease sets acquireTime and counts a transition; a renewal keeps both."""
    known, mine = LeaseObservation(held("b"), 0.0), LeaseObservation(held("a"), 0.0)
    moment = "2026-01-02T03:04:05.000678Z"
    written = {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": moment}
    made = document(Step.CREATE, None, NAMED, "a", NOW, TERMS)
    assert made == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": NAMED,
        "spec": written | {"acquireTime": moment, "leaseTransitions": 0},
    }
    there = written | {"strategy": "OldestEmulationVersion"}
    taken = document(Step.TAKE, known, NAMED, "a", NOW, TERMS)
    assert taken["spec"] == there | {"acquireTime": moment, "leaseTransitions": 4}
    renewed = document(Step.RENEW, mine, NAMED, "a", NOW, TERMS)
    assert renewed["spec"] == there | {"acquireTime": "t0", "leaseTransitions": 3}


def test_transitions_of_a_new_term_are_above_all_that_were_seen() -> None:
    """A Lease that was deleted or edited by hand does not begin from 0 again; a renewal keeps the number."""
    known = LeaseObservation(held("b"), 0.0)

    def transitions(action: Step, known: LeaseObservation | None, least: int) -> int:
        return int(document(action, known, NAMED, "a", NOW, TERMS, least)["spec"]["leaseTransitions"])

    assert transitions(Step.CREATE, None, 8) == 8
    assert transitions(Step.TAKE, known, 8) == 8
    assert transitions(Step.TAKE, known, 2) == 4
    assert transitions(Step.RENEW, known, 8) == 3


@pytest.mark.parametrize("what", [Step.TAKE, Step.RENEW])
def test_foreign_metadata_of_a_lease_are_kept(what: Step) -> None:
    """Labels and annotations stay.

    The resourceVersion makes a write fail if the Lease was changed meanwhile.
    """
    after = document(what, LeaseObservation(held("a"), 0.0), NAMED, "a", NOW, TERMS)
    assert after["metadata"] == RAW["metadata"]


def test_malformed_lease_counts_as_released() -> None:
    """The Lease can be taken, and the write corrects it."""
    for raw in ({}, {"spec": 7}, {"spec": {"holderIdentity": None, "leaseDurationSeconds": "x"}}):
        lease_record = LeaseRecord.parse(raw, TERMS)
        assert (lease_record.holder, lease_record.lasts) == ("", 15.0)
