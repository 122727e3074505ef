"""Findings about one object of policy, from the server's own readers."""

from collections.abc import Iterable, Iterator
from typing import Final

from meshwright.cli.migrating.findings import Document, Finding, MigrationStatus, named
from meshwright.mesh.origins import InFile
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.specs.codes import Code
from meshwright.specs.displayed_objects import read_shown
from meshwright.specs.osm.unenforced_policy import UNENFORCED
from meshwright.specs.reader import ManifestReading
from meshwright.specs.reference.meanings.definitions import INSTALLED

GROUPS: Final = frozenset(item.group for item in (*INSTALLED, *UNENFORCED))
"""The API groups of policy: SMI, Open Service Mesh and the latter's successor, and Meshwright."""

_NOT_USED: Final = frozenset(
    map(str, (Code.NOT_USED, Code.FIELDS_NOT_USED, Code.PRUNED, Code.UNKNOWN_METADATA, Code.LIKE_A_FIELD))
)
_REFUSED: Final = frozenset(map(str, (Code.UDP_ROUTE,)))
_SOMEWHERE: Final = InFile("")


def is_policy(document: Document) -> bool:
    """Return whether an object belongs to a group of policy."""
    return group_of(document) in GROUPS


def group_of(document: Document) -> str:
    """Return an object's API group, empty for Kubernetes' core group."""
    return str(document.get("apiVersion", "")).rpartition("/")[0]


def read(document: Document) -> ManifestReading:
    """Read an object as the server reads one from a cluster."""
    return read_shown(document, _SOMEWHERE)


def of_object(document: Document, between: Iterable[Finding] = ()) -> Iterator[Finding]:
    """Yield the readers' findings about an object, then `between`, the findings about several objects.

    An object without any finding works unchanged.
    """
    what, reading = named(document), read(document)
    for problem in reading.problems:
        yield of_problem(what, problem)
    others = tuple(between)
    yield from others
    if not reading.problems and not others:
        yield Finding(what, MigrationStatus.WORKS, "as it is")


def of_problem(subject: str, problem: Problem) -> Finding:
    """Return a problem as a line of the report."""
    value = problem.value and problem.field != "kind"  # the object's name already begins with the kind
    text = f"is {problem.value}: {problem.expected}" if value else problem.expected
    return Finding(subject, standing_of(problem), text, problem.field, problem.code)


def standing_of(problem: Problem) -> MigrationStatus:
    """Return the migration status of an object with this problem."""
    if problem.severity is Severity.ERROR or problem.code in _REFUSED:
        return MigrationStatus.REFUSED
    if problem.code == str(Code.NOT_ENFORCED):
        return MigrationStatus.NOT_ENFORCED
    return MigrationStatus.UNUSED if problem.code in _NOT_USED else MigrationStatus.WORKS
