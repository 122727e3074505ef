"""What is wrong between objects: each function looks at one kind and says what is not in force, and why."""

from collections.abc import Iterator
from itertools import chain

from catalog import index, lint_matches, lint_reach, lint_services, lint_splits, lint_targets
from catalog.codes import Code
from catalog.saying import say, workload_object
from catalog.view import View
from mesh.objects import Origin, Problem, Severity
from mesh.workload import Workload


def problems(view: View) -> tuple[Problem, ...]:
    """Return all problems of a view, sorted, each once."""
    found = chain(
        lint_targets.problems(view),
        lint_reach.problems(view),
        lint_matches.problems(view),
        lint_splits.problems(view),
        lint_services.problems(view),
        _workloads(view),
        _configs(view),
    )
    return tuple(sorted(set(found), key=_order))


def _order(problem: Problem) -> tuple[str, Origin, str, str, str]:
    return (problem.code, problem.origin, str(problem.key), problem.field, problem.value)


def _workloads(view: View) -> Iterator[Problem]:
    for workload in view.workloads.values():
        yield from _of_workload(view, workload)


def _of_workload(view: View, workload: Workload) -> Iterator[Problem]:
    key = workload_object(view, workload.key)
    for each in view.conflicts.get(workload.key, ()):
        yield say(
            view,
            key,
            Code.LISTENER_CONFLICT,
            Severity.ERROR,
            "spec.upstreams" if each.refused.index >= 0 else "spec.ports",
            str(each.refused),
            f"the address and port are held by {each.holder}; this listener is left out, choose another",
        )
    if workload.uuid is None:
        return
    holder = view.workloads_by_uuid[workload.uuid]
    if holder.key != workload.key:
        wanted = f"workload {holder.key} has this UUID; each sidecar needs one of its own"
        yield say(view, key, Code.UUID_TWICE, Severity.ERROR, "spec.uuid", str(workload.uuid), wanted)


def _configs(view: View) -> Iterator[Problem]:
    first, *others = index.configs(view.sourced) or (None,)
    for other in others:
        if other is not None:
            wanted = f"{first} counts and this one does not; keep one of them"
            yield say(
                view, other, Code.SEVERAL_CONFIGS, Severity.WARNING, "metadata.name", other.name, wanted
            )
