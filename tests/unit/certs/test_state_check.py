"""Tests of the check of a state directory: which contents mean that a CA or ledger was lost."""

import pytest

from certs.state_check import Loss, MissingState, StateContents, loss

NOTHING_LOST = [
    StateContents(),
    StateContents("a", ledger=True, damaged=True),
    StateContents(ledger=True),
    StateContents("a"),
    StateContents("a", ledger=True, signed_by="a", shown="c"),
    StateContents("a", marked="1", ledger=True, known=True, first="1", signed_by="a", shown="c"),
    # A backup from before the note was written, and directories of older versions without a note.
    StateContents("a", ledger=True, first="1", signed_by="a", shown="c"),
    StateContents("a", ledger=True, first="1", shown="c"),
    # The CA is missing but has issued no certificate, so that a new one does no harm.
    StateContents(ledger=True, signed_by="a", shown="c"),
    StateContents("b", ledger=True, signed_by="a", shown="c"),
]
LOST = [
    (StateContents("a", marked="1"), Loss(MissingState.LEDGER, "1")),
    (StateContents("a", marked="1", ledger=True, signed_by="a"), Loss(MissingState.LEDGER, "1")),
    (
        StateContents("a", marked="1", ledger=True, first="2", signed_by="a"),
        Loss(MissingState.OTHER_LEDGER, "1"),
    ),
    (
        StateContents("a", marked="1", ledger=True, first="2", signed_by="b"),
        Loss(MissingState.OTHER_LEDGER, "1"),
    ),
    (StateContents("a", shown="c"), Loss(MissingState.LEDGER, "c")),
    (
        StateContents("a", marked="1", ledger=True, shown="c", damaged=True),
        Loss(MissingState.DAMAGED_LEDGER, "1"),
    ),
    (StateContents("a", ledger=True, shown="c", damaged=True), Loss(MissingState.DAMAGED_LEDGER, "c")),
    (StateContents(ledger=True, first="1", signed_by="a"), Loss(MissingState.AUTHORITY, "1")),
    (StateContents(ledger=True, first="1", shown="c"), Loss(MissingState.AUTHORITY, "1")),
    (StateContents(shown="c"), Loss(MissingState.BOTH, "c")),
    (StateContents("b", ledger=True, first="1", signed_by="a"), Loss(MissingState.OTHER_AUTHORITY, "1")),
    (
        StateContents("b", marked="1", ledger=True, known=True, first="1", signed_by="a"),
        Loss(MissingState.OTHER_AUTHORITY, "1"),
    ),
    (
        StateContents("a", marked="1", ledger=True, known=True, first="1", signed_by="a", forgotten=2),
        Loss(MissingState.OLDER_LEDGER, "1", 2),
    ),
    # An older ledger of another CA cannot be rebuilt with this CA.
    (
        StateContents("b", ledger=True, first="1", signed_by="a", forgotten=2),
        Loss(MissingState.OTHER_AUTHORITY, "1"),
    ),
]


@pytest.mark.parametrize("found", NOTHING_LOST)
def test_consistent_or_unused_state_is_no_loss(found: StateContents) -> None:
    """Examples are a first, a second and an updated start, and a missing CA that issued no certificate."""
    assert loss(found) is None


@pytest.mark.parametrize(("found", "expected"), LOST)
def test_state_that_would_refuse_every_proxy_is_a_loss(found: StateContents, expected: Loss) -> None:
    """Each loss names the missing part, and the serial with which an operator can begin anew."""
    assert loss(found) == expected
