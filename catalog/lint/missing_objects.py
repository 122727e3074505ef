"""Temporary problems, which end when another object is created.

Manifests are applied one after another. Meanwhile an object may name others before their creation, for
example a TrafficTarget its HTTPRouteGroup, or a Service its Pods. Therefore Events about such problems are
delayed.
"""

from collections.abc import Container, Iterable, Mapping
from typing import Final

from catalog.lint.codes import Code
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.problems.problem import Problem

MISSING: Final = frozenset(
    {
        Code.UNKNOWN_ROUTE,
        Code.UNKNOWN_MATCH,
        Code.UNKNOWN_DESTINATION,
        Code.UNKNOWN_SOURCES,
        Code.SOURCE_NAMESPACE,
        Code.UNKNOWN_APEX,
        Code.UNKNOWN_BACKEND,
        Code.UNKNOWN_SPLIT_MATCH,
        Code.BACKEND_PORT,
        Code.BACKEND_NOT_ALLOWED,
        Code.NO_ENDPOINTS,
        Code.UNKNOWN_PRIMARY,
        Code.UNKNOWN_UPSTREAM,
        Code.UNKNOWN_EGRESS,
        Code.UNKNOWN_INGRESS_BACKEND,
        Code.UNKNOWN_INGRESS_SOURCE,
        Code.UNKNOWN_INGRESS_MATCH,
        Code.EGRESS_MATCH,
        Code.EGRESS_SOURCES,
        Code.EGRESS_LIMITS,
        Code.UNKNOWN_HOST,
        Code.UNKNOWN_RETRY_SOURCE,
        Code.UNKNOWN_RETRY_DESTINATION,
        Code.UNKNOWN_COLLECTOR,
        Code.SELECTS_NOBODY,
        Code.UNKNOWN_ROUTED_SERVICE,
        Code.UNKNOWN_ROUTE_MATCH,
        Code.NO_MIRROR,
        Code.UNKNOWN_UPSTREAM_SERVICE,
        Code.HEALTH_NOT_ADMITTED,
        Code.UNKNOWN_TLS_ACCOUNT,
        Code.UNKNOWN_TLS_PORT,
        Code.UNKNOWN_PLAIN_SOURCE,
        Code.UNKNOWN_PLAIN_MATCH,
        Code.UNKNOWN_ASKING_ACCOUNT,
        Code.UNKNOWN_ASKING_PORT,
        Code.UNKNOWN_AUTHORIZER,
        Code.ROUTE_NOT_ACCEPTED,
        Code.UNRESOLVED_REFERENCE,
        Code.SHARE_DENIED,
        Code.UNKNOWN_GATEWAY_CLASS,
        Code.UNKNOWN_GATEWAY,
        Code.GATEWAY_DENIED,
        Code.NO_CERTIFICATE,
        Code.BACKEND_TLS_TARGET,
        Code.BACKEND_TLS_AUTHORITY,
        Code.BACKEND_TLS_UNUSED,
        Code.UNKNOWN_PARENT_GATEWAY,
        Code.ADDRESS_NOT_USABLE,
        Code.UNSERVED_GATEWAY,
        Code.SET_NOT_ATTACHED,
        Code.UNKNOWN_CLIENT_TARGET,
    }
)
"""Codes of a reference to a missing object, part of an object, Pod or identity."""

FOLLOWING: Final[Mapping[str, frozenset[Code]]] = {
    Code.ALL_REFUSED: frozenset({Code.UNKNOWN_ROUTE, Code.UNKNOWN_MATCH}),
    Code.ZERO_WEIGHTS: frozenset({Code.UNKNOWN_BACKEND}),
}
"""Codes caused by the object itself, or by a missing object with one of these codes."""


def may_pass(problem: Problem) -> bool:
    """Return whether the problem may disappear when a missing object is created."""
    return problem.code in MISSING or problem.code in FOLLOWING


def passing(problems: Iterable[Problem]) -> frozenset[Problem]:
    """Return the temporary ones of these problems.

    A problem with a code of FOLLOWING counts only beside a problem of the same object with one of the causing
    codes.
    """
    result = [problem for problem in problems if may_pass(problem)]
    there = {(problem.key, problem.code) for problem in result}
    return frozenset(problem for problem in result if problem.code in MISSING or _follows(problem, there))


def _follows(problem: Problem, there: Container[tuple[ObjectKey | None, str]]) -> bool:
    return any((problem.key, code) in there for code in FOLLOWING[problem.code])
