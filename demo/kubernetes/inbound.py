"""Attempts at Pods' inbound ports from the network of the node, with certificates of the control plane."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from demo import inbound, mtls
from demo.apps.control import AppClient
from demo.display.verdicts import Verdict
from demo.kubernetes.plane import NAMESPACE, POD
from demo.kubernetes.pods import pod_of
from demo.kubernetes.store import PodStore
from demo.topology import BOOKBUYER, BOOKTHIEF, DATABASE, SERVICE_PORTS, STORE_V1, WAREHOUSE, Place
from meshwright.mesh.service import ServiceKey
from tools.real_parts.node import Node

_STATE: Final = "/state/meshwright"
_ISSUED: Final = "/state/tried-by-hand"


@dataclass(frozen=True, slots=True)
class NodeAccess:
    """Access to Pods from their node: addresses by workload, and a folder with root and certificates."""

    node: Node
    programs: Mapping[str, AppClient]
    addresses: Mapping[Place, str]
    folder: Path

    def target(self, place: Place, service: ServiceKey) -> mtls.Target:
        """Return the address of the Pod; the Pod's iptables rules redirect the connection to the sidecar."""
        address = self.addresses[place]
        return mtls.Target(address, SERVICE_PORTS[service], service.fqdn(), self.folder / "ca.pem")

    def service(self, place: Place) -> mtls.Credentials:
        """Return the workload's service certificate, as copied from the control plane's Pod."""
        path = self.folder / f"{place.name}.pem"
        return mtls.Credentials(path, path)

    def proxy(self, place: Place) -> mtls.Credentials:
        """Return a proxy certificate issued for this check; the sidecar's own never leaves its Pod."""
        del place
        return mtls.Credentials(self.folder / "proxy.pem", self.folder / "proxy.key")

    def do(self, work: Callable[[], str]) -> str:
        """Run the attempt in the network namespace of the node."""
        return self.node.inside.do(work)


async def check(store: PodStore, node: Node, phase: str) -> list[Verdict]:
    """Copy the certificates from the control plane, and make all attempts to call inbound ports."""
    folder = store.plane.folder / "by-hand"
    folder.mkdir(mode=0o700, exist_ok=True)
    issue = ("certs", "issue-proxy", "--state", _STATE, "--uuid", "tried-by-hand", "--anyway")
    of = BOOKBUYER.identity
    await store.plane.run(
        *issue, f"--service={of.service_account}", f"--namespace={of.namespace}", f"--out={_ISSUED}"
    )
    wanted = {"ca.pem": f"{_STATE}/ca/ca.pem"}
    wanted |= {name: f"{_ISSUED}/{name}" for name in ("proxy.pem", "proxy.key")}
    for place in (BOOKBUYER, BOOKTHIEF, WAREHOUSE):
        at = f"{place.identity.namespace}/{place.identity.service_account}"
        wanted[f"{place.name}.pem"] = f"{_STATE}/services/{at}/certificate.pem"
    for name, path in wanted.items():
        text = await store.kubectl("exec", POD, "-n", NAMESPACE, "--", "cat", path)
        (folder / name).write_text(text, "ascii")
    pods = {
        place: await pod_of(store.kubectl, store.kubectl_programs[place.name].selected)
        for place in (STORE_V1, DATABASE)
    }
    addresses = {place: str(pod["status"]["podIP"]) for place, pod in pods.items()}
    return await inbound.check(NodeAccess(node, store.programs, addresses, folder), phase)
