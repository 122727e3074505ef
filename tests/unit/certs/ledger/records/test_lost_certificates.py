"""Tests of what a store has lost of a proxy's record."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from certs.ledger.entry import LedgerEntry
from certs.ledger.records.fields import entries_in, key_of_proxy, with_entries, without_entries
from certs.ledger.records.lost_certificates import is_revoked, mend_proxy
from meshwright.mesh.identity import ProxyName
from meshwright.records.content import Content, Fields, UnreadableContentError
from meshwright.records.contract import ReplicaId

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
NAME = ProxyName.parse("u1.cart.shop")
KEY = key_of_proxy(NAME)


def certificate(serial: str, *, days: int = 90, revoked: int | None = None, by: str = "") -> LedgerEntry:
    """Return a certificate that is valid for so many days, and perhaps revoked at a day."""
    entry = LedgerEntry.issued(serial, NAME, BEGIN, BEGIN + days * DAY, joined_by=by)
    return entry if revoked is None else replace(entry, revoked_at=BEGIN + revoked * DAY)


def content(count: int, *entries: LedgerEntry, **others: object) -> Content:
    """Return a content with these certificates."""
    fields: Fields = with_entries({}, entries) or {}
    return Content({**fields, **others}, ReplicaId("a"), count)


def mended(known: Content, present: Content | None, day: float = 1) -> tuple[LedgerEntry, ...] | None:
    """Return the certificates to write, or None if nothing is lost."""
    fields = mend_proxy(KEY, known, present, BEGIN + day * DAY)
    return None if fields is None else entries_in(NAME, fields)


@pytest.mark.parametrize(
    ("entry", "day", "is_lost"),
    [
        (certificate("aa"), 1, True),
        (certificate("aa"), 90.9, True),  # a day after its end, less an hour
        (certificate("aa"), 91.1, False),
        (certificate("aa", revoked=10), 376, True),
        (certificate("aa", revoked=10), 378, False),
        (certificate("aa", revoked=10, by="join-token 0123"), 378, False),
        (certificate("aa", revoked=10, by="kubernetes Pod shop/cart-1 (8a)"), 378, False),
        (certificate("aa", revoked=10, by="cloud i-0123"), 5000, True),
    ],
)
def test_removal_is_a_loss_while_the_certificate_decides(
    entry: LedgerEntry, day: float, is_lost: bool
) -> None:
    """What the leader may have removed does not come back, all else does."""
    assert mended(content(3, entry), None, day) == ((entry,) if is_lost else None)


@pytest.mark.parametrize("stays", [(), (certificate("bb", revoked=10),)])
def test_certificate_of_an_ended_pod_does_not_come_back(stays: tuple[LedgerEntry, ...]) -> None:
    """The leader removes it although it is valid, and the write names it."""
    known = content(3, certificate("aa", by="kubernetes Pod shop/cart-1 (8a)"), *stays)
    present = Content(without_entries(known.fields, {"aa"}) or {}, ReplicaId("b"), 4)
    assert mended(known, present) is None
    assert mended(present, None) == (stays or None)


def test_certificate_that_one_of_two_writes_has_removed_does_not_come_back() -> None:
    """After a restore two writes may follow the same one, and nothing must be mended in their union again."""
    both = content(2, certificate("aa"), certificate("bb")).fields
    known = Content(without_entries(both, {"bb"}) or {}, ReplicaId("a"), 3)
    present = Content(without_entries(both, {"aa"}) or {}, ReplicaId("b"), 3)
    fields = mend_proxy(KEY, known, present, BEGIN + DAY)
    assert fields is not None
    assert fields["forgotten"] == ["bb", "aa"]
    assert mend_proxy(KEY, known, Content(fields, ReplicaId("a"), 4), BEGIN + DAY) is None


def test_record_without_certificates_may_vanish() -> None:
    """An orderly removal is a write without certificates, and then the removal."""
    assert mend_proxy(KEY, Content({"certificates": {}}, ReplicaId("a"), 3), None, BEGIN) is None


@pytest.mark.parametrize("count", [1, 3, 9])
def test_certificates_and_revocations_are_united(count: int) -> None:
    """This holds whatever the counts are: a store that went back may have been written since."""
    kept, revoked = certificate("aa"), certificate("aa", revoked=1)
    new, lost = certificate("bb"), certificate("cc")
    assert mended(content(3, revoked, lost), content(count, kept, new)) == (revoked, new, lost)
    assert mended(content(3, kept, lost), content(count, revoked, lost)) is None


def test_ended_certificate_that_was_removed_stays_removed() -> None:
    """A later write without it is no loss."""
    ended, valid = certificate("aa", days=10), certificate("bb")
    assert mended(content(3, ended, valid), content(4, valid), day=20) is None


def test_other_facts_are_those_of_the_highest_count() -> None:
    """A fact of another part of the server is neither lost with an older write, nor kept against a later."""
    known, entry = content(3, certificate("aa"), refuses="x"), certificate("aa")
    older, later = content(2, entry, refuses="y", new=5), content(4, entry, refuses="y")
    fields = mend_proxy(KEY, known, older, BEGIN)
    assert fields == {**known.fields, "new": 5}
    assert mend_proxy(KEY, known, later, BEGIN) is None


def test_nothing_is_lost_of_what_was_mended() -> None:
    """Servers that mend the same record come to an end."""
    known, present = content(3, certificate("aa", revoked=1), refuses="x"), content(3, certificate("bb"))
    fields = mend_proxy(KEY, known, present, BEGIN)
    assert fields is not None
    assert mend_proxy(KEY, known, Content(fields, ReplicaId("b"), 4), BEGIN) is None


def test_damaged_certificates_are_not_mended() -> None:
    """The record must be left as it is."""
    with pytest.raises(UnreadableContentError, match="certificate aa"):
        mend_proxy(KEY, content(3), Content({"certificates": {"aa": 5}}, ReplicaId("b"), 1), BEGIN)


def test_revoked_proxies_are_told_apart() -> None:
    """Their records are written again first."""
    assert is_revoked(content(1, certificate("aa"), certificate("bb", revoked=1)).fields)
    assert not is_revoked(content(1, certificate("aa")).fields)
    assert not is_revoked({"certificates": "damaged"})
