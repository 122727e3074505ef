"""Controllers of cert-manager, for a cluster with cert-manager's resource definitions."""

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
"""Namespace of the Secrets of ClusterIssuers."""


@contextlib.contextmanager
def cert_manager(cluster: RunningCluster, *, approves: bool = True) -> Iterator[Service]:
    """Build and start the controllers as the cluster's administrator, and stop them at the end of the block.

    Without `approves` they leave the approval of requests to another program.
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
