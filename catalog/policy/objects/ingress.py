"""Callers from outside the mesh that IngressBackends admit, by service and target port.

Of several for one service and port one counts: the oldest (`metadata.creationTimestamp`; those without one
last), then the first by name. Only ports with HTTP are supported.
"""

from collections.abc import Iterable, Iterator

from catalog.policy.values.inbound import AccessRule
from catalog.relations.backends.endpoints import addresses_behind
from catalog.store.osm import ingress_by_service
from catalog.store.smi import http_route_groups
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.kinds import INGRESS_BACKEND
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.callers import AuthenticatedName, Caller, EncryptedRange, IpRange
from meshwright.mesh.policies.ingress import IngressBackend, IngressPort, Proof
from meshwright.mesh.policies.smi import HTTPMatch, PolicyKey
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.values.cached_hash import SharedTuple


def precedence(ingress_backend: IngressBackend) -> tuple[bool, str, PolicyKey]:
    """Return the sort key of an IngressBackend for one service and port."""
    return (not ingress_backend.created, ingress_backend.created, ingress_backend.key)


@derived
def deciding(view: View, key: ServiceKey, port: Port) -> tuple[IngressBackend, IngressPort] | None:
    """Return the IngressBackend in force for a service's target port, with its part for this port."""
    result = [
        (ingress_backend, backend)
        for ingress_backend in ingress_by_service(view).lookup(key)
        if (backend := ingress_backend.part(key, port)) is not None
    ]
    return min(result, key=lambda item: precedence(item[0]), default=None)


@derived
def ingress_rule(view: View, key: ServiceKey, port: Port) -> AccessRule | None:
    """Return the rule for callers from outside at a service's target port, or `None`."""
    if (decided := deciding(view, key, port)) is None:
        return None
    ingress_backend, backend = decided
    callers, matches = (
        _callers(view, ingress_backend, backend),
        requests(view, ingress_backend.key.namespace, ingress_backend.matches),
    )
    if not callers or matches == ():
        return None
    return AccessRule(ObjectKey.from_name(INGRESS_BACKEND, ingress_backend.key), callers, matches)


def ingress_rules(view: View, services: Iterable[ServiceKey], port: Port) -> tuple[AccessRule, ...]:
    """Return the rules for callers from outside at a port of these services' workloads, one per object."""
    by: dict[ObjectKey, AccessRule] = {}
    for rule in (ingress_rule(view, service, port) for service in services):
        if rule is not None:
            # Rules of one object differ only in their callers: the matches are those of the whole object.
            known = by[rule.by].callers if rule.by in by else ()
            callers = _sorted({*known, *rule.callers})
            by[rule.by] = AccessRule(rule.by, callers, rule.matches)
    return tuple(by[key] for key in sorted(by))


def requests(view: View, namespace: Namespace, names: Iterable[str]) -> tuple[HTTPMatch, ...] | None:
    """Return the matches of HTTPRouteGroups, without missing groups.

    Without names the result is `None` (all requests).
    """
    if not (named := tuple(names)):
        return None
    groups = (http_route_groups(view).get(PolicyKey(namespace, name)) for name in named)
    return tuple(dict.fromkeys(match for group in groups if group is not None for match in group.matches))


def source_ranges(
    view: View, services: Iterable[ServiceKey], ranges: Iterable[IpRange]
) -> tuple[IpRange, ...]:
    """Return the addresses of clients: the ranges, and the addresses behind the services, sorted."""
    behind = (address for key in services for address in addresses_behind(view, key))
    single = (IpRange(f"{ip_address}/{128 if ':' in ip_address else 32}") for ip_address in behind)
    return tuple(sorted({*ranges, *single}))


def _callers(view: View, ingress_backend: IngressBackend, backend: IngressPort) -> tuple[Caller, ...]:
    # Shared, because each of many callers has all places and server names; their hash is computed once.
    places = SharedTuple(source_ranges(view, ingress_backend.services, ingress_backend.ranges))
    server_names = SharedTuple(backend.server_names)
    match backend.proof:
        case Proof.NOTHING:
            return places
        case Proof.ENCRYPTION:
            return tuple(EncryptedRange(place, server_names) for place in places)
        case Proof.CERTIFICATE:
            return tuple(_named(ingress_backend, server_names, places))


def _named(
    ingress_backend: IngressBackend, server_names: tuple[str, ...], places: tuple[IpRange, ...]
) -> Iterator[AuthenticatedName]:
    """Yield the certificate names that an IngressBackend requires.

    If places are configured but empty, no caller is admitted.
    """
    if places or not (ingress_backend.services or ingress_backend.ranges):
        for name in ingress_backend.principals:
            yield AuthenticatedName(name, places, server_names)


def _sorted(callers: set[Caller]) -> tuple[Caller, ...]:
    """Return callers in a fixed order, also across types.

    Names and places are compared first, because the remaining attributes may be long and are mostly equal.
    """
    return tuple(sorted(callers, key=_order))


def _order(caller: Caller) -> tuple[str, str, tuple[IpRange, ...], tuple[str, ...]]:
    match caller:
        case AuthenticatedName(name, networks, server_names):
            # The type comes first, because callers of different types have no order of their own.
            return (type(caller).__name__, name, networks, server_names)
        case EncryptedRange(network, server_names):
            return (type(caller).__name__, network.network, (), server_names)
        case _:
            return (type(caller).__name__, str(caller), (), ())
