"""Tests of presence: a replica is gone after own renewals without one of its own."""

from typing import Final

from meshwright.records.content import Content
from meshwright.records.contract import Changes, Record, ReplicaId, Revision
from meshwright.records.key import key_of
from meshwright.records.kubernetes.presence import (
    FORGOTTEN_AFTER,
    GONE_AFTER,
    Presence,
    key_of_replica,
    presence_content,
)

A, B, C = (ReplicaId(name) for name in "abc")
LIMIT: Final = GONE_AFTER - 1
"""Own renewals that a silent replica outlasts."""


def renewal(replica: ReplicaId, count: int, state: bytes = b"") -> Record:
    """Return the record of a replica after a renewal."""
    content = presence_content(replica, state or replica.encode(), count)
    return Record(key_of_replica(replica), content, Revision(f"{replica}{count}"))


def after(presence: Presence, *records: Record) -> dict[ReplicaId, bytes] | None:
    """Take renewals that came together."""
    return presence.take(Changes(records))


def test_content_of_presence_is_another_one_each_time() -> None:
    """An equal object would be no change for the API server, so that others would see no renewal."""
    assert Content.decode(presence_content(A, b"\xff", 7)) == Content({"state": "/w=="}, A, 7)
    assert presence_content(A, b"x", 1) != presence_content(A, b"x", 2)


def test_nobody_is_here_before_oneself() -> None:
    """A receiver that computes shares never gets a list without its own replica at first."""
    presence = Presence(A)
    assert presence.take(Changes()) is None
    assert after(presence, renewal(B, 1)) is None
    assert after(presence, renewal(A, 1)) == {A: b"a", B: b"b"}


def test_only_changes_of_set_and_state_are_news() -> None:
    """Renewals are none."""
    presence = Presence(A)
    assert after(presence, renewal(A, 1), renewal(B, 1)) == {A: b"a", B: b"b"}
    assert after(presence, renewal(A, 2)) is None
    assert after(presence, renewal(B, 2)) is None
    assert after(presence, renewal(B, 3, b"new")) == {A: b"a", B: b"new"}
    assert after(presence, renewal(C, 1)) == {A: b"a", B: b"new", C: b"c"}
    assert presence.take(Changes(removed=(key_of_replica(C),))) == {A: b"a", B: b"new"}


def test_silent_replica_is_gone_after_four_own_renewals() -> None:
    """One that renews in between is not, in whatever batches the renewals come."""
    presence = Presence(A)
    assert after(presence, renewal(A, 1), renewal(B, 1), renewal(C, 1)) == {A: b"a", B: b"b", C: b"c"}
    for count in range(2, 2 + LIMIT):
        assert after(presence, renewal(C, count), renewal(A, count)) is None
    assert after(presence, renewal(A, 9)) == {A: b"a", C: b"c"}
    assert after(presence, renewal(B, 2)) == {A: b"a", B: b"b", C: b"c"}, "it was only slow"


def test_nobody_is_gone_while_the_store_is_away() -> None:
    """Own renewals do not come back then, so that others are judged only after as many as before."""
    presence = Presence(A)
    after(presence, renewal(A, 1), renewal(B, 1))
    for count in range(2, 2 + LIMIT):
        assert after(presence, renewal(A, count)) is None
    # Ten minutes later the list after the outage has B's next renewal, whichever comes first.
    assert after(presence, renewal(B, 2)) is None
    for count in range(20, 20 + LIMIT):
        assert after(presence, renewal(A, count)) is None
    assert after(presence, renewal(A, 99)) == {A: b"a"}


def test_record_of_an_ended_replica_is_forgotten() -> None:
    """A replica that was killed leaves its record, which others remove by its last revision."""
    presence = Presence(A)
    after(presence, renewal(A, 1), renewal(B, 1))
    for count in range(2, 1 + FORGOTTEN_AFTER):
        after(presence, renewal(A, count))
        assert presence.forgotten() == []
    after(presence, renewal(A, 99))
    assert presence.forgotten() == [(key_of("replicas", "b"), Revision("b1"))]
    assert presence.take(Changes(removed=(key_of_replica(B),))) is None
    assert presence.forgotten() == []


def test_unreadable_presence_is_left_out() -> None:
    """A record of a newer form, or a damaged one, is nobody's presence until it is written again."""
    presence = Presence(A)
    after(presence, renewal(A, 1), renewal(B, 1))
    for content in (b"damaged", b'{"form": 2}', Content({"state": "!"}, B).encode()):
        damaged = Record(key_of_replica(B), content, Revision("7"))
        assert after(presence, damaged) == {A: b"a"}
        assert after(presence, renewal(B, 2)) == {A: b"a", B: b"b"}


def test_own_record_that_was_removed_is_missing_until_the_next_renewal() -> None:
    """Others had found this replica gone, for example because its process was stopped."""
    presence = Presence(A)
    after(presence, renewal(A, 1), renewal(B, 1))
    assert presence.take(Changes(removed=(key_of_replica(A),))) == {B: b"b"}
    assert after(presence, renewal(A, 2)) == {A: b"a", B: b"b"}
