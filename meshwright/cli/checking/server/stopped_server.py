"""Checks of `meshwright check` for a stopped server, or before the first start."""

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from certs.custody import begun, opened
from certs.errors import CertificateError
from certs.state.privacy import user_of
from meshwright.admin.pages.mesh.certificates import offline_certificates
from meshwright.agent.interception.owners import named
from meshwright.cli.checking import kernel
from meshwright.cli.checking.judgements import certificates, fitness, server
from meshwright.cli.checking.judgements.check import Check, UnavailableCheck
from meshwright.cli.checking.judgements.environment import clock as clocks
from meshwright.cli.checking.judgements.environment import ports
from meshwright.cli.checking.judgements.problems import ObjectProblem
from meshwright.cli.checking.server import etcd
from meshwright.cli.checking.server.paths import ServerPaths, all_ports, authority, clock, directory
from meshwright.cli.checking.server.responses import IssuedCertificates, issued
from meshwright.cli.checking.timed_looks import TimedLook
from meshwright.cli.errors import OfflineError
from meshwright.cli.offline.mesh import OfflineMesh, read, seen
from meshwright.controller.errors import StartupError, StateInUse
from meshwright.controller.process.lock import hold_lock
from meshwright.controller.settings.settings import Settings
from meshwright.mesh.names import TrustDomain

_DIRECTORY: Final = "mesh directory"
_CLUSTER: Final = "cluster"
_PATIENCE: Final = timedelta(seconds=8)
_START: Final = (
    "start the server: `meshwright serve`; if it ends, see the last line of its log for the reason"
)


def checks(paths: ServerPaths, why: str) -> Iterator[Check]:
    """Yield the checks of a stopped server. `why` is the message about the missing server."""
    now = datetime.now(UTC)
    mesh, ledger = _Mesh(paths), TimedLook("ledger", lambda: _ledger(paths, now))
    yield directory(paths)
    yield Check.failed("server", why, _START)
    result = ledger.seen()
    yield _of_ledger(result, paths.state)
    yield from mesh.checks()
    yield from etcd.checks(paths.etcd)
    yield authority(paths, now)
    if isinstance(result, IssuedCertificates):
        yield certificates.proxies(result.newest(), now)
    yield from all_ports(paths, ports.free)
    yield clock(paths, result.moments if isinstance(result, IssuedCertificates) else ())


def before(paths: ServerPaths, envoy: str) -> Iterator[Check]:
    """Check a machine before a server is set up."""
    mesh = _Mesh(paths)
    yield kernel.python()
    yield fitness.directory("state directory", kernel.directory(paths.state), "--state")
    yield from mesh.checks()
    yield from etcd.checks(paths.etcd)
    yield from all_ports(paths, ports.free)
    need = "each sidecar needs Envoy, but the server does not"
    do = "install Envoy on machines with sidecars, or give its path with --envoy"
    yield fitness.program("Envoy", shutil.which(envoy), need, do)
    yield clocks.beside_certificates(kernel.clock(), ())


class _Mesh:
    """Concurrent reads of the mesh's sources, which begin when this object is created."""

    def __init__(self, paths: ServerPaths) -> None:
        self._sources = paths.sources
        self._looks: list[tuple[str, TimedLook[Check]]] = []
        if paths.mesh is not None:
            self._looks.append((_DIRECTORY, TimedLook(_DIRECTORY, partial(_directory, paths.mesh))))
        if paths.cluster is not None:
            self._looks.append((_CLUSTER, TimedLook(_CLUSTER, partial(_cluster, paths.cluster))))

    def checks(self) -> Iterator[Check]:
        """Yield one check for each source of the mesh, after the reads have ended."""
        if not self._sources:
            do = "give --mesh or MESHWRIGHT_MESH, or --kubernetes"
            yield Check.unseen(_DIRECTORY, UnavailableCheck("the directory is not given", do))
        for name, look in self._looks:
            yield look.judged(name, lambda check: check)


def _directory(where: Path) -> Check:
    """Check the mesh directory as `lint` does."""
    try:
        offline_mesh = read(where)
    except OfflineError as error:
        return fitness.mesh(where, 0, (), str(error))
    return fitness.mesh(where, offline_mesh.objects, _object_problems(offline_mesh))


def _cluster(settings: Settings) -> Check:
    """Check the cluster as `lint --kubernetes` does, as this user, who may differ from the server's user."""
    from meshwright.cli.offline.cluster import listed
    from meshwright.controller.kubernetes.cluster import ClusterAccess

    try:
        offline_mesh = seen(listed(ClusterAccess.from_settings(settings), _PATIENCE))
    except OfflineError as error:
        return fitness.cluster(0, (), str(error))
    return fitness.cluster(offline_mesh.objects, _object_problems(offline_mesh))


def _object_problems(seen: OfflineMesh) -> list[ObjectProblem]:
    return [ObjectProblem(problem.code, problem.severity, str(problem)) for problem in seen.problems]


def _ledger(paths: ServerPaths, now: datetime) -> IssuedCertificates | str | UnavailableCheck | None:
    """Open CA and ledger as a server would; return their certificates, or why they cannot be used.

    Returns None if neither exists. Only the owner opens them, because another user would leave files behind
    that the server cannot use.
    """
    try:
        if not begun(paths.state):
            return None
        # Checked before the directory is locked, because locking creates a file.
        if (user := user_of(paths.state)) != os.geteuid():
            return UnavailableCheck(
                f"it belongs to {named(user)}", f"repeat the command as {named(user)} (`runuser -u`)"
            )
        domain = TrustDomain(paths.trust_domain)
        with hold_lock(paths.state), opened(paths.state, domain, now, custody=paths.custody) as ledger:
            return issued(
                offline_certificates(ledger.ledger.entries(), now, ledger.opened_authority.standing())
            )
    except StateInUse as error:
        return UnavailableCheck(str(error), "wait if the other server is starting; otherwise see its log")
    except (StartupError, CertificateError) as error:
        return " ".join(str(error).split())


def _of_ledger(result: IssuedCertificates | str | UnavailableCheck | None, state: Path) -> Check:
    match result:
        case None:
            text = f"{state} lacks both a CA and a ledger"
            return Check.warning(
                "ledger",
                text,
                "the first start creates both; if there was a server before, give its directory with --state",
            )
        case UnavailableCheck():
            return Check.unseen("ledger", result)
        case str():
            return server.broken_ledger(result)
        case _:
            return server.ledger(result.known)
