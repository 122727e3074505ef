"""What the agent is told."""

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
    """Where things are, and how the proxy beside us is run.

    `run` is a directory of the agent's own; `credentials` holds `proxy.pem`, `proxy.key` and `ca.pem`, which
    others write, or we do: who joins and renews as `enrolment` says. `override` is a JSON file that is
    laid over the bootstrap. Readiness waits for listeners of `application_ports`. The names of the services
    that can be called are kept in the file `hosts`. `shared_credentials`: others may get at the key.
    `trust_domain` is the mesh's, where it was said. Envoy's admin interface is a socket in `run`,
    which the agent's user reaches alone, or at `admin`, which every user of the machine reaches. Raises
    ValueError where the socket's path would be too long.
    """

    credentials: Path
    ads: HostPort
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
        """Return where Envoy's admin interface listens."""
        return self.admin or RuntimeDirectory(self.run).admin
