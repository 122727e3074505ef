"""Problems of missing objects whose manifests are refused.

A view has no refused objects, so the checks of a view take them for missing. Where all problems are listed,
the advice to create such an object becomes the advice to correct it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from catalog.lint.codes import Code
from meshwright.mesh.kinds import GATEWAY, GATEWAY_CLASS
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.problems.problem import Problem, Problems, Severity, ordered


def with_refused(problems: Problems) -> Problems:
    """Return all problems of a mesh, with the errors of refused objects in place of advice to create them."""
    missing = {problem: key for problem in problems if (key := _missing(problem)) is not None}
    if not missing:
        return problems
    wanted, errors = set(missing.values()), dict[ObjectKey, Problem]()
    for problem in problems:
        if problem.key in wanted and problem.severity is Severity.ERROR:
            errors.setdefault(problem.key, problem)
    return ordered(_corrected(problems, missing, errors))


def _missing(problem: Problem) -> ObjectKey | None:
    """Return the object that a problem takes for missing; None for other problems."""
    if problem.key is None:
        return None
    if problem.code == Code.UNKNOWN_GATEWAY_CLASS:
        return ObjectKey(GATEWAY_CLASS, Namespace(""), problem.value)
    gateway = ObjectKey(GATEWAY, problem.key.namespace, problem.value)
    is_missing = problem.expected.startswith(f"{gateway} does not exist")
    return gateway if problem.code == Code.UNKNOWN_GATEWAY and is_missing else None


def _corrected(
    problems: Problems, missing: Mapping[Problem, ObjectKey], errors: Mapping[ObjectKey, Problem]
) -> Iterator[Problem]:
    for problem in problems:
        key = missing.get(problem)
        error = None if key is None else errors.get(key)
        if key is None or error is None:
            yield problem
            continue
        subject, effect = f"{key}", "this workload serves nothing"
        if key.kind == GATEWAY_CLASS:
            subject, effect = "This GatewayClass", "the Gateway is not served"
        text = f"{subject} exists, but is refused, so {effect}. Correct the {key.kind.name}: "
        yield replace(problem, expected=f"{text}{error.code} {error.clause}")
