"""Problems of Gateway API routes at gateways as parents."""

from collections.abc import Iterator

from catalog.lint.codes import Code
from catalog.lint.gateway.redirects import leads_to_same_listener
from catalog.lint.wording import Place, listed, meant
from catalog.policy.outbound import is_vacant, reaches_from_edge
from catalog.relations.gateways.listeners import listener_verdicts, listeners_of_set
from catalog.relations.gateways.verdicts import GatewayVerdict
from catalog.relations.verdicts import Attachment, ServicePlace
from catalog.store.gateway import workloads_by_gateway
from catalog.store.view import View
from meshwright.mesh.gateway.gateways import Listener, ListenerProtocol
from meshwright.mesh.gateway.hostnames import most_specific, shared
from meshwright.mesh.gateway.routes import GatewayRoute
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.problems.problem import Problem


def problems(place: Place, route: GatewayRoute, decided: Attachment) -> Iterator[Problem]:
    """Yield the problems of a route at gateways of Meshwright."""
    for verdict in decided.gateways:
        field = f"spec.parentRefs[{route.parents.index(verdict.parent)}]"
        if not verdict.accepted:
            near = _section_meant(place.view, verdict)
            wanted = (
                f"The route is not in force at this parent ({verdict.reason}): {verdict.message}{near}. "
                "Correct the reference or the route, or allow the route at a listener."
            )
            yield place.error(Code.ROUTE_NOT_ACCEPTED, field, _named(verdict), wanted)
        elif not any(_answers(place.view, verdict, name, route) for name in verdict.listeners):
            wanted = _without_requests(place.view, verdict)
            yield place.warning(Code.WITHOUT_REQUESTS, field, _named(verdict), wanted)
    yield from _redirects(place, route, decided)
    yield from _denied(place, route, decided)


def _named(verdict: GatewayVerdict) -> str:
    """Return the name of the Gateway or ListenerSet that a route names."""
    return str(verdict.listener_set or verdict.gateway)


def _section_meant(view: View, verdict: GatewayVerdict) -> str:
    """Return a clause with the similar name of a listener, if the route names a missing one."""
    section = verdict.parent.section
    there = listeners_of_set(view, verdict.gateway, verdict.listener_set)
    names = [item.listener.name for item in there]
    return meant([section], names) if section and section not in names else ""


def _without_requests(view: View, verdict: GatewayVerdict) -> str:
    """Return the text for a route whose listeners are out of force, or hidden by others at their ports."""
    out = {
        item.listener.name: item.message
        for item in listeners_of_set(view, verdict.gateway, verdict.listener_set)
        if item.listener.name in verdict.listeners and not item.in_force
    }
    hidden = [name for name in verdict.listeners if name not in out]
    texts = ["The route is attached, but never gets a request here."]
    texts += (f"Listener {name} gets no requests: {message}." for name, message in out.items())
    if hidden:
        texts.append(
            f"At the ports of its listeners ({listed(hidden)}) others have more specific host names, and "
            "answer in their place."
        )
    remedy = f"Correct the {verdict.parent.kind.name}" if out else "Attach the route to the others"
    if out and hidden:
        remedy += ", or attach the route to the others"
    return " ".join((*texts, f"{remedy}."))


_Listeners = dict[tuple[PolicyKey | None, str], Listener]
"""Listeners of a gateway, by their ListenerSet and name."""


def _in_force(view: View, gateway: PolicyKey) -> _Listeners:
    verdicts = listener_verdicts(view, gateway)
    return {(item.listener_set, item.listener.name): item.listener for item in verdicts if item.in_force}


def _answers(view: View, verdict: GatewayVerdict, name: str, route: GatewayRoute) -> bool:
    """Return whether some request reaches a route at a listener.

    For example, a listener without a host name gives a route for `shop.example` nothing, if another listener
    at the same port has this host name.
    """
    listeners = _in_force(view, verdict.gateway)
    # The names of listeners are unique within one Gateway or ListenerSet alone.
    own = listeners.get((verdict.listener_set, name))
    # TCP connections lack a name for another listener.
    if own is None or own.protocol == ListenerProtocol.TCP:
        return own is not None
    beside = [other.hostname for other in listeners.values() if other.port == own.port]
    return any(
        most_specific(beside, pattern) == own.hostname for pattern in shared(own.hostname, route.hostnames)
    )


def _redirects(place: Place, route: GatewayRoute, decided: Attachment) -> Iterator[Problem]:
    for index, rule in enumerate(route.rules):
        redirect = rule.filters.redirect
        if redirect is None or rule.dropped:
            continue
        for listener in _attached(place.view, decided.gateways):
            names = shared(listener.hostname, route.hostnames)
            if any(leads_to_same_listener(listener, names, match, redirect) for match in rule.matches):
                wanted = (
                    f"The new location at listener {listener.name} is redirected by the same rule again, so "
                    "clients go in circles. Attach the route to another listener with `sectionName`, or "
                    "change the scheme, host, port or path of the redirect."
                )
                yield place.warning(Code.REDIRECT_TO_ITSELF, f"spec.rules[{index}].filters", "", wanted)
                break


def _attached(view: View, verdicts: tuple[GatewayVerdict, ...]) -> Iterator[Listener]:
    """Yield the listeners in force to which a route is attached."""
    for verdict in verdicts:
        listeners = _in_force(view, verdict.gateway)
        keys = ((verdict.listener_set, name) for name in verdict.listeners)
        yield from (listeners[key] for key in keys if key in listeners)


def _denied(place: Place, route: GatewayRoute, decided: Attachment) -> Iterator[Problem]:
    """Yield the backends without permission for the workloads of a gateway."""
    view = place.view
    gateways = dict.fromkeys(verdict.gateway for verdict in decided.gateways if verdict.accepted)
    serving = [view.workloads[key] for item in gateways for key in workloads_by_gateway(view).get(item, ())]
    clients = sorted({workload.identity for workload in serving})
    for index, (rule, resolved) in enumerate(zip(route.rules, decided.rules_at_gateways, strict=False)):
        for number, found in enumerate(resolved.backends):
            if not isinstance(found.to, ServicePlace) or not rule.backends[number].weight:
                continue
            to = (found.to.service, found.to.port)
            # A backend without workloads is answered with 503, and has a problem of another code.
            if is_vacant(view, to):
                continue
            for client in clients:
                if not reaches_from_edge(view, client, to):
                    wanted = (
                        f"The gateway calls this backend as ServiceAccount {client}, without a permission. "
                        "So these requests are answered with 403. Admit the ServiceAccount as a source of a "
                        "TrafficTarget."
                    )
                    field = f"spec.rules[{index}].backendRefs[{number}]"
                    yield place.warning(Code.GATEWAY_DENIED, field, str(found.to.service), wanted)
