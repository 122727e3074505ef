"""Tests of Envoy's lifecycle: start, replacement and end, as sequences of events and actions."""

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
    """Return a lifecycle whose first epoch is serving."""
    made = Lifecycle(RestartSettings(hot_restart=hot_restart))
    assert made.configured(configuration, 0.0) == [EpochStart(0)]
    assert made.settled(0, 0.0) == []
    return made


def failures(made: Lifecycle, now: float, count: int) -> list[float]:
    """Let the only epoch fail `count` times, and return the pauses before each retry."""
    pauses = []
    for _ in range(count):
        assert made.exited(0, 1, now) == []
        assert made.retry_at is not None
        pauses.append(round(made.retry_at - now, 6))
        now = made.retry_at
        assert made.tick(now - 0.001) == []
        assert made.tick(now) == [EpochStart(0)]
    return pauses


def test_envoy_is_restarted_ten_times_with_doubled_pauses() -> None:
    """The pauses start at 0.2 s and double; the eleventh failure in a row ends the agent."""
    made = running()
    assert failures(made, 0.0, 10) == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4]
    assert made.tries_left == 0
    assert made.exited(0, -9, 300.0) == [End(EnvoyEnd.EXHAUSTED)]


def test_retries_are_reset_by_a_new_configuration_and_by_time() -> None:
    """A new configuration starts Envoy at once with all retries; a long run also resets them."""
    made = running()
    failures(made, 0.0, 9)
    made.exited(0, 1, 100.0)
    assert made.tries_left == 0
    assert made.configured("b", 101.0) == [EpochStart(0)]
    assert (made.tries_left, made.retry_at) == (10, None)
    failures(made, 101.0, 3)
    assert made.exited(0, 1, 5000.0) == []
    assert made.tries_left == 9


def test_message_about_a_missing_envoy_counts_failures_and_retries() -> None:
    """The message is empty while an epoch lives.

    Otherwise it has the number of failures and of retries that are left.
    """
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


def test_clean_exit_is_not_restarted() -> None:
    """The agent ends with an Envoy that exits with status 0, because this Envoy was told to quit."""
    assert running().exited(0, 0, 1.0) == [End(EnvoyEnd.CLEAN)]


def test_hot_restart_starts_the_next_epoch_beside_the_old_one() -> None:
    """The next epoch starts beside the old one, whose later exit changes nothing."""
    made = running()
    assert made.configured("b", 1.0) == [EpochStart(1)]
    assert made.configured("b", 1.0) == []
    assert sorted(made.epochs) == [0, 1]
    assert made.settled(1, 2.0) == []
    assert made.exited(0, 0, 60.0) == []
    assert made.exited(1, 0, 61.0) == [End(EnvoyEnd.CLEAN)]


def test_next_epoch_waits_until_the_first_one_serves() -> None:
    """The next epoch starts only when the first one has settled, because Envoy would refuse earlier."""
    made = Lifecycle()
    assert made.configured("a", 0.0) == [EpochStart(0)]
    assert made.configured("b", 0.1) == []
    assert made.settled(0, 0.5) == [EpochStart(1)]


def test_at_most_two_epochs_run_at_a_time() -> None:
    """A third epoch waits until the first has exited, and then starts with the newest configuration."""
    made = running()
    made.configured("b", 1.0)
    made.settled(1, 2.0)
    assert made.configured("c", 3.0) == []
    assert made.configured("d", 4.0) == []
    assert made.exited(0, 0, 60.0) == [EpochStart(2)]
    assert made.epochs[2].configuration == "d"


def test_failing_epoch_ends_all_others_and_uses_a_retry() -> None:
    """A failed hot restart leaves shared memory in an unknown state.

    All epochs are therefore ended, and epoch 0 starts again.
    """
    made = running()
    made.configured("b", 1.0)
    assert made.exited(1, 1, 2.0) == [EpochKill(0)]
    assert (made.retry_at, made.tries_left) == (None, 9)
    assert made.configured("c", 2.1) == []  # the other epoch has not exited yet
    assert made.exited(0, -9, 2.2) == [EpochStart(0)]


def test_retry_after_a_failed_hot_restart_waits_for_the_last_epoch() -> None:
    """The pause before the retry begins when the last epoch has exited."""
    made = running()
    made.configured("b", 1.0)
    made.exited(1, 1, 2.0)
    assert made.exited(0, -9, 2.5) == []
    assert made.retry_at == 2.7
    assert made.tick(2.7) == [EpochStart(0)]
    assert made.epochs[0].configuration == "b"


def test_epoch_that_could_not_be_started_leaves_the_serving_one_alone() -> None:
    """Nothing was handed over, so the new configuration is tried again beside the old one."""
    made = running()
    assert made.configured("b", 1.0) == [EpochStart(1)]
    assert made.not_started(1, 1.0) == []
    assert (list(made.epochs), made.retry_at) == ([0], 1.2)
    assert made.tick(1.2) == [EpochStart(1)]


def test_last_epoch_that_could_not_be_started_ends_a_stop_and_the_retries() -> None:
    """Without a process there is no exit to wait for."""
    made = Lifecycle(RestartSettings(tries=0))
    made.configured("a", 0.0)
    assert made.not_started(0, 0.0) == [End(EnvoyEnd.EXHAUSTED)]
    made = Lifecycle()
    made.configured("a", 0.0)
    made.stop()
    assert made.not_started(0, 0.0) == [End(EnvoyEnd.STOPPED)]


def test_old_envoy_ends_before_the_new_one_without_hot_restart() -> None:
    """Without hot restart the old Envoy is ended gracefully.

    One new Envoy then starts with the newest configuration.
    """
    made = running(hot_restart=False)
    assert made.configured("b", 1.0) == [EpochKill(0, gently=True)]
    assert made.configured("c", 1.1) == []
    assert made.exited(0, 0, 2.0) == [EpochStart(0)]
    assert made.epochs[0].configuration == "c"


def test_stop_ends_all_epochs_and_starts_none() -> None:
    """After a stop no event starts an epoch; the agent ends with the last epoch, or at once if none runs."""
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
