"""The step about what becomes of a request on its way to a service."""

from collections.abc import Iterator

from catalog.explain.steps import Step, origin_of
from catalog.oracle.requests import Request
from catalog.oracle.routing import rule_for
from catalog.store.view import View
from mesh.kinds import ROUTE_POLICY
from mesh.routing import RouteActions
from mesh.service import ServicePort


def of_request(view: View, request: Request, port: ServicePort) -> Iterator[Step]:
    """Yield what the rule of a RoutePolicy that fits a request does with it."""
    found = rule_for(view, request, port)
    if found is None:
        return
    policy, rule = found
    number = policy.rules.index(rule)
    for each in said(rule.actions):
        text = f"RoutePolicy {policy.key}, rules[{number}], has the client's sidecar {each}"
        yield Step(text, origin_of(view, ROUTE_POLICY, policy.key))


def said(actions: RouteActions) -> Iterator[str]:
    """Yield what is done, each in a few words."""
    if actions.timeout is not None:
        yield f"answer 504 if its answer has not ended after {actions.timeout.total_seconds():g} s"
