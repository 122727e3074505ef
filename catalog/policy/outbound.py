"""Outbound policy: which services a client may call, where, and who stands behind them.

A client sees only what policy lets it reach: services that workloads of some TrafficTarget's destination
back, at ports the target admits, the apex of a split with such a backend, and every service of a permissive
namespace; a narrowing leaves out of that what it does not name. The server's sidecar decides again, request
by request.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from catalog.policy.access import in_force, may_call
from catalog.policy.objects import splits
from catalog.policy.objects.routing import Place, mirrors
from catalog.policy.objects.upstreams import fails_over, keys_of
from catalog.policy.values.interception import SocketAddress
from catalog.policy.values.outbound import OutboundRoute, WeightedBackend
from catalog.relations.backends.addresses import called_addresses
from catalog.relations.backends.endpoints import endpoints
from catalog.relations.backends.ports import spoken
from catalog.relations.backends.workloads import backing, services_of_identity
from catalog.relations.permissive import is_permissive, open_services
from catalog.store.smi import splits_by_backend, targets_by_source
from catalog.store.view import IN_VIEW, View
from meshwright.engine.derived import derived
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Port
from meshwright.mesh.policies.smi import TrafficSplit
from meshwright.mesh.service import EscapedSlashes, Protocol, ServiceKey, ServicePort
from meshwright.mesh.workload import Endpoint


@derived
def visible(view: View, client: ServiceIdentity) -> tuple[ServiceKey, ...]:
    """Return the services that a client may be able to reach by some port, sorted."""
    return tuple(sorted({*granted(view, client), *open_services(view)}))


@derived
def granted(view: View, client: ServiceIdentity) -> tuple[ServiceKey, ...]:
    """Return the services that a client may reach by some TrafficTarget, but those open to all; sorted."""
    direct = {
        service
        for target in targets_by_source(view).found(client)
        if in_force(target)
        for service in services_of_identity(view, target.destination)
    }
    # An apex is seen for the sake of its backends: nobody need stand behind it.
    apexes = {split.apex for service in direct for split in splits_by_backend(view).found(service)}
    seen = direct.union(apex for apex in apexes if apex in view.services)
    return tuple(sorted(each for each in seen if not is_permissive(view, each.namespace)))


def answering(
    view: View, client: ServiceIdentity | None, key: ServiceKey, port: ServicePort
) -> tuple[ServiceIdentity, ...]:
    """Return those behind a service's port that a client may call, sorted; at which addresses is not said."""
    return tuple(dict.fromkeys(identity for identity, _ in permitted(view, client, key, port)))


@derived
def permitted(
    view: View, client: ServiceIdentity | None, key: ServiceKey, port: ServicePort
) -> tuple[tuple[ServiceIdentity, Port], ...]:
    """Return those behind a service's port that a client may call, each with the workload's port; sorted."""
    protocol = protocol_of(view, key, port)
    behind = _behind(view).value(key, port)
    return tuple(each for each in behind if may_call(view, client, *each, protocol))


@derived
def who_is_behind(view: View, key: ServiceKey, port: ServicePort) -> tuple[tuple[ServiceIdentity, Port], ...]:
    """Return who is behind a service's port in the mesh, and at which port of the workload, sorted."""
    found = {(each.identity, each.port) for each in endpoints(view, key, port) if each.identity is not None}
    return tuple(sorted(found))


_behind: Final = IN_VIEW.firewalls(who_is_behind)
"""Endpoints come, go and move; who answers there remains the same, and all that may call them read that."""


def allowed_endpoints(
    view: View, client: ServiceIdentity | None, key: ServiceKey, port: ServicePort
) -> tuple[Endpoint, ...]:
    """Return the endpoints of a service's port that a client may call: in the mesh, and permitted."""
    may_answer = permitted(view, client, key, port)
    return tuple(each for each in endpoints(view, key, port) if (each.identity, each.port) in may_answer)


@derived
def spoken_there(view: View, key: ServiceKey, port: ServicePort) -> Protocol:
    """Return what is spoken on a service's port."""
    return spoken(port, backing(view, key))


_protocols: Final = IN_VIEW.firewalls(spoken_there)


def protocol_of(view: View, key: ServiceKey, port: ServicePort) -> Protocol:
    """Return what is spoken on a service's port; who reads it is not concerned by what else workloads say."""
    return _protocols(view).value(key, port)


