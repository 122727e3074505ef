"""When Envoy is started, replaced and given up: every rule as a story of events and actions."""

from meshwright.agent.envoy.lifecycle import (
    Action,
    End,
    EnvoyEnd,
    EpochKill,
    EpochStart,
    Lifecycle,
    RestartSettings,
)


def running(configuration: str = "a", *, hot_restart: bool = True) -> Lifecycle:
    """Return a lifecycle whose first epoch serves."""
    made = Lifecycle(RestartSettings(hot_restart=hot_restart))
    assert made.configured(configuration, 0.0) == [EpochStart(0)]
    assert made.settled(0, 0.0) == []
    return made


def failures(made: Lifecycle, now: float, count: int) -> list[float]:
    """Let the only epoch fail so often, and return the pauses before each next try."""
    pauses = []
    for _ in range(count):
        assert made.exited(0, 1, now) == []
        assert made.retry_at is not None
        pauses.append(round(made.retry_at - now, 6))
        now = made.retry_at
        assert made.tick(now - 0.001) == []
        assert made.tick(now) == [EpochStart(0)]
    return pauses


def test_ten_tries_each_after_twice_the_pause_and_then_the_end() -> None:
    """0.2 s, doubled ten times; the eleventh failure in a row is the last."""
    made = running()
    assert failures(made, 0.0, 10) == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4]
    assert made.tries_left == 0
    assert made.exited(0, -9, 300.0) == [End(EnvoyEnd.EXHAUSTED)]


def test_the_tries_come_back_with_a_new_configuration_and_with_time() -> None:
    """A change starts an Envoy at once and with all its tries; so does one that ran long, with its tries."""
    made = running()
    failures(made, 0.0, 9)
    made.exited(0, 1, 100.0)
    assert made.tries_left == 0
    assert made.configured("b", 101.0) == [EpochStart(0)]
    assert (made.tries_left, made.retry_at) == (10, None)
    failures(made, 101.0, 3)
    assert made.exited(0, 1, 5000.0) == []
    assert made.tries_left == 9


def test_that_no_envoy_runs_is_said_with_what_becomes_of_it() -> None:
    """Nothing while one lives, be it that it has not settled."""
    made = Lifecycle()
    assert made.not_running() == "Envoy does not run yet"
    made.configured("a", 0.0)
    assert made.not_running() == ""
    made.exited(0, 1, 0.0)
    assert made.not_running().startswith(
        "Envoy does not run: it failed once and will be started 10 times more; "
    )
    made.tick(0.2)
    failures(made, 0.2, 8)
    made.exited(0, 1, 200.0)
    assert "it failed 10 times and will be started once more" in made.not_running()
    made.tick(400.0)
    made.exited(0, 1, 400.0)
    assert "it failed 11 times and will not be started again" in made.not_running()


def test_a_clean_exit_is_not_restarted() -> None:
    """Somebody has told Envoy to quit: the agent ends with it."""
    assert running().exited(0, 0, 1.0) == [End(EnvoyEnd.CLEAN)]


def test_a_hot_restart_hands_over() -> None:
    """The next epoch starts beside the old one, which goes by itself without being missed."""
    made = running()
    assert made.configured("b", 1.0) == [EpochStart(1)]
    assert made.configured("b", 1.0) == []
    assert sorted(made.epochs) == [0, 1]
    assert made.settled(1, 2.0) == []
    assert made.exited(0, 0, 60.0) == []
    assert made.exited(1, 0, 61.0) == [End(EnvoyEnd.CLEAN)]


def test_nothing_takes_over_from_an_epoch_that_does_not_serve_yet() -> None:
    """Envoy would refuse: the hand-over waits until the first has settled."""
    made = Lifecycle()
    assert made.configured("a", 0.0) == [EpochStart(0)]
    assert made.configured("b", 0.1) == []
    assert made.settled(0, 0.5) == [EpochStart(1)]


def test_there_are_never_more_than_two_epochs() -> None:
    """A third waits until the first has gone, and then starts with the newest configuration."""
    made = running()
    made.configured("b", 1.0)
    made.settled(1, 2.0)
    assert made.configured("c", 3.0) == []
    assert made.configured("d", 4.0) == []
    assert made.exited(0, 0, 60.0) == [EpochStart(2)]
    assert made.epochs[2].configuration == "d"


def test_a_failing_epoch_takes_all_others_along_and_counts() -> None:
    """Hand-overs leave shared memory in doubt: all are ended, and one begins anew at epoch 0."""
    made = running()
    made.configured("b", 1.0)
    assert made.exited(1, 1, 2.0) == [EpochKill(0)]
    assert (made.retry_at, made.tries_left) == (None, 9)
    assert made.configured("c", 2.1) == []  # not while the other still ends
    assert made.exited(0, -9, 2.2) == [EpochStart(0)]


def test_after_an_abort_the_next_try_waits() -> None:
    """The pause begins when the last of them has ended."""
    made = running()
    made.configured("b", 1.0)
    made.exited(1, 1, 2.0)
    assert made.exited(0, -9, 2.5) == []
    assert made.retry_at == 2.7
    assert made.tick(2.7) == [EpochStart(0)]
    assert made.epochs[0].configuration == "b"


def test_without_hot_restart_the_old_one_ends_first() -> None:
    """One at a time: gently ended, and only then replaced, once however many changes came meanwhile."""
    made = running(hot_restart=False)
    assert made.configured("b", 1.0) == [EpochKill(0, gently=True)]
    assert made.configured("c", 1.1) == []
    assert made.exited(0, 0, 2.0) == [EpochStart(0)]
    assert made.epochs[0].configuration == "c"


def test_a_stop_ends_everything_and_starts_nothing() -> None:
    """Whatever happens afterwards, nothing is started; the end comes with the last of them."""
    made = running()
    made.configured("b", 1.0)
    expected: list[Action] = [EpochKill(0, gently=True), EpochKill(1, gently=True)]
    assert made.stop() == expected
    assert made.configured("c", 2.0) == []
    assert made.exited(1, 1, 2.0) == []
    assert made.exited(0, 0, 2.1) == [End(EnvoyEnd.STOPPED)]
    waiting = running()
    waiting.exited(0, 1, 1.0)
    assert waiting.stop() == [End(EnvoyEnd.STOPPED)]
    assert waiting.tick(99.0) == []
