"""Objects of the Gateway API with a refused manifest, so that a view lacks them.

A view has no refused objects, so their problems are an input. For example, a Gateway with a wrong port exists
for its author, and not for the mesh.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from catalog.explain.steps.step import Step
from catalog.relations.gateways.listeners import KINDS
from catalog.store.view import View
from meshwright.mesh.gateway.gateways import Listener
from meshwright.mesh.kinds import GATEWAY, GATEWAY_CLASS
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.problems.problem import Problem, Problems, Severity

_ROUTES: Final = 5
"""Maximum number of refused routes that an explanation names."""

Refusals = Mapping[ObjectKey, Problems]
"""Refused objects with their errors."""


def refusals(view: View, problems: Iterable[Problem]) -> Refusals:
    """Return the objects with errors, and without any form in the view."""
    found: dict[ObjectKey, Problems] = {}
    for problem in problems:
        if problem.key is None or problem.severity is not Severity.ERROR or problem.key in view.sourced:
            continue
        found[problem.key] = (*found.get(problem.key, ()), problem)
    return found


def gateway_problems(refused: Refusals, key: PolicyKey) -> Problems:
    """Return the errors for which a Gateway is refused; empty for every other one."""
    return refused.get(ObjectKey.from_name(GATEWAY, key), ())


def class_problems(refused: Refusals, name: str) -> Problems:
    """Return the errors for which a GatewayClass is refused; empty for every other one."""
    return refused.get(ObjectKey(GATEWAY_CLASS, Namespace(""), name), ())


def reasons(problems: Problems) -> Iterator[Step]:
    """Yield a step with code and text of each problem of an object."""
    for problem in problems:
        objects = () if problem.key is None else ((problem.key, problem.origin),)
        yield Step(f"{problem.code} {problem.clause}", objects, depth=1)


def refused_routes(refused: Refusals, listener: Listener) -> Iterator[Step]:
    """Yield a step for each of the first refused routes of a kind that fits a listener.

    A refused manifest cannot be read, so it is not known whether the route names the gateway as a parent.
    """
    routes = sorted(key for key in refused if key.kind in KINDS.get(listener.protocol, ()))
    for key in routes[:_ROUTES]:
        problem = refused[key][0]
        text = f"{key} is refused, so no listener has it: {problem.code} {problem.clause}"
        yield Step(text, ((key, problem.origin),))
    if (more := len(routes) - _ROUTES) > 0:
        yield Step(f"{more} more route{'s are' if more > 1 else ' is'} refused.")
