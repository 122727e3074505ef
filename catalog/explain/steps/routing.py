"""Steps about the actions of a RoutePolicy on a request."""

from collections.abc import Iterator

from catalog.explain.steps.step import Step, origin_of
from catalog.oracle.request.request import Request
from catalog.oracle.routing import rule_for
from catalog.store.view import View
from meshwright.mesh.kinds import ROUTE_POLICY
from meshwright.mesh.policies.routing import HeaderChanges, RouteActions
from meshwright.mesh.service import ServicePort


def of_request(view: View, request: Request, port: ServicePort) -> Iterator[Step]:
    """Yield a step for each action of the RoutePolicy rule that applies to a request."""
    result = rule_for(view, request, port)
    if result is None:
        return
    policy, rule = result
    number = policy.rules.index(rule)
    for item in action_clauses(rule.actions):
        text = f"RoutePolicy {policy.key}, rules[{number}], makes the client's sidecar {item}."
        yield Step(text, origin_of(view, ROUTE_POLICY, policy.key))


def action_clauses(actions: RouteActions) -> Iterator[str]:
    """Yield each action as a clause, for example `delay 10 % of such requests by 2 s`."""
    if actions.mirror is not None:
        mirror = actions.mirror
        yield (
            f"send copies of {mirror.percent:g} % of such requests to Service {mirror.service}, "
            "if policy admits them"
        )
    if actions.delay is not None:
        delay = actions.delay
        yield f"delay {delay.percent:g} % of such requests by {delay.duration.total_seconds():g} s"
    if actions.abort is not None:
        yield f"answer {actions.abort.percent:g} % of such requests itself, with {actions.abort.status}"
    for message, changes in (
        ("the request", actions.request_headers),
        ("the response", actions.response_headers),
    ):
        if text := "; ".join(_changed(changes)):
            yield f"change the headers of {message}: {text}"
    if actions.timeout is not None:
        yield f"answer 504 if the response has not ended after {actions.timeout.total_seconds():g} s"


def _changed(changes: HeaderChanges) -> Iterator[str]:
    # Values may be secrets of the application, so only names are shown.
    for word, names in (
        ("removed", changes.remove),
        ("set", tuple(name for name, _ in changes.put)),
        ("added", tuple(name for name, _ in changes.add)),
    ):
        if names:
            yield f"{', '.join(names)} {word}"
