"""Tests of the newest form of records that all servers read."""

from meshwright.records.contract import ReplicaId
from meshwright.replicas.forms import SEEN_SECONDS, SeenForms
from meshwright.replicas.state import ReplicaState

OLD, NEW = ReplicaId("old"), ReplicaId("new")


def states(**forms: int | None) -> dict[ReplicaId, ReplicaState | None]:
    """Return the states of servers by the forms that they read; None is unreadable."""
    return {
        ReplicaId(name): None if form is None else ReplicaState(form=form) for name, form in forms.items()
    }


def test_form_is_the_newest_that_all_servers_of_the_last_ten_minutes_read() -> None:
    """An older server counts for ten minutes after it was here last."""
    seen, end = SeenForms(0.0), 2 * SEEN_SECONDS
    seen.note(end, states(old=1, new=2))
    assert seen.newest(end) == 1
    seen.note(end + SEEN_SECONDS - 1, states(new=2))
    assert seen.newest(end + SEEN_SECONDS - 1) == 1
    assert seen.newest(end + SEEN_SECONDS) == 2
    seen.note(end + SEEN_SECONDS, states(old=1, new=2))
    assert seen.newest(end + SEEN_SECONDS) == 1


def test_server_that_has_begun_does_not_know_who_was_here_before() -> None:
    """It says nothing for ten minutes."""
    seen = SeenForms(50.0)
    seen.note(50.0 + SEEN_SECONDS - 1, states(new=2))
    assert seen.newest(50.0 + SEEN_SECONDS - 1) is None
    assert seen.newest(50.0 + SEEN_SECONDS) == 2


def test_server_with_an_unreadable_state_reads_the_oldest_form() -> None:
    """Its form is not known, and it must not be locked out."""
    seen = SeenForms(0.0)
    seen.note(SEEN_SECONDS, states(new=2, other=None))
    assert seen.newest(SEEN_SECONDS) == 1


def test_server_of_before_the_forms_reads_the_oldest_one() -> None:
    """Its state lacks the fact."""
    state = ReplicaState.decode(b'{"version": "0.2.0"}')
    assert state.form == 1
