"""Explanations of requests from outside to a gateway: the listener, the route, and the backends.

Access has two parts: the gateway answers every client, and the backends admit the gateway's ServiceAccount
or refuse the gateway. For example, the source of a missing TrafficTarget is the gateway's ServiceAccount.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus

from catalog.explain.explanation import answering_steps
from catalog.explain.remedy import Manifest, admitting_manifests
from catalog.explain.steps.gateway import decision_of
from catalog.explain.steps.step import Step, origin_of, origin_of_object
from catalog.oracle import decide as oracle
from catalog.oracle.decide import Answer, LocalReply, Place
from catalog.oracle.edge import (
    EdgeRequest,
    as_call,
    calls_of,
    fitting_at_edge,
    has_requests,
    listener_for,
    listeners_at,
    routed_at_edge,
)
from catalog.oracle.gateway import RoutedRequest, RouteMatch, Way
from catalog.oracle.request.request import Request
from catalog.relations.backends.endpoints import endpoints
from catalog.relations.gateways.listeners import listener_verdicts
from catalog.relations.gateways.route_listeners import gateway_verdicts, routes_at_listener
from catalog.relations.references import resolved_rules_at_gateways
from catalog.store.gateway import gateways as all_gateways
from catalog.store.gateway import route_of, routes_by_gateway, workloads_by_gateway
from catalog.store.view import View
from meshwright.mesh.gateway.gateways import Listener
from meshwright.mesh.gateway.hostnames import most_specific
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import GATEWAY
from meshwright.mesh.names import Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey


@dataclass(frozen=True, slots=True)
class EdgeExplanation:
    """The answer to a request at a gateway; `missing` are manifests which would admit the gateway."""

    asked: EdgeRequest
    answer: Answer
    headline: str
    because: tuple[ObjectKey, ...]
    steps: tuple[Step, ...]
    missing: tuple[Manifest, ...] = ()


@dataclass
class _Account:
    """Steps of one explanation; the last step has the outcome."""

    view: View
    asked: EdgeRequest
    steps: list[Step] = field(default_factory=list)
    because: list[ObjectKey] = field(default_factory=list)

    def ended(
        self, answer: Answer, headline: str, text: str, missing: tuple[Manifest, ...] = ()
    ) -> EdgeExplanation:
        """Return the explanation, with a last step."""
        steps = (*self.steps, Step(text))
        return EdgeExplanation(self.asked, answer, headline, tuple(self.because), steps, missing)


def default_port(view: View, gateway: PolicyKey) -> Port | None:
    """Return the first port of a gateway's listeners, for a question without a port."""
    return next((item.listener.port for item in listener_verdicts(view, gateway) if item.in_force), None)


def explain_edge(view: View, asked: EdgeRequest) -> EdgeExplanation:
    """Explain a request from outside to a gateway. The function is pure."""
    account = _Account(view, asked)
    key = asked.gateway
    if not listener_verdicts(view, key):
        why = "has another controller" if key in all_gateways(view) else "does not exist"
        text = f"Gateway {key} {why}, so the mesh does not serve the gateway."
        return account.ended(Answer.UNREACHABLE, "unreachable", text)
    clients = sorted({view.workloads[item].identity for item in workloads_by_gateway(view).get(key, ())})
    if not clients:
        text = f"Gateway {key} lacks a workload: `spec.gateway` of a Workload must name the Gateway."
        return account.ended(Answer.UNREACHABLE, "unreachable", text)
    if not listeners_at(view, key, asked.port):
        account.steps += _listeners(view, key)
        text = f"The gateway lacks a listener in force at port {asked.port}, so connections are refused."
        return account.ended(Answer.UNREACHABLE, "unreachable", text)
    listener = listener_for(view, asked)
    if listener is None:
        account.steps += _listeners(view, key)
        text = f"The listeners at port {asked.port} are for other hosts than {asked.host or 'an empty one'}."
        return account.ended(Answer.REFUSED, "refused: 404", f"{text} The gateway answers 404.")
    return _at_listener(account, listener, clients)


def _at_listener(account: _Account, listener: Listener, clients: list[ServiceIdentity]) -> EdgeExplanation:
    view, asked = account.view, account.asked
    hosts = listener.hostname or "all other hosts"
    text = f"Listener {listener.name} ({listener.protocol}, port {listener.port}) answers for {hosts}."
    account.steps.append(Step(text, origin_of(view, GATEWAY, asked.gateway)))
    account.because.append(ObjectKey.from_name(GATEWAY, asked.gateway))
    account.steps += _other_routes(view, asked, listener)
    fitting = fitting_at_edge(view, asked, listener)
    if not fitting:
        return _without_match(account, listener)
    account.steps += decision_of(view, fitting)
    account.because.append(fitting[0].key)
    routed = routed_at_edge(view, asked, fitting[0])
    account.steps += _broken(view, fitting[0])
    if routed.reply is not None:
        return _own_answer(account, routed.reply)
    # One ServiceAccount for all workloads of a gateway is usual.
    if len(clients) > 1:
        others = ", ".join(map(str, clients[1:]))
        account.steps.append(Step(f"Workloads of other ServiceAccounts serve the gateway too: {others}."))
    return _at_backends(account, routed, clients[0])


