"""Expected results of requests, in words and as a predicate, from the decisions of the oracle."""

from collections.abc import Callable

from catalog.oracle.decide import Answer, Decision, LocalReply, Request, arriving, at_server, places
from catalog.store.gateway import ROUTE_KINDS
from catalog.store.view import View
from tests.differential.routes.effects import RuleEffect, outcome_of
from tests.differential.topology import is_http
from tests.differential.wire import Answered


def expectation(view: View, decision: Decision, request: Request) -> tuple[str, Callable[[Answered], bool]]:
    """Return the expected result in words and as a predicate."""
    by = {
        identity.service_account for share in decision.shares if share.weight for identity in share.admitted
    }
    refused = refusals(view, request) | _of_shares(view, decision)
    effect = RuleEffect.of(view, request)
    outcome = outcome_of(request, None) if effect is None else effect.outcome

    def is_yes(seen: Answered) -> bool:
        statuses = set() if outcome.local else {outcome.status}
        by_server = seen.by in by and seen.status in (statuses | {200} if outcome.may_pass else statuses)
        return by_server or (bool(outcome.local) and seen == Answered(outcome.local))

    if effect is not None and effect.grants_preflight:
        # Whether a sidecar permits what no backend could answer, or only some, is not specified.
        others = set() if decision.turned_down is None else {decision.turned_down.status}
        others |= set() if decision.answer is Answer.ALLOWED else set(refused)
        return "a permission", lambda seen: seen.status in {200, 204, *others} and not seen.by
    if effect is not None and effect.denies_preflight:
        # A sidecar may answer by itself, or pass the request on.
        own = {200, 204, 403, outcome.local, *refused, 500, 503}
        return "no permission", lambda seen: is_yes(seen) or (seen.status in own and not seen.by)
    match decision.answer:
        case Answer.ALLOWED:
            return f"allowed, by {sorted(by)}", is_yes
        case Answer.REFUSED if decision.turned_down is not None:
            status = decision.turned_down.status
            return f"turned down with {status}", lambda seen: seen == Answered(status)
        case Answer.REFUSED:
            return "refused", lambda seen: seen.status in refused
        case Answer.UNREACHABLE:
            return "unreachable", lambda seen: seen.status in (0, 503)
        case Answer.DEPENDS:
            return f"allowed by {sorted(by)}, or refused", lambda seen: is_yes(seen) or seen.status in refused


def _of_shares(view: View, decision: Decision) -> frozenset[int]:
    """Return the answers of the client's sidecar for single shares of a route: broken, or without anyone."""
    if not any(key.kind in ROUTE_KINDS for key in decision.because):
        return frozenset()
    empty = any(share.weight and not share.admitted and not share.refused for share in decision.shares)
    broken = () if decision.broken is None else (decision.broken,)
    return frozenset({*broken, *((503, 0) if empty else ()), *((0,) if broken else ())})


def refusals(view: View, request: Request) -> frozenset[int]:
    """Return the forms in which the called sidecars may refuse: by their rules, or in any case."""
    if not is_http(request.port):
        return frozenset({0})
    arrived = arriving(view, request)
    if isinstance(arrived, LocalReply):
        return frozenset()
    keys = view.services
    there = {place for key in keys for port in view.services[key].ports for place in places(view, key, port)}
    down = [at_server(view, arrived, place) for place in there]
    return frozenset({403, *(item.status for item in down if isinstance(item, LocalReply))})
