"""istiod as a process on loopback, in plaintext, with the defaults of its installation."""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.istiod.objects import SYSTEM
from benchmarks.processes.plane import Series, Start
from benchmarks.processes.usage import cpu_seconds
from tools.ports import free_port
from tools.real_parts.building import build, download
from tools.real_parts.cluster import Cluster
from tools.real_parts.keys import LOOPBACK
from tools.real_parts.parts import ISTIOD
from tools.real_parts.processes import Program, running

_ENVIRONMENT = {
    "POD_NAME": "istiod",
    "POD_NAMESPACE": SYSTEM,
    "SERVICE_ACCOUNT": "istiod",
    "REVISION": "default",
    "CLUSTER_ID": "Kubernetes",
    "PILOT_CERT_PROVIDER": "istiod",
}
"""Variables of the chart that differ from istiod's defaults."""


_DEFINITIONS = "manifests/charts/base/files/crd-all.gen.yaml"


def definitions() -> str:
    """Return Istio's CustomResourceDefinitions from its Go module."""
    return (Path(download(ISTIOD)["Dir"]) / _DEFINITIONS).read_text("utf-8")


@dataclass(frozen=True, slots=True)
class Istiod:
    """A running istiod; `http` is the address for AdmissionReviews."""

    process: subprocess.Popen[bytes]
    ads: str
    http: str

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self.process.pid

    def cpu(self) -> float:
        """Return the CPU seconds used so far."""
        return cpu_seconds(self.pid)

    def metrics(self) -> Series:
        """Return an empty mapping, because istiod's metrics count other things than our server's."""
        return {}

    def lateness(self) -> float:
        """Return 0, because istiod has no event loop."""
        return 0.0

    def sampling(self, profile: Path | None, name: str) -> contextlib.AbstractContextManager[None]:
        """Do nothing, because other tools profile istiod."""
        del profile, name
        return contextlib.nullcontext()


@contextlib.contextmanager
def istiod(cluster: Cluster, log: Path) -> Iterator[tuple[Istiod, Start]]:
    """Start istiod on a cluster, wait until it is ready, and stop it at the end of the block."""
    ads, http, monitoring = (free_port(LOOPBACK) for _ in range(3))
    words = [
        *("discovery", "--kubeconfig", str(cluster.kubeconfig)),
        *("--grpcAddr", f"{LOOPBACK}:{ads}", "--httpAddr", f"{LOOPBACK}:{http}"),
        *("--httpsAddr", "", "--secureGRPCAddr", "", "--monitoringAddr", f"{LOOPBACK}:{monitoring}"),
        *("--ctrlz_port", "0", "--shutdownDuration", "1s"),
    ]
    log.mkdir()
    # A small environment, so that variables of the user cannot configure istiod.
    environment = {"PATH": os.environ["PATH"], "HOME": str(log), **_ENVIRONMENT}
    began = time.monotonic()
    program = Program(build(ISTIOD), words, log, f"http://{LOOPBACK}:{http}/ready", environment=environment)
    with running(program) as started:
        made = Istiod(started.process, f"{LOOPBACK}:{ads}", f"{LOOPBACK}:{http}")
        yield made, Start(time.monotonic() - began, made.cpu())
