"""Tests of the heartbeat: a blocked event loop makes liveness fail."""

from meshwright.admin.http.heartbeat import Heartbeat, beating, is_stale


def test_heartbeat_is_stale_only_beyond_the_limit() -> None:
    """A heartbeat whose age equals the limit is not stale."""
    assert [is_stale(100.0, now, 10.0) for now in (100.0, 110.0, 110.001)] == [False, False, True]


def test_heartbeat_follows_its_clock() -> None:
    """Age and liveness are computed from the injected clock."""
    now = 5.0
    heartbeat = Heartbeat(lambda: now, limit=10.0)
    assert (heartbeat.age, heartbeat.alive()) == (0.0, True)
    now = 15.5
    assert (heartbeat.age, heartbeat.alive()) == (10.5, False)
    heartbeat.beat(late=0.5)
    assert (heartbeat.age, heartbeat.alive(), heartbeat.lateness) == (0.0, True, 0.5)


def test_worst_lateness_is_kept_until_it_is_taken() -> None:
    """The worst lateness is kept until it is taken. A late heartbeat between two readings is not lost."""
    heartbeat = Heartbeat(lambda: 0.0)
    heartbeat.beat(late=0.2)
    heartbeat.beat(late=0.1)
    assert (heartbeat.take_worst(), heartbeat.take_worst()) == (0.2, 0.0)


async def test_beating_measures_the_lateness_of_the_loop() -> None:
    """The time by which the loop overslept is recorded as its lateness."""
    readings = iter([1.0, 1.25])
    heartbeat = Heartbeat(lambda: 0.0)
    await beating(heartbeat, lambda: next(readings), beats=1, period=0.0)
    assert heartbeat.lateness == 0.25
