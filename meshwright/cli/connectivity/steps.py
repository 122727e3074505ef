"""The steps of a request, from policy to the real answer, and the first step that differs from policy."""

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from catalog.oracle.decide import Answer
from meshwright.admin.pages.calls.sidecars import SidecarState
from meshwright.agent.calling.outcomes import RequestOutcome
from meshwright.cli.connectivity import request
from meshwright.cli.connectivity.facts import Agent, Endpoint, Facts, Sidecar
from meshwright.cli.connectivity.verdict import StepResult, Verdict
from meshwright.cli.errors import Status

NAMED: Final = 5
"""Most sidecars with problems to name on each side."""


class Point(enum.StrEnum):
    """The subject of a step of `meshwright connectivity`, in the order of the request's path."""

    POLICY = "policy"
    AGENT = "agent"
    CALLER = "caller's sidecar"
    ENDPOINTS = "endpoints"
    CALLED = "called sidecar"
    REQUEST = "request"


@dataclass(frozen=True, slots=True)
class Step:
    """A step of `meshwright connectivity`: the subject and the result."""

    point: Point
    judged: StepResult


def steps(facts: Facts, agent: Agent | None, seen: RequestOutcome | None) -> tuple[Step, ...]:
    """Judge every step; `seen` is None if no request was to be made."""
    result: list[tuple[Point, Iterable[StepResult]]] = [
        (Point.POLICY, (_policy(facts),)),
        (Point.AGENT, () if agent is None else (_agent(agent),)),
        (Point.CALLER, _sidecars(facts.callers, facts.caller, facts.because)),
        (Point.ENDPOINTS, (_endpoints(facts),)),
        (Point.CALLED, _sidecars(facts.servers, "", facts.because)),
        (Point.REQUEST, () if seen is None else (request.judged(facts, seen),)),
    ]
    return tuple(Step(point, step_result) for point, judged in result for step_result in judged)


def first_difference(result: Iterable[Step]) -> Step | None:
    """Return the first step at which reality differs from policy."""
    return next((step for step in result if step.judged.verdict is Verdict.FAILED), None)


def status(result: Iterable[Step]) -> Status:
    """Return the command's exit status: YES if every step agrees with policy, also with a denial."""
    verdicts = {step.judged.verdict for step in result}
    if Verdict.FAILED in verdicts:
        return Status.NO
    return Status.UNKNOWN if Verdict.UNKNOWN in verdicts else Status.YES


def _policy(facts: Facts) -> StepResult:
    match facts.policy:
        case Answer.ALLOWED:
            by = f", by {', '.join(facts.because)}" if facts.because else ""
            return StepResult(Verdict.OK, f"allowed{by}")
        case Answer.DEPENDS:
            return StepResult(
                Verdict.UNKNOWN, facts.conclusion, "for the conditions, step by step: `meshwright explain`"
            )
        case _:
            return StepResult(Verdict.OK, facts.conclusion)


def _agent(agent: Agent) -> StepResult:
    who = f"the agent of {agent.proxy or 'an unknown proxy'} at {agent.at}"
    if agent.trouble:
        return StepResult(Verdict.FAILED, f"{who}: {agent.trouble}", agent.do)
    if agent.reached is None:
        return StepResult(
            Verdict.UNKNOWN,
            f"{who} is still connecting to its control plane",
            "repeat the command in a moment",
        )
    return StepResult(Verdict.OK, f"{who} is ready and connected to its control plane")


def _sidecars(sidecars: tuple[Sidecar, ...], caller: str, because: tuple[str, ...]) -> Iterator[StepResult]:
    """Yield one result for each sidecar with a problem, and one for all others together."""
    if not sidecars and caller:
        yield StepResult(
            Verdict.UNKNOWN,
            f"the control plane does not know a sidecar of {caller}",
            "name a running workload in --from",
        )
    judged = [(sidecar, _trouble(sidecar)) for sidecar in sidecars]
    well = [sidecar for sidecar, trouble in judged if trouble is None]
    ill = [trouble for _, trouble in judged if trouble is not None]
    yield from ill[:NAMED]
    if len(ill) > NAMED:
        yield StepResult(
            Verdict.FAILED,
            f"{len(ill) - NAMED} more are not in sync",
            "for the whole list: `meshwright proxies`",
        )
    if len(well) == 1:
        yield StepResult(Verdict.OK, f"{well[0]} has acknowledged its configuration{_last(well[0], because)}")
    elif well:
        names = ", ".join(sidecar.proxy for sidecar in well[:NAMED]) + (", ..." if len(well) > NAMED else "")
        yield StepResult(Verdict.OK, f"{len(well)} sidecars have acknowledged their configuration: {names}")


