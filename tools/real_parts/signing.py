"""cert-manager's controllers beside a cluster, whose API has its kinds."""

import contextlib
from collections.abc import Iterator
from typing import Final

from tools.ports import free_port
from tools.real_parts.building import build
from tools.real_parts.cluster import RunningCluster
from tools.real_parts.keys import LOOPBACK
from tools.real_parts.parts import CERT_MANAGER
from tools.real_parts.processes import Program, Service, running

RESOURCES: Final = "cert-manager"
"""The namespace of the Secrets that ClusterIssuers name."""


@contextlib.contextmanager
def cert_manager(cluster: RunningCluster, *, approves: bool = True) -> Iterator[Service]:
    """Build them if they are not there, start them as the cluster's administrator, end them with the block.

    One that does not approve leaves every request to others.
    """
    at = f"{LOOPBACK}:{free_port(LOOPBACK)}"
    words = (
        f"-kubeconfig={cluster.kubeconfig}",
        f"-resources={RESOURCES}",
        f"-listen={at}",
        f"-approve={str(approves).lower()}",
    )
    log = cluster.place.folder / "log"
    with running(Program(build(CERT_MANAGER), words, log, f"http://{at}/")) as started:
        yield started
