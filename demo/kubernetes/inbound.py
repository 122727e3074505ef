"""Attempts at Pods' inbound ports from the network of the node, with certificates of the control plane."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from demo import inbound, mtls
from demo.apps.control import AppClient
from demo.display.verdicts import Verdict
from demo.kubernetes.plane import NAMESPACE, Plane
from demo.kubernetes.pods import pod_of
from demo.kubernetes.store import PodStore
from demo.plane import COMMAND
from demo.supervisor import run
from demo.topology import BOOKBUYER, DATABASE, SERVICE_PORTS, STORE_V1, Place
from meshwright.mesh.service import ServiceKey
from tools.real_parts.node import Node

_SETTINGS: Final = ("--config=/etc/meshwright/server/config.yaml", "--state=/state/meshwright")
_ISSUED: Final = "/state/tried-by-hand"


@dataclass(frozen=True, slots=True)
class NodeAccess:
    """Access to Pods from their node: addresses by workload, and a folder for this check.

    The folder has a proxy certificate, and in `state` the exported state of the mesh.
    """

    node: Node
    programs: Mapping[str, AppClient]
    addresses: Mapping[Place, str]
    folder: Path

    def target(self, place: Place, service: ServiceKey) -> mtls.Target:
        """Return the address of the Pod; the Pod's iptables rules redirect the connection to the sidecar."""
        address = self.addresses[place]
        return mtls.Target(address, SERVICE_PORTS[service], service.fqdn(), self.folder / "state/ca/ca.pem")

    def service(self, place: Place) -> mtls.Credentials:
        """Return the workload's service certificate, from the exported state of the mesh."""
        identity = place.identity
        path = self.folder / "state" / "services" / identity.namespace / identity.service_account
        return mtls.Credentials(path / "certificate.pem", path / "certificate.pem")

    def proxy(self, place: Place) -> mtls.Credentials:
        """Return a proxy certificate issued for this check; the sidecar's own never leaves its Pod."""
        del place
        return mtls.Credentials(self.folder / "proxy.pem", self.folder / "proxy.key")

    def do(self, work: Callable[[], str]) -> str:
        """Run the attempt in the network namespace of the node."""
        return self.node.inside.do(work)


async def check(store: PodStore, node: Node, phase: str) -> list[Verdict]:
    """Get certificates from the control plane, and make all attempts to call inbound ports."""
    folder = store.plane.folder / "by-hand"
    folder.mkdir(mode=0o700)
    server = str((await store.plane.pods())[0]["metadata"]["name"])
    await _issue(store.plane, server, folder)
    await _export(store.plane, server, folder)
    pods = {
        place: await pod_of(store.kubectl, store.kubectl_programs[place.name].selected)
        for place in (STORE_V1, DATABASE)
    }
    addresses = {place: str(pod["status"]["podIP"]) for place, pod in pods.items()}
    return await inbound.check(NodeAccess(node, store.programs, addresses, folder), phase)


async def _issue(plane: Plane, server: str, folder: Path) -> None:
    """Issue a proxy certificate for bookbuyer in the Pod of a server, and copy it into the folder."""
    at, of = ("exec", server, "-n", NAMESPACE, "--"), BOOKBUYER.identity
    words = ("certs", "issue-proxy", "--state=/state/meshwright", "--uuid", "tried-by-hand", "--anyway")
    names = (f"--service={of.service_account}", f"--namespace={of.namespace}", f"--out={_ISSUED}")
    await plane.kubectl(*at, "meshwright", *words, *names)
    for name in ("proxy.pem", "proxy.key"):
        (folder / name).write_text(await plane.kubectl(*at, "cat", f"{_ISSUED}/{name}"), "ascii")


async def _export(plane: Plane, server: str, folder: Path) -> None:
    """Export the state of the mesh from the store, as for a backup, and import it into the folder.

    The store has the private keys of service certificates only encrypted.
    """
    passphrase, sealed = folder / "passphrase", folder / "mesh.state"
    passphrase.write_text(secrets.token_hex(16), "ascii")
    words = ("meshwright", "state", "export", "-", *_SETTINGS, "--passphrase-file=/dev/stdin")
    exported = await plane.kubectl(
        "exec", "-i", server, "-n", NAMESPACE, "--", *words, stdin=passphrase.read_text("ascii")
    )
    sealed.write_text(exported, "ascii")
    to = (f"--state={folder / 'state'}", f"--passphrase-file={passphrase}")
    await run([str(COMMAND), "state", "import", str(sealed), *to])
