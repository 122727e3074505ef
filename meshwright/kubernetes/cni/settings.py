"""Settings of the CNI daemon: paths on the node, and the address of the status page."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from meshwright.mesh.host_port import HostPort

STATUS_PORT: Final = 15022


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the daemon.

    `networks` and `programs` are the runtime's folders of networks and plug-ins. `run` is the daemon's
    folder, which must have the same path on the host. `daemon_set` is NAMESPACE/NAME of the DaemonSet that
    restarts the daemon, or empty. `netns` has the runtime's network namespaces, which are searched for Pods
    of `node` that started before the plug-in was installed; without `node` this search is skipped.
    """

    networks: Path = Path("/etc/cni/net.d")
    programs: Path = Path("/opt/cni/bin")
    run: Path = Path("/run/meshwright-cni")
    status: HostPort = HostPort("127.0.0.1", STATUS_PORT)
    daemon_set: str = ""
    node: str = ""
    netns: Path = Path("/run/netns")
