"""The command lines of Envoy, and its environment. Pure.

The environment is the agent's own, with the name by which a proxy's spans are known: for spans of
OpenTelemetry Envoy takes the name of the service from its environment alone
(https://opentelemetry.io/docs/specs/otel/resource/sdk/). Listeners are the same for all callers, and cannot
say it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from meshwright.mesh.identity import ProxyName

ATTRIBUTES_VARIABLE: Final = "OTEL_RESOURCE_ATTRIBUTES"
"""Pairs of a name and a value, with commas between: of one name Envoy takes the last."""
SERVICE_VARIABLE: Final = "OTEL_SERVICE_NAME"
"""What goes before any `service.name` among them; Envoy itself does not look at it."""


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


def environment(own: Mapping[str, str], name: ProxyName) -> dict[str, str]:
    """Return the environment of a proxy's Envoy, with what the agent's `own` says of spans in force.

    Else `service.name` is `<service>.<namespace>`, as in Zipkin's spans, and `service.instance.id` the UUID.
    """
    pairs = [f"service.name={name.service}.{name.namespace}", f"service.instance.id={name.uuid}"]
    if said := own.get(ATTRIBUTES_VARIABLE, "").strip(" ,"):
        pairs.append(said)
    if service := own.get(SERVICE_VARIABLE):
        pairs.append(f"service.name={service}")
    return {**own, ATTRIBUTES_VARIABLE: ",".join(pairs)}
