"""The objects of a cluster, read as the server reads them, with or without manifests applied in memory."""

import asyncio
import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import structlog

from meshwright.cli.errors import OfflineError
from meshwright.cli.offline.mesh import LoadedManifests, OfflineMesh, load_nonempty_manifests, seen
from meshwright.controller.errors import StartupError
from meshwright.controller.kubernetes.cluster import Cluster, ClusterAccess, cluster
from meshwright.kube.api import Api
from meshwright.kube.errors import ApiError, KubeError
from meshwright.mesh.problems.problem import Problems
from meshwright.providers.contract import SourceError

SECONDS: Final = timedelta(seconds=30)
"""Longest time for reading all objects of a cluster."""


@dataclass(frozen=True, slots=True)
class IntroducedProblems:
    """Problems that manifests add to a cluster; `standing` is the number of problems without them."""

    problems: Problems
    standing: int = 0


def reached(
    kubeconfig: Path | None, context: str, namespaces: str, selector: str, control_plane: str = ""
) -> ClusterAccess:
    """Return the access to a cluster from command-line options; `namespaces` is separated by commas."""
    names = filter(None, map(str.strip, namespaces.split(",")))
    return ClusterAccess(kubeconfig, context, tuple(names), selector, control_plane)


def brought(access: ClusterAccess, where: Path | None) -> IntroducedProblems:
    """Return the problems that manifests add to a cluster, or all problems of the cluster without manifests.

    Raises OfflineError.
    """
    if where is None:
        return IntroducedProblems(seen(listed(access)).problems)
    before, after = before_and_after(access, where)
    problems = new(before, after)
    return IntroducedProblems(problems, len(after.problems) - len(problems))


def new(before: OfflineMesh, after: OfflineMesh) -> Problems:
    """Return the problems of the mesh `after` without the problems of the mesh `before`."""
    known = frozenset(before.problems)
    return tuple(problem for problem in after.problems if problem not in known)


def before_and_after(access: ClusterAccess, where: Path) -> tuple[OfflineMesh, OfflineMesh]:
    """Return the mesh of a cluster, without and with manifests applied; raise OfflineError."""
    there = listed(access)
    return seen(there), seen(there.below(load_nonempty_manifests(where)))


def together(access: ClusterAccess, where: Path | None) -> OfflineMesh:
    """Return the mesh of a cluster, with manifests applied if `where` is given; raise OfflineError."""
    there = listed(access)
    return seen(there if where is None else there.below(load_nonempty_manifests(where)))


def listed(access: ClusterAccess, patience: timedelta = SECONDS) -> LoadedManifests:
    """Return all selected objects of a cluster; raise OfflineError if some cannot be read."""
    try:
        return asyncio.run(_listed(cluster(access, lambda: datetime.now(UTC), patience=patience)))
    except (StartupError, SourceError) as error:
        raise OfflineError(str(error)) from error


async def _listed(result: Cluster) -> LoadedManifests:
    # Every problem is printed, or is the reason of the error, so logging would repeat it.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    async with result.api:
        # The source would try again until its time is over.
        await _answers(result.api)
        try:
            await result.source.first()
        finally:
            await result.source.stop()
        # An unread object would count as missing, so an incomplete answer is an error.
        if error := result.source.freshness().error:
            raise OfflineError(f"the cluster cannot be read completely: {error}")
        return LoadedManifests(result.source.objects(), result.source.problems())


async def _answers(api: Api) -> None:
    """Raise OfflineError at once if the cluster does not answer; the source itself would try again."""
    try:
        await api.read("/version")
    except ApiError as error:
        # A server that forbids /version does answer.
        if not error.is_forbidden:
            raise OfflineError(f"the cluster {api.name} does not answer: {error}") from error
    except KubeError as error:
        raise OfflineError(f"the cluster {api.name} does not answer: {error}") from error
