"""Settings of the agent."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from meshwright.agent.enrolment.settings import EnrolmentSettings
from meshwright.agent.envoy.command import EnvoyOptions
from meshwright.agent.envoy.draining import DrainSettings
from meshwright.agent.envoy.lifecycle import RestartSettings
from meshwright.agent.envoy.runtime import RuntimeDirectory
from meshwright.agent.file_watch import LOOK_SECONDS
from meshwright.agent.status.probes import Probes
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import TrustDomain
from meshwright.sidecars.envoy.bootstrap.bootstrap import AdsProtocol
from meshwright.sidecars.layout import LONGEST_SOCKET, STATUS_PORT


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Paths, addresses and options of the agent and the proxy.

    - `run` is the agent's own directory.
    - `credentials` has `proxy.pem`, `proxy.key` and `ca.pem`, written by others, or by the agent itself with
      `enrolment`. With `shared_credentials` other users may read the key.
    - `ads` are the addresses of the control plane's servers, of which Envoy uses one at a time.
    - `override` is a JSON file to merge into the bootstrap, for example `{"stats_flush_interval": "60s"}`.
    - Readiness waits for the listeners of `application_ports`.
    - `hosts` is a file for the names of callable services, for example `/etc/hosts`.
    - `trust_domain` is the mesh's, if given.
    - `admin` makes Envoy's admin interface reachable for every user of the machine. Otherwise the interface
      is a socket in `run`, accessible to the agent's user only.

    Raises ValueError if the path of the socket would be too long.
    """

    credentials: Path
    ads: tuple[HostPort, ...]
    run: Path
    envoy: EnvoyOptions
    admin: HostPort | None = None
    status: HostPort = HostPort("::", STATUS_PORT)
    protocol: AdsProtocol = AdsProtocol.DELTA
    restart: RestartSettings = field(default_factory=RestartSettings)
    drain: DrainSettings = field(default_factory=DrainSettings)
    probes: Probes = field(default_factory=Probes)
    application_ports: frozenset[int] = frozenset()
    metrics_url: str | None = None
    override: Path | None = None
    hosts: Path | None = None
    cluster_domain: str = "cluster.local"
    look_seconds: float = LOOK_SECONDS
    shared_credentials: bool = False
    enrolment: EnrolmentSettings | None = None
    trust_domain: TrustDomain | None = None

    def __post_init__(self) -> None:
        match self.admin_at:
            case Path() as path if len(os.fsencode(path)) > LONGEST_SOCKET:
                raise ValueError(
                    f"--run is {str(self.run)!r}: the socket of Envoy's admin there, {path.name}, would have "
                    f"a path of {len(os.fsencode(path))} bytes, and may have {LONGEST_SOCKET}: "
                    "give a shorter directory"
                )
            case _:
                pass

    @property
    def admin_at(self) -> HostPort | Path:
        """Return the address of Envoy's admin interface."""
        return self.admin or RuntimeDirectory(self.run).admin
