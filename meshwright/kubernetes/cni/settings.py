"""Where a node has what a plug-in needs, and where the daemon is. Pure."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from meshwright.mesh.host_port import HostPort

STATUS_PORT: Final = 15022


@dataclass(frozen=True, slots=True)
class Settings:
    """The node's networks and plug-ins; `run` is the daemon's, and has the same path on the host.

    `daemon_set` is NAMESPACE/NAME of what starts another daemon where this ends; empty if nothing does. In
    `netns` the runtime has the networks of pods, among which those of pods of `node` are looked for that came
    before the plug-in; none are where it is empty.
    """

    networks: Path = Path("/etc/cni/net.d")
    programs: Path = Path("/opt/cni/bin")
    run: Path = Path("/run/meshwright-cni")
    status: HostPort = HostPort("127.0.0.1", STATUS_PORT)
    daemon_set: str = ""
    node: str = ""
    netns: Path = Path("/run/netns")
