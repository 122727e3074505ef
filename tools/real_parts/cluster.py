"""A Kubernetes API on loopback: etcd and kube-apiserver, with nobody who controls anything.

What is written stays as it was written: no endpoints are computed, no Pod is scheduled. Everything is below
one folder: `admin.kubeconfig`, `keys/`, `log/` and etcd's data.
"""

import contextlib
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from demo.ports import free_port
from tools.ending import end
from tools.real_parts.building import PartError, build
from tools.real_parts.keys import LOOPBACK, Keys
from tools.real_parts.parts import API_SERVER, ETCD

SERVICES: Final = "10.96.0.0/12"
"""The addresses of Services; the first of them is the API's own."""
_FIRST: Final = "10.96.0.1"
PATIENCE: Final = 90.0
"""Seconds that a program may take until it is ready."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running API: where it is, and how its administrator reaches it."""

    folder: Path
    server: str

    @property
    def kubeconfig(self) -> Path:
        """Return the administrator's kubeconfig."""
        return self.folder / "admin.kubeconfig"

    def tls(self) -> ssl.SSLContext:
        """Return what the administrator's connections are made with."""
        keys = self.folder / "keys"
        context = ssl.create_default_context(cafile=str(keys / "ca.crt"))
        context.load_cert_chain(str(keys / "admin.crt"), str(keys / "admin.key"))
        return context


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Build what is missing, start a cluster in a new folder, and end its programs with the block."""
    programs = {part.name: build(part) for part in (ETCD, API_SERVER)}
    (folder / "log").mkdir(parents=True)
    keys = Keys(folder / "keys")
    for name, words in _CLIENTS.items():
        keys.issue(name, *words)
    keys.signing("tokens")
    ports = [free_port(LOOPBACK) for _ in range(3)]
    made = Cluster(folder, f"https://{LOOPBACK}:{ports[0]}")
    keys.kubeconfig(made.kubeconfig, "admin", made.server)
    store = f"https://{LOOPBACK}:{ports[1]}"
    log = folder / "log"
    with running(programs[ETCD.name], _etcd(folder, store, ports[2]), log) as etcd:
        until_ready(etcd, f"{store}/health", log / "etcd.log", made.tls())
        with running(programs[API_SERVER.name], _api_server(folder, ports[0], store), log) as api:
            until_ready(api, f"{made.server}/readyz", log / "kube-apiserver.log", made.tls())
            yield made


_CLIENTS: Final[Mapping[str, Sequence[str]]] = {
    "server": ("kube-apiserver", "", _FIRST),
    "etcd": ("etcd",),
    "admin": ("admin", "system:masters"),
}


def _etcd(folder: Path, store: str, peers: int) -> list[str]:
    keys, peer = folder / "keys", f"http://{LOOPBACK}:{peers}"
    return [
        "--name=parts",
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={store}",
        f"--advertise-client-urls={store}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=parts={peer}",
        f"--cert-file={keys / 'etcd.crt'}",
        f"--key-file={keys / 'etcd.key'}",
        f"--trusted-ca-file={keys / 'ca.crt'}",
        "--client-cert-auth",
        "--unsafe-no-fsync",  # it lives as long as the test
        "--log-level=warn",
    ]


def _api_server(folder: Path, port: int, store: str) -> list[str]:
    keys = folder / "keys"
    return [
        f"--bind-address={LOOPBACK}",
        f"--advertise-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--etcd-servers={store}",
        f"--etcd-cafile={keys / 'ca.crt'}",
        f"--etcd-certfile={keys / 'etcd.crt'}",
        f"--etcd-keyfile={keys / 'etcd.key'}",
        f"--tls-cert-file={keys / 'server.crt'}",
        f"--tls-private-key-file={keys / 'server.key'}",
        f"--client-ca-file={keys / 'ca.crt'}",
        "--authorization-mode=RBAC",
        "--disable-admission-plugins=ServiceAccount",  # nobody makes the default account, or its tokens
        "--allow-privileged=true",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={keys / 'tokens.pub'}",
        f"--service-account-signing-key-file={keys / 'tokens.key'}",
        f"--service-cluster-ip-range={SERVICES}",
        "--endpoint-reconciler-type=none",  # a loopback address is no endpoint
    ]


@contextlib.contextmanager
def running(
    program: Path, words: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program whose output goes to `log/NAME.log`; end it, and nothing else, with the block."""
    with (log / f"{program.name}.log").open("wb") as output:
        process = subprocess.Popen(
            [program, *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=None if environment is None else dict(environment),
        )
    try:
        yield process
    finally:
        end(process, 15)


def until_ready(
    process: subprocess.Popen[bytes], url: str, log: Path, tls: ssl.SSLContext | None = None
) -> None:
    """Wait until a program answers 200 there; raise PartError, with its last words, if it does not."""
    deadline = time.monotonic() + PATIENCE
    while True:
        if process.poll() is not None or time.monotonic() > deadline:
            said = " / ".join(log.read_text("utf-8", errors="replace").splitlines()[-5:])
            raise PartError(f"{log.stem} is not ready at {url}: {said}")
        with (
            contextlib.suppress(OSError),  # not yet: an error's answer is one too
            urllib.request.urlopen(url, context=tls, timeout=5),  # noqa: S310 - loopback
        ):
            return
        time.sleep(0.02)
