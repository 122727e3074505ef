"""The steps of a request as lines for people, and as JSON."""

from meshwright.agent.calling.outcomes import RequestOutcome
from meshwright.cli.connectivity.facts import Facts
from meshwright.cli.connectivity.steps import Point, Step, first_difference, status
from meshwright.cli.connectivity.verdict import Verdict
from meshwright.cli.errors import Status
from meshwright.cli.printing.lines import joined

_VERDICT, _POINT = 8, 17
"""Widths of the columns."""


def text(facts: Facts, steps: tuple[Step, ...]) -> str:
    """Return the verdict, the first step that differs from policy, and all steps."""
    lines = [_headline(facts, steps)]
    if (first := first_difference(steps)) is not None:
        lines += [f"differs first at the {first.point}: {first.judged.text}", f"next: {first.judged.do}"]
    lines.append("")
    for step in steps:
        judged = step.judged
        lines.append(f"{judged.verdict:<{_VERDICT}} {step.point:<{_POINT}} {judged.text}")
        if judged.do and step is not first:
            lines.append(f"{'':<{_VERDICT + _POINT + 2}}next: {judged.do}")
    return joined(lines)


def document(facts: Facts, steps: tuple[Step, ...], seen: RequestOutcome | None) -> dict[str, object]:
    """Return the JSON document; `request` is the outcome of the real request, or null without one."""
    first = first_difference(steps)
    return {
        "from": facts.caller,
        "to": facts.called,
        "method": facts.method if facts.is_http else "",
        "path": facts.path if facts.is_http else "",
        "policy": facts.policy.value,
        "headline": _headline(facts, steps),
        "agrees": {Status.YES: "yes", Status.NO: "no", Status.UNKNOWN: "unknown"}[status(steps)],
        "differs_first": None if first is None else _step(first),
        "steps": [_step(step) for step in steps],
        "request": None if seen is None else _seen(seen),
    }


def _headline(facts: Facts, steps: tuple[Step, ...]) -> str:
    message = "unreachable, but not because of policy" if facts.is_withheld else f"{facts.policy} by policy"
    request = next((step.judged.verdict for step in steps if step.point is Point.REQUEST), None)
    match status(steps):
        case Status.YES:
            return f"{facts}: {message}, and the mesh agrees"
        case Status.NO if request is Verdict.FAILED:
            return f"{facts}: {message}, but the mesh behaves otherwise"
        case Status.NO:
            return f"{facts}: {message}; some steps have failed"
        case Status.UNKNOWN:
            return f"{facts}: {message}, but not verified"


def _step(step: Step) -> dict[str, object]:
    judged = step.judged
    return {"point": step.point.value, "verdict": judged.verdict.value, "text": judged.text, "do": judged.do}


def _seen(seen: RequestOutcome) -> dict[str, object]:
    return {
        "outcome": seen.outcome.value,
        "where": seen.where,
        "status": seen.status,
        "denied": seen.denied,
        "flag": seen.flag,
        "details": seen.details,
        "answered_by": None if seen.side is None else seen.side.value,
        "words": seen.words,
        "milliseconds": seen.milliseconds,
    }
