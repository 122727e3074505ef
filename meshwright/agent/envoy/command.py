"""The command lines of Envoy. Pure."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class EnvoyOptions:
    """How Envoy is run.

    `drain_seconds` is how long a listener that goes, or an old epoch, may take for its connections; an old
    epoch ends after `parent_shutdown_seconds`, which must be more (ValueError otherwise).
    """

    program: str
    concurrency: int = 0
    """Worker threads; 0 is one for each processor."""
    log_level: str = "warning"
    drain_seconds: int = 45
    parent_shutdown_seconds: int = 60
    hot_restart: bool = True
    extra: tuple[str, ...] = ()
    logged: bool = False
    """Its lines become lines of the agent's log, instead of going where that goes."""

    def __post_init__(self) -> None:
        if self.hot_restart and self.parent_shutdown_seconds <= self.drain_seconds:
            raise ValueError(
                f"the parent's shutdown after {self.parent_shutdown_seconds} s must be later than "
                f"its drain time of {self.drain_seconds} s"
            )


def validate(options: EnvoyOptions, bootstrap: Path) -> list[str]:
    """Return the command by which Envoy says what it thinks of a bootstrap."""
    # It would bind hot restart's sockets otherwise, which a running Envoy may have.
    command = [options.program, "--mode", "validate", "--disable-hot-restart"]
    return [*command, "--config-path", str(bootstrap), "--log-level", "warning"]


def serve(
    options: EnvoyOptions, bootstrap: Path, epoch: int, base_id: int | None, base_id_file: Path
) -> list[str]:
    """Return the command of an epoch.

    `base_id` is what the first epoch was given, None for that epoch itself: it chooses one that no other
    Envoy of this host has (shared memory knows no network namespaces), and writes it to `base_id_file`.
    """
    command = [options.program, "--config-path", str(bootstrap), "--log-level", options.log_level]
    command += ["--drain-time-s", str(options.drain_seconds), "--drain-strategy", "immediate"]
    if options.concurrency:
        command += ["--concurrency", str(options.concurrency)]
    if not options.hot_restart:
        command += ["--disable-hot-restart"]
    else:
        command += ["--parent-shutdown-time-s", str(options.parent_shutdown_seconds)]
        command += ["--restart-epoch", str(epoch)]
        if base_id is None:
            command += ["--use-dynamic-base-id", "--base-id-path", str(base_id_file)]
        else:
            command += ["--base-id", str(base_id)]
    return [*command, *options.extra]
