"""Problems that a change of objects adds to the mesh, as warnings. The effect never refuses an object."""

from collections.abc import Iterable
from pathlib import Path

from meshwright.cli.offline.mesh import LoadedManifests, load_manifests, seen
from meshwright.etcd.values import KeyValue
from meshwright.mesh.problems.problem import Severity
from meshwright.providers.etcd.book import EtcdObjects
from meshwright.providers.etcd.names import ObjectNames


def added_problems(
    names: ObjectNames, before: Iterable[KeyValue], after: Iterable[KeyValue], mesh: Path | None
) -> tuple[str, ...]:
    """Return a line for each problem that the mesh has after a change, but not before.

    `mesh` is a directory that the servers read too; its objects precede those in etcd. Raises OfflineError.
    """
    others = LoadedManifests() if mesh is None else load_manifests(mesh)
    known, now = (
        seen(LoadedManifests(EtcdObjects().taken(names, items, ()).objects()).below(others)).problems
        for items in (before, after)
    )
    # Only new problems, because old ones are no reason to reconsider this change.
    had = frozenset(known)
    return tuple(
        str(problem) for problem in now if problem not in had and problem.severity is not Severity.INFO
    )
