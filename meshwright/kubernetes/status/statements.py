"""What there is to be said of an object, in Kubernetes' words: a reason in one word, and a message."""

import enum
from collections.abc import Iterable, Mapping
from typing import Final

from catalog.lint.codes import Code as Lint
from meshwright.delivery.quarantine.problems import LEFT_OUT, REJECTED
from meshwright.mesh.kinds import WORKLOAD
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.sidecars.codes import Code as Sidecar
from meshwright.specs.codes import Code as Spec

LONGEST: Final = 1000
"""Bytes of a message: the API takes 1024 of an Event's."""

WITH_STATUS: Final = frozenset({WORKLOAD})
"""The kinds whose objects have conditions; of all others Events tell."""

_OTHERS: Final = frozenset({"", "apps", "batch", "discovery.k8s.io"})
"""The groups of Kubernetes' own kinds."""

_RELIED_ON: Final = frozenset({Lint.SERVICE_FIELD_WITHOUT_EFFECT})
"""Problems of fields that a cluster obeys and sidecars do not: their owners rely on them."""

TOLD: Final = 3
"""Problems that a condition tells; of the others it says how many they are."""


class Aspect(enum.StrEnum):
    """The conditions of an object, by what they answer.

    ACCEPTED: can all of it be read, and is it in force? PROGRAMMED: do the proxies have it?
    CONFLICTED: does another object, or another source, say something else?
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
            Lint.OVERRULED_SPLIT,
            Lint.OVERRULED_INGRESS,
            Lint.SEVERAL_CONFIGS,
        ),
        Aspect.CONFLICTED,
    ),
}


def aspect(problem: Problem) -> Aspect:
    """Return which condition a problem belongs to."""
    return _ASPECTS.get(problem.code, Aspect.ACCEPTED)


def reason(code: str) -> str:
    """Return a code as the API takes reasons: `MW2001` as it is, `resource-rejected` as ResourceRejected."""
    return "".join(word[:1].upper() + word[1:] for word in code.split("-"))


def is_told(problem: Problem) -> bool:
    """Say whether an owner is told of a problem unasked: not of what is merely worth knowing.

    Who wrote a policy wants to know what to look at. Who wrote a Service or a Pod may not know of a mesh, and
    is told what is not in force: errors, and fields that have no effect any more, however little they matter.
    """
    if problem.code in _RELIED_ON:
        return True
    if problem.key is not None and problem.key.kind.group in _OTHERS:
        return problem.severity is Severity.ERROR
    return problem.severity is not Severity.INFO


def message(problems: Iterable[Problem]) -> str:
    """Return the first problems as one text, the worst first, and how many more there are."""
    found = sorted({(each.severity is not Severity.ERROR, each.code, each.said) for each in problems})
    said = "; ".join(f"{code}: {words}" for _, code, words in found[:TOLD])
    return bounded(f"{said}; and {len(found) - TOLD} more" if len(found) > TOLD else said)


def bounded(text: str) -> str:
    """Return a text as one line that is not too long, in UTF-8."""
    line = " ".join(text.split())
    encoded = line.encode()
    return line if len(encoded) <= LONGEST else f"{encoded[: LONGEST - 3].decode(errors='ignore')}..."
