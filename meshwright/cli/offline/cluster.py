"""What a cluster has at this moment, as the server would read it, and what manifests would make of it."""

import asyncio
import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import structlog

from meshwright.cli.errors import OfflineError
from meshwright.cli.offline.mesh import LoadedManifests, OfflineMesh, held_some, seen
from meshwright.controller.errors import StartupError
from meshwright.controller.kubernetes.cluster import Cluster, ClusterAccess, cluster
from meshwright.kube.api import Api
from meshwright.kube.errors import ApiError, KubeError
from meshwright.mesh.problems.problem import Problems
from meshwright.providers.contract import SourceError

SECONDS: Final = timedelta(seconds=30)
"""How long a cluster may take to say all that it has."""


@dataclass(frozen=True, slots=True)
class IntroducedProblems:
    """What manifests make wrong, with themselves or others; `standing` counts what is so without them."""

    problems: Problems
    standing: int = 0


def reached(
    kubeconfig: Path | None, context: str, namespaces: str, selector: str, control_plane: str = ""
) -> ClusterAccess:
    """Return the access to a cluster from command-line options; `namespaces` is separated by commas."""
    names = filter(None, map(str.strip, namespaces.split(",")))
    return ClusterAccess(kubeconfig, context, tuple(names), selector, control_plane)


def brought(asked: ClusterAccess, where: Path | None) -> IntroducedProblems:
    """Compare a cluster with itself with manifests applied; without any, return all that is wrong in it.

    Raises OfflineError.
    """
    if where is None:
        return IntroducedProblems(seen(listed(asked)).problems)
    before, after = before_and_after(asked, where)
    found = new(before, after)
    return IntroducedProblems(found, len(after.problems) - len(found))


def new(before: OfflineMesh, after: OfflineMesh) -> Problems:
    """Return what is wrong after and was not before."""
    known = frozenset(before.problems)
    return tuple(each for each in after.problems if each not in known)


def before_and_after(asked: ClusterAccess, where: Path) -> tuple[OfflineMesh, OfflineMesh]:
    """Return what a cluster comes to as it is, and with manifests applied; raise OfflineError."""
    there = listed(asked)
    return seen(there), seen(there.below(held_some(where)))


def together(asked: ClusterAccess, where: Path | None) -> OfflineMesh:
    """Return what a cluster comes to, with manifests applied where there are any; raise OfflineError."""
    there = listed(asked)
    return seen(there if where is None else there.below(held_some(where)))


def listed(asked: ClusterAccess, patience: timedelta = SECONDS) -> LoadedManifests:
    """Return all that a cluster has, as far as it is asked for; raise OfflineError if not all can be had."""
    try:
        return asyncio.run(_listed(cluster(asked, lambda: datetime.now(UTC), patience=patience)))
    except (StartupError, SourceError) as error:
        raise OfflineError(str(error)) from error


async def _listed(found: Cluster) -> LoadedManifests:
    # All that is wrong is printed, or is why nothing is: it need not be logged as well.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    async with found.api:
        await _answers(found.api)
        try:
            await found.source.first()
        finally:
            await found.source.stop()
        # What is not known would be taken for missing: no answer is better.
        if error := found.source.freshness().error:
            raise OfflineError(f"the cluster cannot be read completely: {error}")
        return LoadedManifests(found.source.objects(), found.source.problems())


async def _answers(api: Api) -> None:
    """Raise OfflineError where nobody answers, or not to us: who typed it need not wait for another try."""
    try:
        await api.read("/version")
    except ApiError as error:
        if not error.is_forbidden:
            raise OfflineError(f"the cluster {api.name} does not answer: {error}") from error
    except KubeError as error:
        raise OfflineError(f"the cluster {api.name} does not answer: {error}") from error
