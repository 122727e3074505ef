"""Endpoints of a service's port: their addresses, health and identities."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from catalog.relations.backends.localities import zones_of
from catalog.relations.backends.ports import slice_numbers
from catalog.relations.backends.precedence import is_superseded
from catalog.relations.backends.targets import target_numbers
from catalog.relations.backends.workloads import backing
from catalog.store.inventory import by_address, slices_by_service
from catalog.store.precedence import age, health_rank
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.identity import ProxyName, ServiceIdentity
from meshwright.mesh.names import IpAddress, Namespace, Port
from meshwright.mesh.objects import EndpointSlice
from meshwright.mesh.service import Service, ServiceKey, ServicePort
from meshwright.mesh.workload import Edge, Endpoint, Health, Workload

Place = tuple[IpAddress, Port]


@derived
def endpoints(view: View, key: ServiceKey, port: ServicePort) -> tuple[Endpoint, ...]:
    """Return the endpoints of a service's port from workloads and EndpointSlices, sorted.

    Endpoints are included whether ready or not, because identities must not depend on readiness. A workload
    is one endpoint with all its addresses, although slices list each address family separately. The
    workload's own weight and locality win; it is ready if neither itself nor a slice denies it. A workload
    with weight 0 is out of use, and no endpoint. Of several workloads with one address the healthiest has it
    (`catalog.relations.backends.precedence`).
    """
    service = view.services.get(key)
    if service is None:
        return ()
    sliced, zones = _sliced(slices_by_service(view).lookup(key), service, port)
    result: dict[Place, Endpoint] = {}
    known: set[Place] = set()
    ranks: dict[Place, tuple[int, bool, str]] = {}
    for workload in backing(view, key):
        if is_superseded(view, workload):
            continue
        for number in target_numbers(view, workload, service, port):
            places = [(address, number) for address in workload.addresses]
            # Recorded even with weight 0, so a slice with the same address does not bring it back.
            known.update(places)
            if workload.weight > 0:
                healths = [sliced[item] for item in places if item in sliced]
                best = min(healths, key=health_rank, default=Health.READY)
                health = _worse(_own_health(service, workload), best)
                zone = next(
                    (zones[ip_address] for ip_address in workload.addresses if ip_address in zones), ""
                )
                by_health = partial(_health_at, sliced, number)
                called_at = tuple(sorted(workload.called_at, key=by_health))
                made = _of_workload(key, port, workload, called_at, number, zone, health)
                place, rank = (made.address, number), (health_rank(health), *age(workload.created))
                if place not in ranks or rank < ranks[place]:
                    result[place], ranks[place] = made, rank
    # Places found only in slices, for example the machines behind a Service without a selector.
    by_itself = [
        _of_slice(view, key, port, (address, number), zones.get(address, ""), health)
        for (address, number), health in sliced.items()
        if (address, number) not in known and _takes_calls(view, key.namespace, address, number)
    ]
    result.update(
        ((endpoint.address, endpoint.port), endpoint) for endpoint in _without_duplicates(by_itself)
    )
    return tuple(result[item] for item in sorted(result))


def health_at(view: View, key: ServiceKey, where: Place) -> int:
    """Return the rank of a service's health at an address and port, best first.

    A service with an address of its own is always healthy there. A headless service is called at its
    endpoints.
    """
    if not view.services[key].headless:
        return health_rank(Health.READY)
    return _ranks(view, key).get(where, health_rank(Health.UNREADY))


@derived
def _ranks(view: View, key: ServiceKey) -> Mapping[Place, int]:
    """Return the health ranks of a service's endpoints by address and port; of several ports the best."""
    result: dict[Place, int] = {}
    for port in view.services[key].ports:
        for endpoint in endpoints(view, key, port):
            for address in endpoint.addresses:
                rank = health_rank(endpoint.health)
                result[address, endpoint.port] = min(result.get((address, endpoint.port), rank), rank)
    return MappingProxyType(result)


@derived
def addresses_behind(view: View, key: ServiceKey) -> tuple[IpAddress, ...]:
    """Return every address behind a service, whatever its port and health, sorted.

    Calls from the service's workloads come from these addresses.
    """
    if key not in view.services:
        return ()
    addresses = {address for workload in backing(view, key) for address in workload.addresses}
    for endpoint_slice in slices_by_service(view).lookup(key):
        addresses.update(IpAddress(address) for address, _ in endpoint_slice.healths)
    return tuple(sorted(addresses))


