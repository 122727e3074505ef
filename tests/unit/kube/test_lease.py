"""A Lease by its rules: what counts is how long nobody has renewed it, by our own clock."""

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
    """Make what a Lease says."""
    return LeaseRecord(holder, renewed, lasts, changes, "t0", RAW)


def test_a_lease_that_is_not_there_is_made() -> None:
    """By whoever comes first."""
    assert step(None, "a", 100.0) is Step.CREATE


def test_it_is_waited_for_as_long_as_it_lasts_since_we_saw_it_renewed() -> None:
    """Whatever its holder's clock says: the renewal may be of next year."""
    known = seen(None, held("b", "2027-01-01T00:00:00Z"), 100.0)
    assert step(known, "a", 114.9) is Step.WAIT
    assert step(known, "a", 115.0) is Step.TAKE
    same = seen(known, held("b", "2027-01-01T00:00:00Z"), 114.0)
    assert same.since == 100.0
    renewed = seen(same, held("b", "2026-06-01T00:00:00Z"), 114.0)
    assert step(renewed, "a", 128.9) is Step.WAIT


def test_it_counts_how_long_the_lease_itself_says_it_lasts() -> None:
    """Its holder may be of another version; but it is not waited for ever."""
    assert step(LeaseObservation(held("b", lasts=40.0), 0.0), "a", 39.0) is Step.WAIT
    assert LeaseRecord.of({"spec": {"leaseDurationSeconds": 10**9}}, TERMS).lasts == LONGEST


def test_one_that_was_given_back_is_taken_at_once() -> None:
    """Nobody waits for a holder that said goodbye."""
    assert step(LeaseObservation(held(""), 100.0), "a", 100.0) is Step.TAKE


def test_our_own_is_renewed() -> None:
    """However long ago that was: nobody has taken it."""
    assert step(LeaseObservation(held("a"), 0.0), "a", 1000.0) is Step.RENEW


def test_what_is_written() -> None:
    """When it was acquired, and how often it changed hands, is kept right."""
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


@pytest.mark.parametrize("what", [Step.TAKE, Step.RENEW])
def test_what_others_put_on_a_lease_stays(what: Step) -> None:
    """And it is replaced as it was seen: who changed it meanwhile is not overwritten."""
    after = document(what, LeaseObservation(held("a"), 0.0), NAMED, "a", NOW, TERMS)
    assert after["metadata"] == RAW["metadata"]


def test_nonsense_in_a_lease_is_a_lease_that_nobody_holds() -> None:
    """It can be taken, and is right then."""
    for raw in ({}, {"spec": 7}, {"spec": {"holderIdentity": None, "leaseDurationSeconds": "x"}}):
        found = LeaseRecord.of(raw, TERMS)
        assert (found.holder, found.lasts) == ("", 15.0)
