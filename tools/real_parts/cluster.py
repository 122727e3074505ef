"""A Kubernetes API on loopback: etcd and kube-apiserver, and the controllers if they are asked for.

Without controllers what is written stays as it was written: no endpoints are computed, no account is made.
With them Services get their EndpointSlices, namespaces are emptied when they go, and what service accounts
ask for is written to `log/audit.log`. There is no scheduler and no kubelet: a Pod runs where its writer says
so, in its status. Everything is below one folder: `admin.kubeconfig`, `keys/`, `log/` and etcd's data.
"""

import contextlib
import json
import ssl
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from demo.ports import free_port
from tools.real_parts import flags
from tools.real_parts.building import PartError, build
from tools.real_parts.flags import FIRST_SERVICE, Place
from tools.real_parts.keys import LOOPBACK, Keys, client
from tools.real_parts.parts import API_SERVER, CONTROLLERS, ETCD
from tools.real_parts.processes import Program, Service, running


@dataclass(frozen=True, slots=True)
class Cluster:
    """An API on loopback: where it is, and how its administrator reaches it."""

    place: Place

    @property
    def server(self) -> str:
        """Return where the API is."""
        return self.place.server

    @property
    def kubeconfig(self) -> Path:
        """Return the administrator's kubeconfig."""
        return self.place.folder / "admin.kubeconfig"

    def tls(self) -> ssl.SSLContext:
        """Return what the administrator's connections are made with."""
        return client(self.place.keys, "admin")


@dataclass(frozen=True, slots=True)
class RunningCluster(Cluster):
    """One of ours: who signs for it, and its API's program, which may be killed and started again."""

    keys: Keys
    api: Service

    def compact(self) -> int:
        """Have etcd forget all history; return the revision that is the oldest it knows now."""
        revision = int(self._etcd("/v3/kv/range", {"key": "AA=="})["header"]["revision"])
        self._etcd("/v3/kv/compaction", {"revision": revision, "physical": True})
        return revision

    def _etcd(self, path: str, asked: Mapping[str, object]) -> dict[str, Any]:
        request = urllib.request.Request(self.place.etcd + path, json.dumps(asked).encode())  # noqa: S310 - loopback
        with urllib.request.urlopen(request, context=self.tls(), timeout=30) as answer:  # noqa: S310
            return dict(json.load(answer))


_CLIENTS: Final[Mapping[str, Sequence[str]]] = {
    "server": ("kube-apiserver", "", FIRST_SERVICE),
    "etcd": ("etcd",),
    "admin": ("admin", "system:masters"),
    "controllers": ("system:kube-controller-manager", "system:masters"),
}


@contextlib.contextmanager
def cluster(folder: Path, *, controlled: bool = False) -> Iterator[RunningCluster]:
    """Build what is missing, start a cluster in a new folder, and end its programs with the block."""
    log = folder / "log"
    if log.exists():
        raise PartError(f"{folder} is there already, with a cluster's files: name another folder")
    parts = (ETCD, API_SERVER, *([CONTROLLERS] if controlled else []))
    programs = {part.name: build(part) for part in parts}
    log.mkdir(parents=True)
    keys = Keys(folder / "keys")
    for name, words in _CLIENTS.items():
        keys.issue(name, *words)
    keys.signing("tokens")
    place = Place(folder, *(free_port(LOOPBACK) for _ in range(4)))
    for name in ("admin", "controllers"):
        keys.kubeconfig(folder / f"{name}.kubeconfig", name, place.server)
    tls = client(place.keys, "admin")

    def program(name: str, words: Sequence[str], ready: str) -> Program:
        return Program(programs[name], words, log, ready, tls)

    with contextlib.ExitStack() as ends:
        etcd = program(ETCD.name, flags.etcd(place), f"{place.etcd}/health")
        ends.enter_context(running(etcd))
        words = flags.api_server(place, controlled=controlled)
        api = ends.enter_context(running(program(API_SERVER.name, words, f"{place.server}/readyz")))
        if controlled:
            at = f"https://{LOOPBACK}:{place.controllers}/healthz"
            ends.enter_context(running(program(CONTROLLERS.name, flags.controllers(place), at)))
        yield RunningCluster(place, keys, api)
