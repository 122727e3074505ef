"""Lint problems between several objects of policy, as findings; a reader judges each object alone.

Lint gets the objects of the migrated mesh, with the MeshConfig from migrate. Files may contain only part of a
mesh: for them, lint reports contradictions between the given objects, and ignores missing objects.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from catalog.lint.codes import Code
from meshwright.cli.errors import CommandFailed, OfflineError
from meshwright.cli.migrating.findings import Document, Finding, MigrationStatus, mapping, named
from meshwright.cli.migrating.objects import GROUPS
from meshwright.cli.offline.mesh import LoadedManifests, seen
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.providers.directory.manifests import Manifests
from meshwright.providers.text.yaml_documents import printed

_NO_EFFECT: Final = frozenset(
    {
        *(Code.SHADOWED_SPLIT, Code.OVERRULED_SPLIT, Code.EXCESSIVE_WEIGHTS),
        *(Code.NO_RULES, Code.NO_SOURCES, Code.FOREIGN_DESTINATION, Code.UNFIT_PATH, Code.UNSEEN_HEADER),
        *(Code.OVERRULED_INGRESS, Code.INGRESS_NOT_HTTP, Code.OVERRULED_SETTING, Code.FOREIGN_HOST),
        *(Code.NO_LIMITS, Code.OVERRULED_RETRY, Code.RETRY_OF_NO_REQUESTS, Code.EGRESS_TO_MESH),
        *(Code.EGRESS_OVERRULED, Code.FOREIGN_TRUST_DOMAIN, Code.RATE_OF_NO_REQUESTS),
    }
)
"""Problems that leave policy without effect, completely or in part."""
_DEFAULT: Final = "default"
"""Namespace of an object without one."""
_CONTRADICTIONS: Final = _NO_EFFECT | {
    *(Code.UNKNOWN_MATCH, Code.BACKEND_PORT, Code.INGRESS_PORT, Code.RATES_DIFFER, Code.PROTOCOLS_DIFFER),
}
"""Problems that follow from the given objects, whatever other objects exist."""


@dataclass(frozen=True, slots=True)
class CrossObjectProblems:
    """Problems between objects of policy, by kind, namespace and name."""

    problems: Mapping[tuple[str, str, str], tuple[Problem, ...]]

    def findings(self, document: Document) -> tuple[Finding, ...]:
        """Return findings for the problems of an object with other objects."""
        metadata = mapping(document.get("metadata"))
        where = str(metadata.get("namespace") or _DEFAULT), str(metadata.get("name"))
        problems = self.problems.get((str(document.get("kind")), *where), ())
        return tuple(_finding(named(document), problem) for problem in problems)


def of_all(documents: Iterable[Document], *, whole: bool) -> CrossObjectProblems:
    """Return lint's problems of objects of policy.

    `whole`: the objects are the whole mesh, so that missing objects are reported too. Raises CommandFailed.
    """
    manifests = Manifests().apply("migrated.yaml", printed(list(documents)))
    try:
        problems = seen(LoadedManifests(manifests.objects())).problems
    except OfflineError as error:
        raise CommandFailed(error) from error
    result: dict[tuple[str, str, str], tuple[Problem, ...]] = {}
    for problem in problems:
        if problem.key is None or problem.key.kind.group not in GROUPS or not _counts(problem, whole=whole):
            continue
        where = (problem.key.kind.name, str(problem.key.namespace), str(problem.key.name))
        result[where] = (*result.get(where, ()), problem)
    return CrossObjectProblems(result)


def _counts(problem: Problem, *, whole: bool) -> bool:
    # Codes MW2xxx are the problems between objects; others are reported by the readers.
    if problem.severity is Severity.INFO or not problem.code.startswith("MW2"):
        return False
    return whole or problem.code in _CONTRADICTIONS


def _finding(subject: str, problem: Problem) -> Finding:
    standing = MigrationStatus.NOT_ENFORCED if problem.code in _NO_EFFECT else MigrationStatus.TO_DO
    text = f"is {problem.value}: {problem.expected}" if problem.value else problem.expected
    return Finding(subject, standing, text, problem.field, problem.code)