def _listeners(view: View, gateway: PolicyKey) -> Iterator[Step]:
    for verdict in listener_verdicts(view, gateway):
        listener = verdict.listener
        hosts = listener.hostname or "all hosts"
        text = f"Listener {listener.name} has port {listener.port} for {hosts}: {verdict.message}."
        yield Step(text, origin_of(view, GATEWAY, gateway))


def _other_routes(view: View, asked: EdgeRequest, listener: Listener) -> Iterator[Step]:
    """Yield a step for each route of the gateway without attachment to the listener."""
    attached = routes_at_listener(view, asked.gateway, listener.name)
    for key in sorted(set(routes_by_gateway(view).get(asked.gateway, ())).difference(attached)):
        verdicts = [item for item in gateway_verdicts(view, key) if item.gateway == asked.gateway]
        first = next((item for item in verdicts if item.accepted), verdicts[0])
        why = "is attached to other listeners" if first.accepted else f"is refused ({first.reason})"
        yield Step(f"{key} {why}: {first.message}.", origin_of_object(view, key), depth=1)


def _without_match(account: _Account, listener: Listener) -> EdgeExplanation:
    attached = routes_at_listener(account.view, account.asked.gateway, listener.name)
    for key in attached:
        route = route_of(account.view, key)
        names = () if route is None else route.hostnames
        text = f"No rule of {key} fits the path, method and headers of the request."
        if names and most_specific(names, account.asked.host) is None:
            text = f"{key} is for other host names: {', '.join(names)}."
        account.steps.append(Step(text, origin_of_object(account.view, key)))
    text = "The listener lacks a route." if not attached else "No attached route fits the request."
    if not has_requests(listener):
        return account.ended(Answer.REFUSED, "refused", f"{text} The gateway closes the connection.")
    return account.ended(Answer.REFUSED, "refused: 404", f"{text} The gateway answers 404.")


def _broken(view: View, found: RouteMatch) -> Iterator[Step]:
    for broken in resolved_rules_at_gateways(view, found.key)[found.rule].unresolved:
        yield Step(f"{broken.field} leads nowhere ({broken.reason}): {broken.message}.", depth=1)


def _own_answer(account: _Account, reply: LocalReply) -> EdgeExplanation:
    if not reply.status:
        text = f"The gateway closes the connection: {reply.why}."
        return account.ended(Answer.REFUSED, "refused", text)
    is_redirect = reply.status < HTTPStatus.BAD_REQUEST
    answer = Answer.ALLOWED if is_redirect else Answer.REFUSED
    headline = f"{'redirected' if is_redirect else 'refused'}: {reply.status}"
    return account.ended(answer, headline, f"The gateway answers {reply.status}: {reply.why}.")


def _at_backends(account: _Account, routed: RoutedRequest, client: ServiceIdentity) -> EdgeExplanation:
    """Explain the shares of the backends, which the gateway calls as `client`."""
    view = account.view
    text = f"The gateway calls its backends as ServiceAccount {client}."
    account.steps.append(Step(text))
    statuses: list[int] = [] if routed.broken is None else [routed.broken]
    refused: list[_Refused] = []
    for way in calls_of(routed, client):
        share = f" (weight {way.weight})"
        account.steps += answering_steps(view, way, share, "so its requests are answered with 403")
        status, there = _called(view, way)
        statuses.append(status)
        refused += there
    manifests = tuple(admitting_manifests(view, as_call(account.asked, client), refused))
    ok = HTTPStatus.OK
    if all(status == ok for status in statuses):
        return account.ended(Answer.ALLOWED, "allowed", "The request is allowed.")
    if any(status == ok for status in statuses):
        text = f"The answer depends on the backend: {_listed(statuses)}."
        return account.ended(Answer.DEPENDS, "depends", text, manifests)
    answer = Answer.UNREACHABLE if {*statuses} == {HTTPStatus.SERVICE_UNAVAILABLE} else Answer.REFUSED
    text = f"The gateway answers {_listed(statuses)}."
    return account.ended(answer, f"{answer.value}: {_listed(statuses)}", text, manifests)


def _listed(statuses: list[int]) -> str:
    return " or ".join(str(int(status)) for status in sorted({*statuses}))


_Refused = tuple[Place, bool, Request]
"""A place with a refusal, True for HTTP, and the request in the form at the place."""


def _called(view: View, way: Way) -> tuple[int, list[_Refused]]:
    """Return the status of a gateway's call to a backend, and the refusing places."""
    call = way.request
    places = oracle.places(view, way.service, way.port)
    if not places:
        # Workloads without a sidecar admit all callers.
        plain = endpoints(view, way.service, way.port)
        return (HTTPStatus.OK if plain else HTTPStatus.SERVICE_UNAVAILABLE), []
    refused = [place for place in places if oracle.admitting(view, call, place) is None]
    if len(refused) == len(places):
        return HTTPStatus.FORBIDDEN, [(place, is_http, call) for place, is_http in refused]
    ready = oracle.ready_places(view, call, way.service, way.port, None)
    admitted = {place[0] for place in places if place not in refused}
    return (HTTPStatus.OK if admitted & ready else HTTPStatus.SERVICE_UNAVAILABLE), []
