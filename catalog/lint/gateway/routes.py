"""Problems of Gateway API routes."""

from collections.abc import Iterator
from functools import partial

from catalog.lint.budget import Budget, within
from catalog.lint.callers import callers_of, named_clients
from catalog.lint.codes import Code
from catalog.lint.gateway import edge_routes, unknown_parents
from catalog.lint.gateway.grants import near_grant
from catalog.lint.gateway.hidden_matches import hidden_matches
from catalog.lint.gateway.redirects import leads_to_itself
from catalog.lint.lint import Lint
from catalog.lint.wording import Place, Suggestions, listed, meant
from catalog.policy.objects.gateway_precedence import RoutedMatch
from catalog.relations.attachment import attachment
from catalog.relations.permissive import is_permissive
from catalog.relations.verdicts import Attachment, ResolvedReason, ServicePlace
from catalog.store.view import View
from meshwright.mesh.gateway.routes import GatewayRoute
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import GRPC_ROUTE, HTTP_ROUTE
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.problems.problem import Problem


def problems(lint: Lint, key: ObjectKey, route: GatewayRoute) -> Iterator[Problem]:
    """Yield the problems of a route at its Services and gateways; other parents have none."""
    place = Place(lint.view, key)
    decided = attachment(lint.view, place.key)
    yield from edge_routes.problems(place, route, decided)
    yield from unknown_parents.problems(place, route)
    yield from _unresolved(place, decided)
    # Other parents have controllers of their own, which report about the route.
    if not decided.parents:
        return
    yield from _refused(place, route, decided)
    yield from _hostnames(place, route)
    yield from _hidden(place, route, decided)
    yield from _redirects(place, route, decided)
    looked_for = "backends with a denied share"
    yield from within(place, "spec.rules", looked_for, partial(_denied, lint, place, route, decided))


def _refused(place: Place, route: GatewayRoute, decided: Attachment) -> Iterator[Problem]:
    for verdict in decided.parents:
        if not verdict.accepted:
            field = f"spec.parentRefs[{route.parents.index(verdict.parent)}]"
            key, near = verdict.service, ""
            if key not in place.view.services:
                near = meant([key.name], [*_services(place.view, key.namespace)])
            wanted = (
                f"The route is not in force at this parent ({verdict.reason}): {verdict.message}{near}. "
                "Correct the reference, or the Service."
            )
            yield place.error(Code.ROUTE_NOT_ACCEPTED, field, str(verdict.service), wanted)


def _unresolved(place: Place, decided: Attachment) -> Iterator[Problem]:
    in_mesh = decided.unresolved if decided.parents else ()
    hints: dict[Namespace, Suggestions] = {}
    for broken in dict.fromkeys((*in_mesh, *decided.unresolved_at_gateways)):
        near, remedy = "", "create the Service"
        if broken.target is not None and broken.reason is ResolvedReason.BACKEND_NOT_FOUND:
            namespace = broken.target.namespace
            services = hints.setdefault(namespace, Suggestions(partial(_services, place.view, namespace)))
            near = services.hint(broken.target.name)
        grant = ""
        if broken.target is not None and broken.reason is ResolvedReason.REF_NOT_PERMITTED:
            grant = near_grant(place.view, place.key.kind, place.key.namespace, broken.target)
            remedy = "correct the ReferenceGrant" if grant else "create the ReferenceGrant"
        wanted = (
            f"The reference leads nowhere ({broken.reason}): {broken.message}{near}. {grant}Its share of the "
            "requests is answered with an error, and copies are not made. Correct the reference, or "
            f"{remedy}."
        )
        yield place.error(Code.UNRESOLVED_REFERENCE, broken.field, "", wanted)


def _services(view: View, namespace: Namespace) -> Iterator[str]:
    return (service.name for service in view.services if service.namespace == namespace)


def _hostnames(place: Place, route: GatewayRoute) -> Iterator[Problem]:
    if route.hostnames and place.key.kind in (HTTP_ROUTE, GRPC_ROUTE):
        wanted = (
            "Hostnames have no effect where the parent is a Service, because the Service's address decides. "
            "Delete them, or match the header `host`."
        )
        yield place.warning(Code.HOSTNAMES_IN_MESH, "spec.hostnames", listed(route.hostnames), wanted)