def _last(well: Sidecar, because: tuple[str, ...]) -> str:
    """Return the last push of a deciding object to the sidecar as text; empty without an acknowledged one."""
    if well.brought is None or well.brought.answer != "ack":
        return ""
    return f", the last change of {', '.join(because)} as {well.brought.type} of {well.brought.at}"


def _trouble(sidecar: Sidecar) -> StepResult | None:
    """Return the problem of a sidecar, or None without one."""
    name = sidecar.proxy
    retried = f"correct the named object; to send the resource again at once: `meshwright proxy retry {name}`"
    if sidecar.state is SidecarState.IN_STEP:
        return StepResult(Verdict.FAILED, "; ".join(sidecar.lacks), retried) if sidecar.lacks else None
    words = "; ".join((sidecar.cause, *(item for item in sidecar.rejected if item not in sidecar.cause)))
    return StepResult(Verdict.FAILED, f"{sidecar} {words}", _next(sidecar, retried))


_STATUS: Final = (
    "run `meshwright agent status` on its machine (for a Pod: `kubectl exec POD -c "
    "meshwright-sidecar -- meshwright agent status`)"
)


def _next(sidecar: Sidecar, retried: str) -> str:
    match sidecar.state:
        case SidecarState.NOT_CONNECTED:
            return f"for the reason, {_STATUS}"
        case SidecarState.HELD:
            return f"for its state: `meshwright proxy show {sidecar.proxy}`"
        case SidecarState.BEHIND:
            shown = f"see its history: `meshwright proxy show {sidecar.proxy} history`"
            return f"repeat the command in a moment; if the state lasts, {shown}"
        case SidecarState.FAILED:
            return "correct the named problem; `meshwright lint` names the object"
        case _:
            return retried


def _endpoints(facts: Facts) -> StepResult:
    held = [f"{item.address} gets no traffic: {item.withheld}" for item in facts.endpoints if item.withheld]
    ready = [endpoint for endpoint in facts.endpoints if not endpoint.withheld]
    if facts.turned_down is not None:
        return StepResult(Verdict.OK, "not needed: the caller's sidecar answers the request itself")
    if not ready:
        text = "; ".join(held[:NAMED]) or f"{facts.called} has no endpoints"
        return StepResult(Verdict.FAILED, text, _admitting(facts.endpoints))
    lacking = [endpoint.address for endpoint in ready if not endpoint.is_known_to_caller]
    # For a denied call, missing endpoints are right.
    if lacking and facts.policy is Answer.ALLOWED:
        text = f"the caller's sidecar lacks {', '.join(lacking[:NAMED])}"
        return StepResult(Verdict.FAILED if facts.callers else Verdict.UNKNOWN, text, _ENDPOINTS_SHOWN)
    message = (
        "the caller's sidecar has none of them, because policy denies the call"
        if lacking
        else _known_to_callers(ready)
    )
    return StepResult(Verdict.OK, "; ".join((message, *held[:NAMED])))


_ENDPOINTS_SHOWN: Final = "for the endpoints of the sidecar: `meshwright proxy show PROXY endpoints`"


def _known_to_callers(ready: list[Endpoint]) -> str:
    names = ", ".join(endpoint.address for endpoint in ready[:NAMED]) + (
        ", ..." if len(ready) > NAMED else ""
    )
    return f"the caller's sidecar has {len(ready)}: {names}"


def _admitting(there: tuple[Endpoint, ...]) -> str:
    if not there:
        return (
            "add a Workload that the Service selects; `meshwright lint` shows why it does not select any now"
        )
    return f"start the sidecar of the endpoint; for its progress, {_STATUS}"
