"""Reason and message of a condition or an Event, made from the problems of an object."""

import enum
from collections.abc import Iterable, Mapping
from typing import Final

from catalog.lint.codes import Code as Lint
from meshwright.delivery.quarantine.problems import LEFT_OUT, REJECTED
from meshwright.mesh.kinds import CLIENT_TRAFFIC_POLICY, WORKLOAD
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.sidecars.codes import Code as Sidecar
from meshwright.specs.codes import Code as Spec

LONGEST: Final = 1000
"""Bytes of a message. The API accepts 1024 bytes in an Event."""

WITH_STATUS: Final = frozenset({CLIENT_TRAFFIC_POLICY, WORKLOAD})
"""The kinds whose objects have conditions. Events report on all other kinds."""

_OTHERS: Final = frozenset({"", "apps", "batch", "discovery.k8s.io"})
"""API groups of the kinds of Kubernetes."""

_RELIED_ON: Final = frozenset({Lint.SERVICE_FIELD_WITHOUT_EFFECT})
"""Problems of fields that affect the cluster but not the sidecars. Owners rely on such fields."""

TOLD: Final = 3
"""Maximum problems in a message, which also gives the number of the others."""


class Aspect(enum.StrEnum):
    """Types of the conditions.

    ACCEPTED: the object is valid and in force. PROGRAMMED: the proxies have applied the object. CONFLICTED:
    another object or another source contradicts the object.
    """

    ACCEPTED = "Accepted"
    PROGRAMMED = "Programmed"
    CONFLICTED = "Conflicted"


_ASPECTS: Final[Mapping[str, Aspect]] = {
    **dict.fromkeys((REJECTED, LEFT_OUT, "workload-not-placed", *Sidecar), Aspect.PROGRAMMED),
    **dict.fromkeys(
        (
            Spec.DUPLICATE_OBJECT,
            Spec.DISPUTED,
            Lint.SHARED_ADDRESS,
            Lint.UUID_TWICE,
            Lint.LISTENER_CONFLICT,
            Lint.OVERRULED_CLIENT_TRAFFIC,
            Lint.OVERRULED_SPLIT,
            Lint.OVERRULED_INGRESS,
            Lint.SEVERAL_CONFIGS,
        ),
        Aspect.CONFLICTED,
    ),
}


def aspect(problem: Problem) -> Aspect:
    """Return the condition type of a problem."""
    return _ASPECTS.get(problem.code, Aspect.ACCEPTED)


def reason(code: str) -> str:
    """Return a problem code as the reason of a condition or Event: `resource-rejected`: ResourceRejected."""
    return "".join(word[:1].upper() + word[1:] for word in code.split("-"))


def is_reported(problem: Problem) -> bool:
    """Return whether Events report the problem.

    For policies, errors and warnings are reported. The owner of a Service or a Pod may not know of the mesh.
    For the kinds of Kubernetes, therefore, only errors are reported, and fields without effect on which
    owners rely.
    """
    if problem.code in _RELIED_ON:
        return True
    if problem.key is not None and problem.key.kind.group in _OTHERS:
        return problem.severity is Severity.ERROR
    return problem.severity is not Severity.INFO


def message(problems: Iterable[Problem]) -> str:
    """Return the most severe problems as one message, with the number of the others."""
    result = sorted(
        {(problem.severity is not Severity.ERROR, problem.code, problem.clause) for problem in problems}
    )
    text = "; ".join(f"{code}: {words}" for _, code, words in result[:TOLD])
    return bounded(f"{text}; and {len(result) - TOLD} more" if len(result) > TOLD else text)


def bounded(text: str) -> str:
    """Return the text as one line of at most LONGEST bytes in UTF-8."""
    line = " ".join(text.split())
    encoded = line.encode()
    return line if len(encoded) <= LONGEST else f"{encoded[: LONGEST - 3].decode(errors='ignore')}..."
