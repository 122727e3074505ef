"""A Kubernetes API: etcd and kube-apiserver, and optionally the controllers.

Without controllers objects stay as they were written: for example, Services get no EndpointSlices and
namespaces no ServiceAccounts. With controllers they do, deleted namespaces are emptied, and requests of
ServiceAccounts are logged to `log/audit.log`.

The cluster has neither scheduler nor kubelet (`tools.real_parts.node` has both), so a Pod runs if a test
writes this into the Pod's status. All programs listen on loopback or in namespaces. All files are in one
folder: `admin.kubeconfig`, `keys/`, `log/` and etcd's data.
"""

import contextlib
import json
import ssl
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.ports import free_port
from tools.real_parts import flags
from tools.real_parts.building import PartError, build, chosen_kubernetes
from tools.real_parts.flags import FIRST_SERVICE, NODE_ADDRESS, Place
from tools.real_parts.keys import LOOPBACK, Keys, client
from tools.real_parts.namespaces import Namespaces
from tools.real_parts.parts import API_SERVER, CONTROLLERS, ETCD
from tools.real_parts.processes import Program, Service, running


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Kubernetes API: address and administrator's credentials."""

    place: Place

    @property
    def server(self) -> str:
        """Return the URL of the Kubernetes API server."""
        return self.place.server

    @property
    def kubeconfig(self) -> Path:
        """Return the path of the administrator's kubeconfig."""
        return self.place.folder / "admin.kubeconfig"

    def tls(self) -> ssl.SSLContext:
        """Return the TLS settings of the administrator's connections."""
        return client(self.place.keys, "admin")


@dataclass(frozen=True, slots=True)
class RunningCluster(Cluster):
    """A cluster started here, with CA, etcd and API server; the programs can be killed and restarted."""

    keys: Keys
    etcd: Service
    api: Service
    inside: Namespaces | None = None

    @property
    def enter(self) -> tuple[str, ...]:
        """Return the prefix for commands that connect to the cluster; empty for a cluster on loopback."""
        return () if self.inside is None else self.inside.network

    def compact(self) -> int:
        """Compact etcd's history; return the oldest remaining revision."""
        revision = int(self._etcd("/v3/kv/range", {"key": "AA=="})["header"]["revision"])
        self._etcd("/v3/kv/compaction", {"revision": revision, "physical": True})
        return revision

    def ask(self, path: str) -> dict[str, Any]:
        """Send a GET request to the API server as the administrator; return the response."""
        return self._answer(urllib.request.Request(self.server + path))  # noqa: S310 - our own

    def _etcd(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        return self._answer(urllib.request.Request(self.place.etcd + path, json.dumps(body).encode()))  # noqa: S310

    def _answer(self, request: urllib.request.Request) -> dict[str, Any]:
        def answer() -> dict[str, Any]:
            with urllib.request.urlopen(request, context=self.tls(), timeout=30) as result:  # noqa: S310 - our own
                return dict(json.load(result))

        return answer() if self.inside is None else self.inside.do(answer)


_CLIENTS: Final[Mapping[str, Sequence[str]]] = {
    "server": ("kube-apiserver", "", FIRST_SERVICE),
    "etcd": ("etcd",),
    "admin": ("admin", "system:masters"),
    "controllers": ("system:kube-controller-manager", "system:masters"),
}


@contextlib.contextmanager
def cluster(
    folder: Path, *, controlled: bool = False, inside: Namespaces | None = None
) -> Iterator[RunningCluster]:
    """Build missing parts, start a cluster in a new folder, and stop all programs at the end of the block.

    The version of Kubernetes is the one in REAL_KUBERNETES, or the default one (`chosen_kubernetes`).
    The API listens on loopback, or with `inside` at the node's address in these namespaces. `controlled` adds
    the controllers.
    """
    log = folder / "log"
    if log.exists():
        raise PartError(f"{folder} exists already, with files of a cluster: name another folder")
    kubernetes = chosen_kubernetes()
    parts = (ETCD, API_SERVER, *([CONTROLLERS] if controlled else []))
    programs = {part.name: build(kubernetes.own(part)) for part in parts}
    log.mkdir(parents=True)
    host = LOOPBACK if inside is None else NODE_ADDRESS
    place = _place(folder, host)
    keys = _keys(place)
    tls = client(place.keys, "admin")

    def program(name: str, words: Sequence[str], ready: str) -> Program:
        return Program(programs[name], words, log, ready, tls, inside=inside)

    with contextlib.ExitStack() as ends:
        etcd = ends.enter_context(running(program(ETCD.name, flags.etcd(place), f"{place.etcd}/health")))
        words = flags.api_server(place, controlled=controlled)
        api = ends.enter_context(running(program(API_SERVER.name, words, f"{place.server}/readyz")))
        if controlled:
            at = f"https://{LOOPBACK}:{place.controllers}/healthz"
            ends.enter_context(running(program(CONTROLLERS.name, flags.controllers(place), at)))
        yield RunningCluster(place, keys, etcd, api, inside)


def _place(folder: Path, host: str) -> Place:
    api, store, peers, controllers = (free_port(LOOPBACK) for _ in range(4))
    return Place(folder, api, store, peers, controllers, host)


def _keys(place: Place) -> Keys:
    """Issue certificates for the cluster's programs and the administrator, and write the kubeconfigs."""
    keys = Keys(place.keys)
    for name, words in _CLIENTS.items():
        keys.issue(name, *words, *([place.host] if place.has_node and name == "server" else []))
    keys.signing("tokens")
    for name in ("admin", "controllers"):
        keys.kubeconfig(place.folder / f"{name}.kubeconfig", name, place.server)
    return keys
