"""Tests of the judgements of several servers: the store, the servers, and their inputs."""

from dataclasses import replace
from datetime import timedelta

import pytest

from meshwright.cli.checking.judgements import replicas as judgements
from meshwright.cli.checking.judgements.check import Status
from meshwright.cli.checking.judgements.replicas import DIFFERING, LATE, Member, Replicas

SECOND = timedelta(seconds=1)
A, B, C = (Member(name, "1.0", "ready", 2 * SECOND, "3-ab") for name in "abc")
ALL = Replicas("a", "b", (A, B, C))


@pytest.mark.parametrize(
    ("found", "status", "finding"),
    [
        (ALL, Status.OK, "answered 3 servers, the last answer at most 2 s ago"),
        (
            replace(ALL, members=(A, replace(B, store_age=LATE + SECOND), C)),
            Status.FAILED,
            "the shared store has not answered b for 16 s",
        ),
        (
            replace(ALL, members=(replace(A, store_age=None), B)),
            Status.FAILED,
            "the shared store has not answered this server yet",
        ),
        (
            replace(ALL, members=(A, replace(B, store_age=None))),
            Status.OK,
            "answered 1 server, the last answer at most 2 s ago",
        ),
    ],
)
def test_store(found: Replicas, status: Status, finding: str) -> None:
    """A store that is away for one server only is found from any of them."""
    check = judgements.store(found)
    assert (check.name, check.status, check.finding) == ("store", status, finding)


@pytest.mark.parametrize(
    ("found", "status", "finding"),
    [
        (ALL, Status.OK, "3 servers of version 1.0; b leads"),
        (
            replace(ALL, silent=(("c", "no answer within 2 s"),)),
            Status.FAILED,
            "3 servers, without an answer: c (no answer within 2 s)",
        ),
        (
            replace(ALL, members=(A, replace(B, differing=("trust_domain", "verify")))),
            Status.FAILED,
            "2 servers, with other settings than a: b (trust_domain, verify)",
        ),
        (
            replace(ALL, members=(A, replace(B, state="starting"), replace(C, state="stopping"))),
            Status.WARNING,
            "3 servers, not ready: b (starting), c (stopping)",
        ),
        (
            replace(ALL, members=(A, replace(B, version="1.1"))),
            Status.WARNING,
            "2 servers of the versions 1.0, 1.1",
        ),
        (replace(ALL, leader=""), Status.WARNING, "3 servers, and none leads"),
    ],
)
def test_replicas(found: Replicas, status: Status, finding: str) -> None:
    """All servers answer, are ready, and have one version, equal settings and a leader."""
    check = judgements.replicas(found)
    assert (check.name, check.status, check.finding) == ("replicas", status, finding)


@pytest.mark.parametrize(
    ("found", "status", "finding"),
    [
        (ALL, Status.OK, "3 servers with the same objects"),
        (
            replace(ALL, members=(A, B, replace(C, inputs="3-cd")), inputs_differ=DIFFERING + SECOND),
            Status.FAILED,
            "other objects at c for 31 s",
        ),
        (
            replace(ALL, members=(A, B, replace(C, inputs="3-cd")), inputs_differ=DIFFERING),
            Status.OK,
            "other objects at c for 30 s, which is normal during a change",
        ),
        (replace(ALL, members=(A, replace(B, inputs=""))), Status.OK, "1 server with the same objects"),
        (
            replace(ALL, members=(replace(A, inputs=""),)),
            Status.WARNING,
            "no server has read its sources yet",
        ),
    ],
)
def test_inputs(found: Replicas, status: Status, finding: str) -> None:
    """The server with other objects than most others is named, after 30 seconds."""
    check = judgements.inputs(found)
    assert (check.name, check.status, check.finding) == ("inputs", status, finding)
