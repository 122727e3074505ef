"""Edges between services that policy allows."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from catalog.policy.access import NoAccess, grant
from catalog.relations.backends.endpoints import endpoints
from catalog.relations.backends.protocols import protocol_of
from catalog.relations.groups import members
from catalog.relations.permissive import is_permissive
from catalog.relations.route_reach import route_places, services_leading_to, side_of
from catalog.store.smi import splits_by_backend, targets
from catalog.store.view import View
from meshwright.admin.topology.names import OUTSIDE, Between, Name, called_of, caller_of, name_of
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import MESH_CONFIG
from meshwright.mesh.names import Namespace, Port, ServiceName
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import TrafficTarget
from meshwright.mesh.service import ServiceKey, ServicePort
from meshwright.traffic.statistics import Direction, Figures
from meshwright.traffic.traffic import BySource


def allowed(view: View) -> Iterable[tuple[Between, str]]:
    """Yield the allowed pairs of caller and called service, each with the name of its TrafficTarget.

    The apex of a TrafficSplit may be called if one of its backends may, and the parent of a route by the
    callers whose calls the route leads to such a backend. A TrafficTarget whose rules match no request on any
    port of a service allows no edge to the service.
    """
    callers = defaultdict[ServiceIdentity, set[Name]](set)
    called = defaultdict[ServiceIdentity, set[ServiceKey]](set)
    for group in members(view):
        callers[group.identity].add(name_of(group.primary))
        called[group.identity].update(group.services)
    for target in targets(view).values():
        if is_permissive(view, target.destination.namespace):
            continue
        direct = {
            service_key for service_key in called[target.destination] if _admits(view, target, service_key)
        }
        apexes = {
            split.apex for service_key in direct for split in splits_by_backend(view).lookup(service_key)
        }
        parents = {key for service_key in direct for key in services_leading_to(view, service_key)}
        for source in target.sources:
            # Routes of the caller's namespace decide its calls, so the parents differ by namespace.
            routed = {key for key in parents if _leads_to(view, key, source.namespace, direct)}
            for caller in callers[source]:
                for service in direct | apexes | routed:
                    yield (caller, name_of(service)), f"TrafficTarget {target.key}"


def _leads_to(view: View, key: ServiceKey, caller: Namespace, services: AbstractSet[ServiceKey]) -> bool:
    """Return whether routes lead calls from a namespace to a Service to one of `services`."""
    return any(service in services for service in _routed_services(view, key, caller))


def _routed_services(view: View, key: ServiceKey, caller: Namespace) -> Iterator[ServiceKey]:
    side = side_of(view, key, caller)
    for port in view.services[key].ports:
        yield from (service for service, _ in route_places(view, key, port, side))


def _admits(view: View, target: TrafficTarget, key: ServiceKey) -> bool:
    """Return whether a target admits any request to the destination's workloads behind a service."""
    service = view.services.get(key)
    return service is not None and any(
        grant(view, target, at, protocol_of(view, key, port)) != NoAccess()
        for port in service.ports
        for at in _called_at(view, key, port, target.destination)
    )


def _called_at(view: View, key: ServiceKey, port: ServicePort, server: ServiceIdentity) -> set[Port]:
    """Return the ports at which workloads receive the traffic of a service port.

    If no workload gets traffic yet, the target port counts, provided it is a number.
    """
    ports = {endpoint.port for endpoint in endpoints(view, key, port) if endpoint.identity == server}
    number = port.target
    return ports or ({Port(int(number))} if number.isdigit() else set())


def verified(view: View, result: Mapping[BySource, Figures]) -> dict[BySource, Figures]:
    """Return the reported statistics without requests that policy does not allow.

    Inbound statistics are kept, because the reporting proxy belongs to the called service.
    """
    pairs = {between for between, _ in allowed(view)}

    def is_known(key: BySource) -> bool:
        caller, calls = key
        if calls.direction is Direction.INBOUND or not calls.called.namespace:
            return True
        between = (caller_of(caller), called_of(calls.called))
        return between in pairs or bool(permissive(view, between))

    return {key: figures for key, figures in result.items() if is_known(key)}


def permissive(view: View, between: Between) -> str:
    """Return the object with permissive mode that allows a request without a TrafficTarget; else empty.

    The called Service, or one to which routes lead its calls, is in a permissive namespace. The called name
    must be a Service of the mesh, because a report may contain any name.
    """
    namespace = Namespace(between[1][0])
    key = ServiceKey(namespace, ServiceName(between[1][1]))
    if namespace == OUTSIDE or view.services.get(key) is None:
        return ""  # checked first, so that a namespace named only by a report is never looked up
    if not is_permissive(view, namespace):
        behind = (service.namespace for service in _routed_services(view, key, Namespace(between[0][0])))
        found = next((item for item in behind if is_permissive(view, item)), None)
        if found is None:
            return ""
        namespace = found
    return f"{MESH_CONFIG if view.config.permissive else ObjectKey.of_namespace(namespace)} (permissive)"
