"""Lifecycle of Envoy.

A state machine for start, replacement, stop and giving up, without clocks or processes.

An *epoch* is one Envoy process. With hot restart a new epoch takes over from the one before, which drains and
ends by itself. Without hot restart a changed configuration ends the old epoch first. A failed epoch ends all
others, because a hand-over may have been in progress; after a pause a new one starts.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

MOST_EPOCHS: Final = 2
"""Greatest number of concurrent processes: a serving and a draining one."""


@dataclass(frozen=True, slots=True)
class RestartSettings:
    """Restarts of a failed Envoy: `tries` times, first after `first_seconds`, then after doubled pauses.

    The count starts again when the configuration changes, and after an Envoy has run for `stable_seconds`.
    """

    tries: int = 10
    first_seconds: float = 0.2
    stable_seconds: float = 900.0
    hot_restart: bool = True

    def pause(self, failures: int) -> float:
        """Return the seconds before the next start of Envoy, after this many consecutive failures."""
        return float(self.first_seconds * 2 ** (failures - 1))


class EnvoyEnd(enum.Enum):
    """The reason for which Envoy is not started any more."""

    CLEAN = "Envoy ended without an error and without a request to end"
    STOPPED = "stopped"
    EXHAUSTED = "Envoy failed again and again"


@dataclass(frozen=True, slots=True)
class EpochStart:
    """Action: start an Envoy for this epoch with the newest configuration."""

    epoch: int


@dataclass(frozen=True, slots=True)
class EpochKill:
    """Action: end the Envoy of an epoch at once, or `gently`, with time to finish."""

    epoch: int
    gently: bool = False


@dataclass(frozen=True, slots=True)
class End:
    """Action: finish, because all Envoys have ended and a further one will not be started."""

    why: EnvoyEnd


Action = EpochStart | EpochKill | End


@dataclass(frozen=True, slots=True)
class Epoch:
    """A live epoch: digest of the configuration, time of the start, whether serving yet, whether killed."""

    configuration: str
    since: float
    settled: bool = False
    killed: bool = False


@dataclass(slots=True)
class Lifecycle:
    """The state machine. Methods take the time in seconds and return the actions, in order.

    `retry_at` is the time of the next call of `tick`; None without a planned retry.
    """

    settings: RestartSettings = field(default_factory=RestartSettings)
    retry_at: float | None = None
    _wanted: str | None = None
    _epochs: dict[int, Epoch] = field(default_factory=dict)
    _failures: int = 0
    _stopping: bool = False
    _aborting: bool = False

    @property
    def epochs(self) -> Mapping[int, Epoch]:
        """Return the live epochs by number, in rising order."""
        return dict(sorted(self._epochs.items()))

    @property
    def newest(self) -> int | None:
        """Return the number of the newest live epoch, which may not serve yet; None without any."""
        return max(self._epochs, default=None)

    @property
    def tries_left(self) -> int:
        """Return the number of failures of Envoy still allowed before the agent gives up."""
        return self.settings.tries - self._failures

    def not_running(self) -> str:
        """Return a sentence with the next step if every Envoy has ended; empty while one runs."""
        if self._epochs:
            return ""
        if not self._failures:
            return "Envoy does not run yet"
        again = self.tries_left + 1  # including the one that is due already
        tried = f"will be started {_times(again)} more" if again > 0 else "will not be started again"
        failed = f"it failed {_times(self._failures)} and {tried}"
        return f"Envoy does not run: {failed}; see the output of Envoy in the log of the agent"

    def configured(self, configuration: str, now: float) -> list[Action]:
        """Handle a configuration, identified by digest; the one already in use causes no action."""
        if configuration == self._wanted or self._stopping:
            return []
        self._wanted = configuration
        self._failures = 0
        self.retry_at = None
        return self._reconcile(now)

    def exited(self, epoch: int, status: int, now: float) -> list[Action]:
        """Handle the end of an epoch, with the exit status (negative: killed by a signal, for example -9)."""
        ended = self._epochs.pop(epoch)
        if self._stopping:
            return [] if self._epochs else [End(EnvoyEnd.STOPPED)]
        if ended.killed or status == 0:
            return self._after_clean_exit(ended, now)
        if now - ended.since >= self.settings.stable_seconds:
            self._failures = 0
        self._failures += 1
        return self._abort(now)

    def not_started(self, epoch: int, now: float) -> list[Action]:
        """Handle that there is no process for an epoch; the others go on, because nothing was handed over."""
        del self._epochs[epoch]
        if self._stopping:
            return [] if self._epochs else [End(EnvoyEnd.STOPPED)]
        self._failures += 1
        if self._aborting or not self._epochs:
            return self._abort(now)
        self.retry_at = now + self.settings.pause(self._failures)
        return []

    def settled(self, epoch: int, now: float) -> list[Action]:
        """Handle that the Envoy of an epoch serves; only then can it hand over to a further one."""
        if epoch in self._epochs and not self._epochs[epoch].settled:
            self._epochs[epoch] = replace(self._epochs[epoch], settled=True)
            return self._reconcile(now)
        return []

    def tick(self, now: float) -> list[Action]:
        """Start Envoy again after a failure, if the time of the planned retry has arrived."""
        if self.retry_at is None or now < self.retry_at or self._stopping:
            return []
        self.retry_at = None
        return self._reconcile(now)

    def stop(self) -> list[Action]:
        """End every epoch, and start no further one."""
        self._stopping = True
        self.retry_at = None
        if not self._epochs:
            return [End(EnvoyEnd.STOPPED)]
        return [EpochKill(kill.epoch, gently=True) for kill in self._kill_all()]

    def _after_clean_exit(self, ended: Epoch, now: float) -> list[Action]:
        if self._aborting:
            return self._abort(now)
        if ended.killed or self._epochs or ended.configuration != self._wanted:
            return self._reconcile(now)
        return [End(EnvoyEnd.CLEAN)]

    def _abort(self, now: float) -> list[Action]:
        """End the other epochs after a failure; when all have ended, schedule the next try or give up."""
        self._aborting = bool(self._epochs)
        if self._epochs:
            return [*self._kill_all()]
        if not self._failures:  # reset by a new configuration meanwhile
            return self._reconcile(now)
        if self._failures > self.settings.tries:
            return [End(EnvoyEnd.EXHAUSTED)]
        self.retry_at = now + self.settings.pause(self._failures)
        return []

    def _kill_all(self) -> list[EpochKill]:
        living = [epoch for epoch, running in sorted(self._epochs.items()) if not running.killed]
        for epoch in living:
            self._mark_killed(epoch)
        return [EpochKill(epoch) for epoch in living]

    def _mark_killed(self, epoch: int) -> None:
        self._epochs[epoch] = replace(self._epochs[epoch], killed=True)

    def _reconcile(self, now: float) -> list[Action]:
        """Start an epoch with the wanted configuration, unless one has it or all places are taken."""
        newest = self.newest
        if self._stopping or self._wanted is None or self._aborting or self.retry_at is not None:
            return []
        if newest is None:
            return self._start(0, self._wanted, now)
        current = self._epochs[newest]
        if current.configuration == self._wanted:
            return []
        if not self.settings.hot_restart:
            if current.killed:
                return []
            self._mark_killed(newest)
            return [EpochKill(newest, gently=True)]
        # Only one hand-over at a time: the newest epoch must serve, and the one before must have ended.
        has_room = current.settled and len(self._epochs) < MOST_EPOCHS
        return self._start(newest + 1, self._wanted, now) if has_room else []

    def _start(self, epoch: int, configuration: str, now: float) -> list[Action]:
        self._epochs[epoch] = Epoch(configuration, now)
        return [EpochStart(epoch)]


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
