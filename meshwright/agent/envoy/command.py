"""Command lines and environment of Envoy. Pure.

The environment is the agent's own, with the service name for OpenTelemetry spans, which Envoy takes only from
the environment, for example `OTEL_RESOURCE_ATTRIBUTES=service.name=cart.shop`
(https://opentelemetry.io/docs/specs/otel/resource/sdk/). Listeners cannot contain the name, because they are
equal for all callers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from meshwright.mesh.identity import ProxyName

ATTRIBUTES_VARIABLE: Final = "OTEL_RESOURCE_ATTRIBUTES"
"""Variable with comma-separated name=value pairs; for a repeated name Envoy uses the last value."""
SERVICE_VARIABLE: Final = "OTEL_SERVICE_NAME"
"""Variable that overrides `service.name` in the pairs; Envoy itself ignores it."""


@dataclass(frozen=True, slots=True)
class EnvoyOptions:
    """Options of Envoy.

    `drain_seconds` is the time in which a removed listener, or an old epoch, may finish its connections. An
    old epoch ends after `parent_shutdown_seconds`, which must be longer (ValueError otherwise).
    """

    program: str
    concurrency: int = 0
    """Worker threads; 0 means one per processor."""
    log_level: str = "warning"
    drain_seconds: int = 45
    parent_shutdown_seconds: int = 60
    hot_restart: bool = True
    extra: tuple[str, ...] = ()
    logged: bool = False
    """True if Envoy's lines become lines of the agent's log, instead of going to standard error."""

    def __post_init__(self) -> None:
        if self.hot_restart and self.parent_shutdown_seconds <= self.drain_seconds:
            raise ValueError(
                f"the old Envoy ends after {self.parent_shutdown_seconds} s, which must "
                f"be later than its drain time of {self.drain_seconds} s"
            )


def validate(options: EnvoyOptions, bootstrap: Path) -> list[str]:
    """Return the command by which Envoy validates a bootstrap."""
    # Without this option it would bind the sockets of hot restart, which a running Envoy may have.
    command = [options.program, "--mode", "validate", "--disable-hot-restart"]
    return [*command, "--config-path", str(bootstrap), "--log-level", "warning"]


def serve(
    options: EnvoyOptions, bootstrap: Path, epoch: int, base_id: int | None, base_id_file: Path
) -> list[str]:
    """Return the command of an epoch.

    `base_id` is None for the first epoch. The first epoch chooses an ID that is unique among the Envoys of
    this host (shared memory is not separated by network namespaces), and writes the ID to `base_id_file` for
    the later epochs.
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
    """Return the environment of a proxy's Envoy; settings for spans in the agent's `own` environment win.

    The defaults are `<service>.<namespace>` for `service.name`, as in Zipkin's spans, and the UUID for
    `service.instance.id`.
    """
    pairs = [f"service.name={name.service}.{name.namespace}", f"service.instance.id={name.uuid}"]
    if text := own.get(ATTRIBUTES_VARIABLE, "").strip(" ,"):
        pairs.append(text)
    if service := own.get(SERVICE_VARIABLE):
        pairs.append(f"service.name={service}")
    return {**own, ATTRIBUTES_VARIABLE: ",".join(pairs)}