def _hidden(place: Place, route: GatewayRoute, decided: Attachment) -> Iterator[Problem]:
    found: dict[tuple[int, int], tuple[RoutedMatch, list[str]]] = {}
    for verdict in decided.parents:
        for port in verdict.ports:
            there = hidden_matches(place.view, verdict.service, port, route.key.namespace)
            for rule, number in _numbers(route):
                if (winner := there.get((route.key, rule, number))) is not None:
                    ports = found.setdefault((rule, number), (winner, []))[1]
                    ports.append(f"{verdict.service}:{port}")
    for (rule, number), (winner, ports) in found.items():
        whose = "this route" if winner.route.key == route.key else f"{place.key.kind} {winner.route.key}"
        wanted = (
            f"This match never applies at {listed(ports)}, because spec.rules[{winner.rule}].matches"
            f"[{winner.match}] of {whose} is equal and takes precedence: the older route wins, then the "
            "first by name, then the first rule. Delete one of the two."
        )
        yield place.warning(Code.HIDDEN_MATCH, f"spec.rules[{rule}].matches[{number}]", "", wanted)


def _numbers(route: GatewayRoute) -> Iterator[tuple[int, int]]:
    return ((index, number) for index, rule in enumerate(route.rules) for number in range(len(rule.matches)))


def _redirects(place: Place, route: GatewayRoute, decided: Attachment) -> Iterator[Problem]:
    view = place.view
    ports = [
        (verdict.service, port)
        for verdict in decided.parents
        for number in verdict.ports
        if (port := view.services[verdict.service].port(number)) is not None
    ]
    for index, rule in enumerate(route.rules):
        redirect = rule.filters.redirect
        if redirect is None or rule.dropped:
            continue
        for key, port in ports:
            if any(leads_to_itself(view, key, port, match, redirect) for match in rule.matches):
                wanted = (
                    f"The new location at {key}:{port.port} is redirected by the same rule again, so clients "
                    "go in circles. Change the scheme, host, port or path of the redirect, or the match."
                )
                yield place.warning(Code.REDIRECT_TO_ITSELF, f"spec.rules[{index}].filters", "", wanted)
                break


def _denied(
    lint: Lint, place: Place, route: GatewayRoute, decided: Attachment, budget: Budget
) -> Iterator[Problem]:
    """Yield the backends with a share of 403, because some clients of the route may not call them.

    Only the ports of the route count: the one of each backend, and those of a parent where it is in force.
    """
    view = lint.view
    parents = dict.fromkeys(_parents(view, decided))
    backends = dict(_backends(route, decided)) if parents else {}
    concerned = dict.fromkeys((*parents, *backends))
    callers = {
        place: callers_of(lint, place.service, budget, (place.port,))
        for place in concerned
        if not is_permissive(view, place.service.namespace)
    }
    everyone: frozenset[ServiceIdentity] = frozenset().union(*callers.values())
    for key in backends:
        if key not in callers:
            continue
        budget.spend(len(everyone))
        missing = everyone - callers[key]
        if missing or len(callers) < len(concerned):
            who = named_clients(missing) if missing else "Clients without a TrafficTarget for it"
            wanted = (
                f"{who} may call the parent or another backend, but not this backend, so this share of their "
                "requests is answered with 403. Admit them with a TrafficTarget."
            )
            named = f"{key.service}:{key.port.port}"
            yield place.warning(Code.SHARE_DENIED, backends[key], named, wanted)


def _parents(view: View, decided: Attachment) -> Iterator[ServicePlace]:
    """Yield the ports of Services at which a route is in force."""
    for verdict in decided.parents:
        for number in verdict.ports:
            if (port := view.services[verdict.service].port(number)) is not None:
                yield ServicePlace(verdict.service, port)


def _backends(route: GatewayRoute, decided: Attachment) -> Iterator[tuple[ServicePlace, str]]:
    """Yield the places behind the rules of a route, each with the field of the reference."""
    for index, (rule, resolved) in enumerate(zip(route.rules, decided.rules, strict=True)):
        for number, found in enumerate(resolved.backends):
            if isinstance(found.to, ServicePlace) and rule.backends[number].weight:
                yield found.to, f"spec.rules[{index}].backendRefs[{number}]"
