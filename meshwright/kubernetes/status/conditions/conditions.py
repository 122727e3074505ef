"""Conditions in the status of an object, in the common form of all kinds in Kubernetes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Self

from meshwright.kubernetes.status.rollouts import Progress
from meshwright.kubernetes.status.statements import Aspect, aspect, bounded, message, reason
from meshwright.mesh.problems.problem import Problem, Severity

TRUE: Final = "True"
FALSE: Final = "False"

_APPLIED: Final = "Applied"
_PENDING: Final = "Pending"
_NOBODY: Final = "NoProxyConcerned"
_NOT_IN_FORCE: Final = "NotInForce"


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition in an object's status. `generation` is the observed one; `since` the last transition."""

    type: str
    status: str
    reason: str
    message: str
    generation: int = 0
    since: datetime | None = None

    @classmethod
    def parse(cls, raw: object) -> Self | None:
        """Parse a condition from the API server; return None for anything else."""
        if not isinstance(raw, Mapping) or not isinstance(raw.get("type"), str):
            return None
        generation = raw.get("observedGeneration")
        kind, status, reason, text = (
            str(raw.get(name) or "") for name in ("type", "status", "reason", "message")
        )
        since = _moment(raw.get("lastTransitionTime"))
        return cls(kind, status, reason, text, generation if isinstance(generation, int) else 0, since)

    def in_transition(self, before: "Condition | None", now: datetime) -> "Condition":
        """Return the condition with its last transition: as in `before` if `status` is equal, else `now`."""
        if before is not None and before.status == self.status and before.since is not None:
            return replace(self, since=before.since)
        return replace(self, since=now.replace(microsecond=0))

    def written(self) -> dict[str, object]:
        """Return the condition as JSON for the API."""
        since = self.since or datetime.fromtimestamp(0, UTC)
        return {
            "type": self.type,
            "status": self.status,
            "reason": self.reason,
            "message": self.message,
            "observedGeneration": self.generation,
            "lastTransitionTime": since.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }


Conditions = tuple[Condition, ...]


def read(raw: object) -> Conditions:
    """Return the conditions in an object's status, only the types that Meshwright writes."""
    status = raw.get("status") if isinstance(raw, Mapping) else None
    result = status.get("conditions") if isinstance(status, Mapping) else None
    read = [Condition.parse(item) for item in result] if isinstance(result, Sequence) else []
    return tuple(condition for condition in read if condition is not None and condition.type in tuple(Aspect))


def conditions(
    problems: Iterable[Problem],
    progress: Progress | None,
    generation: int,
    before: Conditions,
    now: datetime,
    *,
    server: str,
    in_force: bool = True,
    settled: bool = True,
) -> Conditions:
    """Return the new conditions of an object; `before` are the conditions in its status.

    `in_force` is True if this or an older version of the object is in force. `progress` is the rollout of the
    last change at the proxies of `server`. It is None if no change was seen since the start; then the
    condition of the same generation stays. Until `settled`, a rejection stays too, because some proxies are
    not connected yet.
    """
    by: dict[Aspect, list[Problem]] = {item: [] for item in Aspect}
    for problem in problems:
        by[aspect(problem)].append(problem)
    known = {condition.type: condition for condition in before}
    programmed = known.get(Aspect.PROGRAMMED)
    answer = (
        _accepted(by[Aspect.ACCEPTED], () if in_force else by[Aspect.CONFLICTED], in_force=in_force),
        _conflicted(by[Aspect.CONFLICTED]),
        _programmed(by[Aspect.PROGRAMMED], progress, generation, programmed, server, settled=settled)
        if in_force
        else Condition(Aspect.PROGRAMMED, FALSE, _NOT_IN_FORCE, "all parts of the object are out of force"),
    )
    return tuple(
        replace(condition, generation=generation).in_transition(known.get(condition.type), now)
        for condition in answer
    )


def _accepted(problems: Sequence[Problem], instead: Sequence[Problem], *, in_force: bool) -> Condition:
    errors = [problem for problem in problems if problem.severity is Severity.ERROR]
    if errors:
        return Condition(Aspect.ACCEPTED, FALSE, _first(errors), message(problems))
    if not in_force:
        text = message(instead) if instead else "all parts of the object are out of force"
        return Condition(Aspect.ACCEPTED, FALSE, _first(instead) if instead else _NOT_IN_FORCE, text)
    warned = [problem for problem in problems if problem.severity is Severity.WARNING]
    return Condition(
        Aspect.ACCEPTED, TRUE, "Accepted", message(warned) if warned else "the whole object is in force"
    )


def _conflicted(problems: Sequence[Problem]) -> Condition:
    if problems:
        return Condition(Aspect.CONFLICTED, TRUE, _first(problems), message(problems))
    return Condition(
        Aspect.CONFLICTED, FALSE, "NoConflict", "other objects and sources do not conflict with this object"
    )


def _programmed(
    problems: Sequence[Problem],
    progress: Progress | None,
    generation: int,
    before: Condition | None,
    server: str,
    *,
    settled: bool,
) -> Condition:
    if any(problem.severity is Severity.ERROR for problem in problems):
        return Condition(Aspect.PROGRAMMED, FALSE, _first(problems), message(problems))
    is_known = progress is None and before is not None and before.generation == generation
    if before is not None and is_known and (not settled or before.reason in (_APPLIED, _NOBODY)):
        return before
    return _applied(progress or Progress(0, 0), problems, server)


def _applied(progress: Progress, problems: Sequence[Problem], server: str) -> Condition:
    server = progress.where or server
    warned = f"; {message(problems)}" if problems else ""
    if progress.unknown:
        warned = f"; unknown at {', '.join(progress.unknown)}{warned}"
    elif not progress.total:
        text = bounded(f"no proxy connected to {server} needed a change{warned}")
        return Condition(Aspect.PROGRAMMED, TRUE, _NOBODY, text)
    text = bounded(f"applied by {progress.applied} of {progress.total} proxies connected to {server}{warned}")
    done = progress.is_done
    return Condition(Aspect.PROGRAMMED, TRUE if done else FALSE, _APPLIED if done else _PENDING, text)


def _first(problems: Iterable[Problem]) -> str:
    """Return the condition reason for the most severe problem."""
    _, code = min((problem.severity is not Severity.ERROR, problem.code) for problem in problems)
    return reason(code)


def differ(reported: Conditions, before: Conditions) -> bool:
    """Return whether any condition differs from the one in the cluster and must be written."""
    known = {condition.type: condition for condition in before}
    return any(known.get(condition.type) != condition for condition in reported)


def differ_in_words(reported: Conditions, before: Conditions) -> bool:
    """Return whether status, reason or message differ, except in a condition of a pending rollout."""
    known = {condition.type: (condition.status, condition.reason, condition.message) for condition in before}
    return any(
        known.get(condition.type) != (condition.status, condition.reason, condition.message)
        for condition in reported
        if condition.reason != _PENDING
    )


def _moment(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
