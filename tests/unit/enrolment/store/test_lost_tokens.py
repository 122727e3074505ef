"""Tests of what a store has lost of join tokens and their uses."""

from datetime import UTC, datetime, timedelta

import pytest

from meshwright.enrolment.store.contract import REMEMBERED
from meshwright.enrolment.store.lost_tokens import is_revoked, mend_token
from meshwright.enrolment.store.token_fields import given_back, key_of_token, key_of_use, use_fields
from meshwright.records.content import Content, Fields
from meshwright.records.contract import ReplicaId

NOW = datetime(2026, 1, 1, tzinfo=UTC)
END = NOW + timedelta(days=1)
TOKEN, USE = key_of_token("0123456789ab"), key_of_use("0123456789ab", 0)
FIELDS: Fields = {"uses": 1, "expires_at": int(END.timestamp())}
REVOKED: Fields = {**FIELDS, "revoked_at": int(NOW.timestamp())}
USED = use_fields("key", NOW, END)


def content(fields: Fields, count: int = 3) -> Content:
    """Return a content of the store."""
    return Content(fields, ReplicaId("a"), count)


@pytest.mark.parametrize(("key", "fields"), [(TOKEN, FIELDS), (TOKEN, REVOKED), (USE, USED)])
def test_removal_is_a_loss_until_the_token_is_forgotten(key: str, fields: Fields) -> None:
    """Old tokens are removed with their uses 90 days after their end, and do not come back."""
    late = END + REMEMBERED
    results = [
        mend_token(key, content(fields), None, now)  # type: ignore[arg-type]
        for now in (NOW, late - timedelta(hours=2), late)
    ]
    assert results == [fields, fields, None]


@pytest.mark.parametrize("count", [1, 3, 9])
def test_revocation_is_never_undone(count: int) -> None:
    """A token of an older snapshot is revoked again, with what is new in it."""
    assert mend_token(TOKEN, content(REVOKED), content({**FIELDS, "new": 1}, count), NOW) == {
        **REVOKED,
        "new": 1,
    }
    assert mend_token(TOKEN, content(FIELDS), content(REVOKED, count), NOW) is None


def test_use_is_not_given_to_another_key_by_a_snapshot() -> None:
    """A use that was free in the snapshot is taken again; a use that another key has now stays with it."""
    free = given_back(USED)
    assert mend_token(USE, content(USED, 3), content(free, 2), NOW) == USED
    assert mend_token(USE, content(USED, 3), content(free, 4), NOW) is None
    assert mend_token(USE, content(USED, 3), content(use_fields("other", NOW, END), 2), NOW) is None
    assert mend_token(USE, content(free, 3), None, NOW) is None


def test_revoked_tokens_are_told_apart() -> None:
    """Their records are written again first."""
    assert (is_revoked(REVOKED), is_revoked(FIELDS)) == (True, False)
