"""Which findings in a state directory are a loss; as tables of what is there."""

import pytest

from certs.state_check import Found, Loss, Lost, loss

NOTHING_LOST = [
    Found(),
    Found("a", ledger=True, damaged=True),
    Found(ledger=True),
    Found("a"),
    Found("a", ledger=True, signed_by="a", shown="c"),
    Found("a", marked="1", ledger=True, known=True, first="1", signed_by="a", shown="c"),
    # A backup from before the note, and directories of programs that made none.
    Found("a", ledger=True, first="1", signed_by="a", shown="c"),
    Found("a", ledger=True, first="1", shown="c"),
    # The CA went and nobody had a certificate of it: a new one hurts nobody.
    Found(ledger=True, signed_by="a", shown="c"),
    Found("b", ledger=True, signed_by="a", shown="c"),
]
LOST = [
    (Found("a", marked="1"), Loss(Lost.LEDGER, "1")),
    (Found("a", marked="1", ledger=True, signed_by="a"), Loss(Lost.LEDGER, "1")),
    (Found("a", marked="1", ledger=True, first="2", signed_by="a"), Loss(Lost.OTHER_LEDGER, "1")),
    (Found("a", marked="1", ledger=True, first="2", signed_by="b"), Loss(Lost.OTHER_LEDGER, "1")),
    (Found("a", shown="c"), Loss(Lost.LEDGER, "c")),
    (Found("a", marked="1", ledger=True, shown="c", damaged=True), Loss(Lost.DAMAGED_LEDGER, "1")),
    (Found("a", ledger=True, shown="c", damaged=True), Loss(Lost.DAMAGED_LEDGER, "c")),
    (Found(ledger=True, first="1", signed_by="a"), Loss(Lost.AUTHORITY, "1")),
    (Found(ledger=True, first="1", shown="c"), Loss(Lost.AUTHORITY, "1")),
    (Found(shown="c"), Loss(Lost.BOTH, "c")),
    (Found("b", ledger=True, first="1", signed_by="a"), Loss(Lost.OTHER_AUTHORITY, "1")),
    (
        Found("b", marked="1", ledger=True, known=True, first="1", signed_by="a"),
        Loss(Lost.OTHER_AUTHORITY, "1"),
    ),
    (
        Found("a", marked="1", ledger=True, known=True, first="1", signed_by="a", forgotten=2),
        Loss(Lost.OLDER_LEDGER, "1", 2),
    ),
    # An older ledger of another CA cannot be rebuilt below this one.
    (Found("b", ledger=True, first="1", signed_by="a", forgotten=2), Loss(Lost.OTHER_AUTHORITY, "1")),
]


@pytest.mark.parametrize("found", NOTHING_LOST)
def test_what_belongs_together_or_issued_nothing_is_no_loss(found: Found) -> None:
    """A first start, a second one, one after an update, and a CA that nobody misses."""
    assert loss(found) is None


@pytest.mark.parametrize(("found", "expected"), LOST)
def test_what_would_refuse_every_proxy_is_a_loss(found: Found, expected: Loss) -> None:
    """Each is named, with the serial by which to begin anew."""
    assert loss(found) == expected