def sidecars_at(view: View, namespace: Namespace, address: IpAddress, port: Port) -> tuple[Workload, ...]:
    """Return the workloads whose sidecar may listen at an address and port.

    Only workloads in the service's namespace count, because a slice must not use those of another namespace.
    """
    there = [
        workload
        for workload in by_address(view).lookup(address)
        if workload.key.namespace == namespace
        and workload.uuid is not None
        and not is_superseded(view, workload)
    ]
    # Several at one address are distinguished by their ports; a single one need not declare any.
    if len(there) > 1:
        there = [workload for workload in there if any(known.number == port for known in workload.ports)]
    return tuple(there)


def _takes_calls(view: View, namespace: Namespace, address: IpAddress, port: Port) -> bool:
    """Return whether calls to an address and port reach a sidecar there; True if no sidecar is known."""
    there = sidecars_at(view, namespace, address, port)
    return not there or any(address in workload.called_at for workload in there)


def _sliced(
    slices: Collection[EndpointSlice], service: Service, port: ServicePort
) -> tuple[Mapping[Place, Health], Mapping[IpAddress, str]]:
    """Return the health of each place in slices (the best of several), and the zones of addresses."""
    healths: dict[Place, Health] = {}
    for endpoint_slice in slices:
        for number in slice_numbers(endpoint_slice, service, port):
            for address, health in endpoint_slice.healths:
                place = (IpAddress(address), number)
                # Kubernetes may list an endpoint in several slices for a moment; the best health counts.
                if (had := healths.get(place)) is None or health_rank(health) < health_rank(had):
                    healths[place] = health
    return healths, zones_of(slices)


def _own_health(service: Service, workload: Workload) -> Health:
    # With publishNotReadyAddresses Pods are called from their start, for example to find other members.
    return Health.READY if service.publish_not_ready else workload.health


def _health_at(sliced: Mapping[Place, Health], number: Port, address: IpAddress) -> int:
    """Return the health rank of an address in slices; addresses not in a slice are ready."""
    return health_rank(sliced.get((address, number), Health.READY))


def _worse(one: Health, other: Health) -> Health:
    return max(one, other, key=health_rank)


def _of_slice(
    view: View, key: ServiceKey, port: ServicePort, place: Place, zone: str, health: Health
) -> Endpoint:
    address, number = place
    there = sidecars_at(view, key.namespace, address, number)
    identities = {workload.identity for workload in there}
    # No identity if there is no sidecar, or several with different identities.
    identity, proxies = (identities.pop(), _proxies(there)) if len(identities) == 1 else (None, ())
    return Endpoint(
        key, port.port, address, number, identity, locality=_locality(zone), proxies=proxies, health=health
    )


def _without_duplicates(result: Iterable[Endpoint]) -> Iterator[Endpoint]:
    """Yield endpoints; those of one sidecar's port, in slices of both address families, become one.

    Its health is the best of them; the order of its addresses decides which is the first.
    """
    alone: dict[tuple[ProxyName, Port], list[Endpoint]] = {}
    for endpoint in result:
        if len(endpoint.proxies) == 1:
            alone.setdefault((endpoint.proxies[0], endpoint.port), []).append(endpoint)
        else:
            yield endpoint
    for several in alone.values():
        first, *others = sorted(
            several, key=lambda endpoint: (health_rank(endpoint.health), endpoint.address)
        )
        yield replace(first, other_addresses=tuple(endpoint.address for endpoint in others))


def _of_workload(
    key: ServiceKey,
    port: ServicePort,
    workload: Workload,
    called_at: tuple[IpAddress, ...],
    number: Port,
    zone: str,
    health: Health,
) -> Endpoint:
    return Endpoint(
        key,
        port.port,
        called_at[0],
        number,
        identity=_identity(workload),
        locality=workload.locality or _locality(zone),
        weight=workload.weight,
        proxies=_proxies((workload,)),
        health=health,
        other_addresses=called_at[1:],
    )


def _identity(workload: Workload) -> ServiceIdentity | None:
    """Return the identity that takes calls of the mesh: none without a sidecar, and none of a gateway."""
    takes_calls = workload.uuid is not None and not isinstance(workload.interception, Edge)
    return workload.identity if takes_calls else None


def _locality(zone: str) -> str:
    """Return the text of a locality of which only the zone is known."""
    return f"/{zone}" if zone else ""


def _proxies(workloads: Iterable[Workload]) -> tuple[ProxyName, ...]:
    return tuple(workload.proxy_name for workload in workloads if workload.proxy_name is not None)
