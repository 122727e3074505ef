"""Tests of the judgement whether the store is away for one server alone."""

import pytest

from meshwright.replicas.isolation import AWAY_SECONDS, EVIDENCE_SECONDS, PATIENCE_SECONDS, Isolation

OLD, NEW = AWAY_SECONDS, 1.0


def after(seconds: int, *others: float | None, answered: bool = True) -> tuple[Isolation, float]:
    """Return the judgement of a server that has looked every five seconds since its last answer."""
    isolation, start = Isolation(), 1000.0
    for passed in range(0, seconds + 1, 5):
        isolation.note(start + passed, passed if answered else None, others)
    return isolation, start + seconds


def test_server_is_alone_if_the_store_answers_another_one() -> None:
    """The time counts from the last answer here, and one of several others is enough."""
    isolation, now = after(295, NEW, OLD, None)
    assert (isolation.seconds(now), isolation.is_long(now)) == (295.0, False)
    isolation.note(now + 5, 300.0, (NEW,))
    assert isolation.is_long(now + 5)


@pytest.mark.parametrize("others", [(), (OLD,), (None,), (OLD, None)])
def test_server_is_not_alone_without_evidence(others: tuple[float | None, ...]) -> None:
    """The store is away for all servers that answer, or no other server answers."""
    isolation, now = after(int(PATIENCE_SECONDS) * 2, *others)
    assert isolation.seconds(now) == 0.0


def test_server_that_the_store_has_never_answered_can_be_alone() -> None:
    """It has started with its copy of the records."""
    isolation, now = after(int(PATIENCE_SECONDS), NEW, answered=False)
    assert isolation.is_long(now)


@pytest.mark.parametrize(("own", "others"), [(NEW, ()), (OLD, (OLD,))])
def test_an_answer_of_the_store_here_or_its_absence_elsewhere_ends_the_time(
    own: float, others: tuple[float, ...]
) -> None:
    """Afterwards the time begins anew."""
    isolation, now = after(int(PATIENCE_SECONDS), NEW)
    isolation.note(now + 5, own, others)
    assert isolation.seconds(now + 5) == 0.0
    isolation.note(now + 10, OLD, (NEW,))
    assert isolation.seconds(now + 10) == OLD


def test_lost_question_does_not_end_the_time() -> None:
    """Silence for longer does: the others may have ended."""
    isolation, now = after(int(PATIENCE_SECONDS), NEW)
    isolation.note(now + EVIDENCE_SECONDS, OLD, ())
    assert isolation.is_long(now + EVIDENCE_SECONDS)
    isolation.note(now + EVIDENCE_SECONDS + 1, OLD, ())
    assert isolation.seconds(now + EVIDENCE_SECONDS + 1) == 0.0
