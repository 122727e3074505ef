"""A loop that is held turns liveness red, and nothing else does."""

from meshwright.admin.http.heartbeat import Heartbeat, beating, is_stale


def test_a_beat_within_the_limit_is_alive_and_one_beyond_it_is_not() -> None:
    """The boundary itself is still alive."""
    assert [is_stale(100.0, now, 10.0) for now in (100.0, 110.0, 110.001)] == [False, False, True]


def test_a_heartbeat_follows_its_clock() -> None:
    """Age and liveness come from the clock that is handed in."""
    now = 5.0
    heartbeat = Heartbeat(lambda: now, limit=10.0)
    assert (heartbeat.age, heartbeat.alive()) == (0.0, True)
    now = 15.5
    assert (heartbeat.age, heartbeat.alive()) == (10.5, False)
    heartbeat.beat(late=0.5)
    assert (heartbeat.age, heartbeat.alive(), heartbeat.lateness) == (0.0, True, 0.5)


def test_the_worst_lateness_is_kept_until_it_is_taken() -> None:
    """A late beat between two readings is not lost."""
    heartbeat = Heartbeat(lambda: 0.0)
    heartbeat.beat(late=0.2)
    heartbeat.beat(late=0.1)
    assert (heartbeat.take_worst(), heartbeat.take_worst()) == (0.2, 0.0)


async def test_beating_measures_how_late_the_loop_was() -> None:
    """A clock that jumps while the loop sleeps shows as lateness."""
    readings = iter([1.0, 1.25])
    heartbeat = Heartbeat(lambda: 0.0)
    await beating(heartbeat, lambda: next(readings), beats=1, period=0.0)
    assert heartbeat.lateness == 0.25