def routes(
    view: View, client: ServiceIdentity | None, key: ServiceKey, port: ServicePort
) -> tuple[OutboundRoute, ...]:
    """Return where a client's calls to a service's port go; empty where it may reach nobody there.

    Here and below a client is as `catalog.relations.permissive.asked_for` says: None is anybody.
    """
    return routes_where(view, key, port, partial(reaches, view, client))


def routes_where(
    view: View, key: ServiceKey, port: ServicePort, reached: Callable[[Place], bool]
) -> tuple[OutboundRoute, ...]:
    """Return the same by whom places are `reached`; it is asked of places behind the service alone."""
    found: list[OutboundRoute] = []
    protocol = protocol_of(view, key, port)
    for split in splits.in_force(view, key, protocol):
        shares = _shares(view, split, port, reached)
        route = OutboundRoute(splits.matches(view, split), shares, split.key)
        found.append(_as_policies_say(view, protocol, route))
    if not found or found[-1].matches is not None:
        route = OutboundRoute(None, _itself(view, key, port, reached))
        found.append(_as_policies_say(view, protocol, route))
    return tuple(found) if any(route.backends for route in found) else ()


def _as_policies_say(view: View, protocol: Protocol, route: OutboundRoute) -> OutboundRoute:
    """Say what the UpstreamPolicies of a route's backends ask of the route."""
    keys, farther = keys_of(view, protocol, route.backends), fails_over(view, protocol, route.backends)
    return replace(route, keys=keys, fails_over=farther) if keys or farther else route


@derived
def places_behind(view: View, key: ServiceKey) -> tuple[Place, ...]:
    """Return where calls to a service may lead: its own ports, and those of its splits' backends."""
    found: dict[Place, None] = {}
    for port in view.services[key].ports:
        found[key, port] = None
        for split in splits.in_force(view, key, protocol_of(view, key, port)):
            found.update((place, None) for place, _ in _backends(view, split, port))
        found.update((place, None) for place in mirrors(view, key, port))
    return tuple(found)


def reaches(view: View, client: ServiceIdentity | None, place: Place) -> bool:
    """Say whether a client may call anybody at a place."""
    return bool(permitted(view, client, *place))


def called_at(
    view: View, client: ServiceIdentity | None, key: ServiceKey, port: ServicePort
) -> tuple[SocketAddress, ...]:
    """Return where a service is called: at its own address, or its virtual one; sorted.

    A headless service is called at the endpoints that the client may call, with their port; at all of them
    where a split says who answers.
    """
    service = view.services[key]
    if not service.headless:
        return tuple(sorted(SocketAddress(each, port.port) for each in called_addresses(view, service)))
    if splits.in_force(view, key, protocol_of(view, key, port)):
        found = endpoints(view, key, port)
    else:
        found = allowed_endpoints(view, client, key, port)
    return tuple(sorted({SocketAddress(at, each.port) for each in found for at in each.addresses}))


def escaped_slashes(view: View, key: ServiceKey, protocol: Protocol) -> EscapedSlashes:
    """Return what becomes of escaped slashes in calls to a service."""
    return view.services[key].escaped_slashes if protocol.is_http else EscapedSlashes.REJECT


def _itself(
    view: View, key: ServiceKey, port: ServicePort, reached: Callable[[Place], bool]
) -> tuple[WeightedBackend, ...]:
    # Where all is permitted a service that nobody is behind is there all the same, and answers 503.
    shown = is_permissive(view, key.namespace) or reached((key, port))
    return (WeightedBackend(key, str(port.target_port), 1),) if shown else ()


def _shares(
    view: View, split: TrafficSplit, port: ServicePort, reached: Callable[[Place], bool]
) -> tuple[WeightedBackend, ...]:
    """Return the shares of a split that a client may call; none where their weights are all zero."""
    shares = tuple(
        WeightedBackend(place[0], str(place[1].target_port), weight)
        for place, weight in _backends(view, split, port)
        if reached(place)
    )
    return shares if any(each.weight for each in shares) else ()


def _backends(view: View, split: TrafficSplit, port: ServicePort) -> Iterator[tuple[Place, int]]:
    """Yield the places of a split's backends that stand for a port of its apex, with their weights."""
    for key, weight in splits.known_weights(view, split).items():
        backend_port = splits.backend_port(port, view.services[key])
        if backend_port is not None:
            yield (key, backend_port), weight
