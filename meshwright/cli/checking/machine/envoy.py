"""Observations of Envoy's program and of our running Envoy."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from meshwright.agent.envoy.admin import AdminUnreachable, EnvoyAdmin
from meshwright.agent.envoy.listeners import LISTENERS_PATH, Listener, listeners
from meshwright.cli.checking.judgements.environment.machine import Envoy
from meshwright.mesh.host_port import HostPort
from meshwright.sidecars.envoy.bootstrap.versions import Version, read_version
from meshwright.sidecars.layout import INBOUND_PORT, OUTBOUND_PORT, TPROXY_PORT

_CLUSTERS_PATH: Final = "/clusters?format=json"
_LOCAL: Final = "|local"
"""End of the names of clusters with the application's endpoints (`meshwright.sidecars.envoy.names`)."""
_INTERCEPTING: Final = frozenset({OUTBOUND_PORT, INBOUND_PORT, TPROXY_PORT})
_SECONDS: Final = 8.0


@dataclass(frozen=True, slots=True)
class EnvoyState:
    """Answers of a running Envoy: state and version, listeners, and the application's addresses."""

    envoy: Envoy
    listeners: tuple[Listener, ...]
    applications: tuple[HostPort, ...]

    @property
    def sockets(self) -> frozenset[tuple[str | None, int | None]]:
        """Return the addresses at which Envoy listens."""
        return frozenset((listener.address, listener.port) for listener in self.listeners)

    @property
    def waits_at(self) -> tuple[int, ...]:
        """Return Envoy's ports for intercepted traffic; empty without interception."""
        ports = (listener.port for listener in self.listeners if "|" not in listener.name)
        return tuple(sorted(port for port in ports if port in _INTERCEPTING))


def program(path: str, user: int | None = None) -> tuple[str, Version | None]:
    """Ask a program for its version; return the output, or the error, and the version if valid.

    As root, run the program as `user`, because a process of this user named the path, and could name any
    program.
    """
    identity = {"user": user, "group": user, "extra_groups": []} if user and os.geteuid() == 0 else {}
    try:
        done = subprocess.run(
            [path, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
            **identity,  # type: ignore[call-overload]
        )
    except FileNotFoundError:
        return "the program does not exist", None
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error), None
    output = (done.stdout + done.stderr).strip()
    version = read_version(output)
    return (
        output if version else f"its output does not contain a version of Envoy: {output[:80]!r}"
    ), version


async def running(admin: HostPort | Path, bootstrap: Path) -> EnvoyState | str:
    """Ask the Envoy that runs with this bootstrap; return the reason if it does not answer."""
    try:
        async with EnvoyAdmin(admin, bootstrap) as asked:
            info = await asked.server_info()
            known = listeners(await asked.json(LISTENERS_PATH))
            clusters = await asked.json(_CLUSTERS_PATH)
    except AdminUnreachable as error:
        return str(error)
    envoy = Envoy(str(info.get("state", "unknown")), read_version(str(info.get("version"))))
    return EnvoyState(envoy, known, tuple(sorted(set(_applications(clusters)))))


def _applications(page: Mapping[str, object]) -> Iterator[HostPort]:
    for cluster in _objects(page.get("cluster_statuses")):
        if str(cluster.get("name")).endswith(_LOCAL):
            for host in _objects(cluster.get("host_statuses")):
                at = _object(_object(host.get("address")).get("socket_address"))
                yield HostPort(str(at.get("address")), int(str(at.get("port_value", 0))))


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[Mapping[str, object]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
