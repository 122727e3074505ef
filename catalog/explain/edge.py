"""Explanations of requests from outside to a gateway: the listener, the route, and the backends.

Access has two parts: the gateway answers every client, and the backends admit the gateway's ServiceAccount
or refuse the gateway. For example, the source of a missing TrafficTarget is the gateway's ServiceAccount.
"""

from collections.abc import Iterable, Iterator

from catalog.explain.gateways.account import (
    CLOSED,
    CLOSED_IN_HANDSHAKE,
    IN_HANDSHAKE,
    Account,
    EdgeExplanation,
    owner_of,
)
from catalog.explain.gateways.backend_tls import failing
from catalog.explain.gateways.backends import at_backends, own_answer
from catalog.explain.gateways.classes import unserved
from catalog.explain.gateways.client_traffic import client_step
from catalog.explain.gateways.clients import validation
from catalog.explain.gateways.hosts import for_other_host, without_listener, without_port
from catalog.explain.gateways.refusals import refusals, refused_routes
from catalog.explain.steps.gateway import decision_of
from catalog.explain.steps.step import Step, origin_of_object
from catalog.oracle.decide import Answer
from catalog.oracle.edge import (
    EdgeRequest,
    fitting_at_edge,
    has_requests,
    has_server_name,
    listener_for,
    listeners_at,
    routed_at_edge,
    wanted_name,
)
from catalog.oracle.gateway import RouteMatch
from catalog.relations.gateways.classes import served_gateway
from catalog.relations.gateways.listeners import listener_verdicts
from catalog.relations.gateways.route_listeners import gateway_verdicts, routes_at_listener
from catalog.relations.gateways.verdicts import GatewayVerdict, ListenerVerdict
from catalog.relations.references import resolved_rules_at_gateways
from catalog.store.gateway import route_of, routes_by_gateway, routes_by_set, workloads_by_gateway
from catalog.store.view import View
from meshwright.mesh.gateway.gateways import ListenerProtocol
from meshwright.mesh.gateway.hostnames import most_specific
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.problems.problem import Problem


def default_port(view: View, gateway: PolicyKey) -> Port | None:
    """Return the port of a gateway's first listener in force, else of the first; None without listeners."""
    verdicts = sorted(listener_verdicts(view, gateway), key=lambda verdict: not verdict.in_force)
    return verdicts[0].listener.port if verdicts else None


def explain_edge(view: View, asked: EdgeRequest, problems: Iterable[Problem] = ()) -> EdgeExplanation:
    """Explain a request from outside to a gateway. The function is pure.

    `problems` are those of the mesh. They name the objects that a view lacks because they are refused.
    """
    account = Account(view, asked, refusals(view, problems))
    key = asked.gateway
    if served_gateway(view, key) is None:
        return unserved(account)
    clients = sorted({view.workloads[item].identity for item in workloads_by_gateway(view).get(key, ())})
    if not clients:
        text = f"Gateway {key} lacks a workload: `spec.gateway` of a Workload must name the Gateway."
        return account.ended(Answer.UNREACHABLE, "unreachable", text)
    if not listeners_at(view, key, asked.port):
        return without_port(account)
    listener = listener_for(view, asked)
    if listener is None:
        return without_listener(account)
    return _at_listener(account, listener, clients)


def _at_listener(
    account: Account, answering: ListenerVerdict, clients: list[ServiceIdentity]
) -> EdgeExplanation:
    view, asked, listener = account.view, account.asked, answering.listener
    owner, whose = owner_of(asked.gateway, answering)
    hosts = listener.hostname or "all other hosts"
    text = f"Listener {listener.name}{whose} ({listener.protocol}, port {listener.port}) answers for {hosts}."
    account.steps.append(Step(text, origin_of_object(view, owner)))
    account.because.append(owner)
    account.steps += validation(account, answering)
    account.steps += client_step(view, asked.gateway, answering)
    if listener.protocol == ListenerProtocol.HTTPS and (other := for_other_host(account, answering)):
        return other
    account.steps += _other_routes(view, asked, answering)
    fitting = fitting_at_edge(view, asked, answering)
    if not fitting:
        return _without_match(account, answering)
    account.steps += decision_of(view, fitting)
    account.because.append(fitting[0].key)
    routed = routed_at_edge(view, asked, fitting[0])
    account.steps += _broken(view, fitting[0])
    account.steps += failing(view, fitting[0])
    if routed.reply is not None:
        return own_answer(account, listener, routed.reply)
    # One ServiceAccount for all workloads of a gateway is usual.
    if len(clients) > 1:
        others = ", ".join(map(str, clients[1:]))
        account.steps.append(Step(f"Workloads of other ServiceAccounts serve the gateway too: {others}."))
    return at_backends(account, listener, routed, clients[0])


def _other_routes(view: View, asked: EdgeRequest, answering: ListenerVerdict) -> Iterator[Step]:
    """Yield a step for each route of the listener's owner without attachment to the listener."""
    attached = _attached(view, asked, answering)
    named = routes_by_gateway(view).get(asked.gateway, ())
    if answering.listener_set is not None:
        named = routes_by_set(view).get(answering.listener_set, ())
    for key in sorted(set(named).difference(attached)):
        verdicts = [item for item in gateway_verdicts(view, key) if _is_of(item, asked.gateway, answering)]
        first = next((item for item in verdicts if item.accepted), verdicts[0])
        why = "is attached to other listeners" if first.accepted else f"is refused ({first.reason})"
        yield Step(f"{key} {why}: {first.message}.", origin_of_object(view, key), depth=1)


def _attached(view: View, asked: EdgeRequest, answering: ListenerVerdict) -> tuple[ObjectKey, ...]:
    return routes_at_listener(view, asked.gateway, answering.listener.name, answering.listener_set)


def _is_of(verdict: GatewayVerdict, gateway: PolicyKey, answering: ListenerVerdict) -> bool:
    return (verdict.gateway, verdict.listener_set) == (gateway, answering.listener_set)


def _without_match(account: Account, answering: ListenerVerdict) -> EdgeExplanation:
    listener, attached = answering.listener, _attached(account.view, account.asked, answering)
    for key in attached:
        route = route_of(account.view, key)
        names = () if route is None else route.hostnames
        text = f"No rule of {key} fits the path, method and headers of the request."
        if names and most_specific(names, wanted_name(account.asked, listener)) is None:
            text = f"{key} is for other host names: {', '.join(names)}."
        account.steps.append(Step(text, origin_of_object(account.view, key)))
    account.steps += refused_routes(account.refused, listener)
    text = "The listener lacks a route." if not attached else "No attached route fits the request."
    if has_server_name(listener) and not has_requests(listener):
        return account.ended(Answer.REFUSED, IN_HANDSHAKE, f"{text} {CLOSED_IN_HANDSHAKE}")
    if not has_requests(listener):
        return account.ended(Answer.REFUSED, CLOSED, f"{text} The gateway closes the connection.")
    return account.ended(Answer.REFUSED, "refused: 404", f"{text} The gateway answers 404.")


def _broken(view: View, found: RouteMatch) -> Iterator[Step]:
    for broken in resolved_rules_at_gateways(view, found.key)[found.rule].unresolved:
        yield Step(f"{broken.field} leads nowhere ({broken.reason}): {broken.message}.", depth=1)
