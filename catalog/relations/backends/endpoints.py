"""Where a service's port is reached, and who answers there."""

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
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import IpAddress, Namespace, Port
from meshwright.mesh.objects import EndpointSlice
from meshwright.mesh.service import Service, ServiceKey, ServicePort
from meshwright.mesh.workload import Endpoint, Health, Workload

Place = tuple[IpAddress, Port]


@derived
def endpoints(view: View, key: ServiceKey, port: ServicePort) -> tuple[Endpoint, ...]:
    """Return the endpoints of a service's port, from workloads and endpoint slices, sorted.

    They are there whether they are ready or not: who answers does not hang on that. A workload is one
    endpoint, with all addresses at which it is called, whatever else slices know of it, of which there is one
    for each family; its own word (weight, locality) holds, and it is ready where neither itself nor the
    slices deny it. One with weight 0 is no endpoint: it is taken out of use. Of several
    workloads with one address the healthiest has it (`catalog.relations.backends.precedence`).
    """
    service = view.services.get(key)
    if service is None:
        return ()
    sliced, zones = _sliced(slices_by_service(view).found(key), service, port)
    found: dict[Place, Endpoint] = {}
    known: set[Place] = set()
    ranks: dict[Place, tuple[int, bool, str]] = {}
    for workload in backing(view, key):
        if is_superseded(view, workload):
            continue
        for number in target_numbers(view, workload, service, port):
            places = [(address, number) for address in workload.addresses]
            # Noted, not only passed over: a slice that repeats an address must not bring it back.
            known.update(places)
            if workload.weight > 0:
                said = [sliced[each] for each in places if each in sliced]
                best = min(said, key=health_rank, default=Health.READY)
                health = _worse(_own_health(service, workload), best)
                zone = next((zones[each] for each in workload.addresses if each in zones), "")
                by_health = partial(_health_at, sliced, number)
                called_at = tuple(sorted(workload.called_at, key=by_health))
                made = _of_workload(key, port, workload, called_at, number, zone, health)
                place, rank = (made.address, number), (health_rank(health), *age(workload.created))
                if place not in ranks or rank < ranks[place]:
                    found[place], ranks[place] = made, rank
    by_itself = [
        _of_slice(view, key, port, (address, number), zones.get(address, ""), health)
        for (address, number), health in sliced.items()
        if (address, number) not in known and _takes_calls(view, key.namespace, address, number)
    ]
    found.update(((each.address, each.port), each) for each in _each_once(by_itself))
    return tuple(found[each] for each in sorted(found))


def health_at(view: View, key: ServiceKey, where: Place) -> int:
    """Return the rank of how well a service can be called at an address and port, the best first.

    A service is always well at an address of its own. A headless one is called at its endpoints.
    """
    if not view.services[key].headless:
        return health_rank(Health.READY)
    return _ranks(view, key).get(where, health_rank(Health.UNREADY))


@derived
def _ranks(view: View, key: ServiceKey) -> Mapping[Place, int]:
    """Return how well a service can be called at each of its endpoints, the best of all its ports."""
    found: dict[Place, int] = {}
    for port in view.services[key].ports:
        for each in endpoints(view, key, port):
            for address in each.addresses:
                rank = health_rank(each.health)
                found[address, each.port] = min(found.get((address, each.port), rank), rank)
    return MappingProxyType(found)


@derived
def addresses_behind(view: View, key: ServiceKey) -> tuple[IpAddress, ...]:
    """Return every address behind a service, whatever its port and however it is, sorted.

    It is where calls of whoever stands behind it come from.
    """
    if key not in view.services:
        return ()
    found = {address for workload in backing(view, key) for address in workload.addresses}
    for each in slices_by_service(view).found(key):
        found.update(IpAddress(address) for address, _ in each.healths)
    return tuple(sorted(found))


def sidecars_at(view: View, namespace: Namespace, address: IpAddress, port: Port) -> tuple[Workload, ...]:
    """Return the workloads whose sidecar may be listening at an address and port.

    Only workloads of the service's own namespace count: a slice must not borrow another namespace's.
    """
    there = [
        each
        for each in by_address(view).found(address)
        if each.key.namespace == namespace and each.uuid is not None and not is_superseded(view, each)
    ]
    # Where several share an address their ports tell them apart; one alone may have named none.
    if len(there) > 1:
        there = [each for each in there if any(known.number == port for known in each.ports)]
    return tuple(there)


def _takes_calls(view: View, namespace: Namespace, address: IpAddress, port: Port) -> bool:
    """Say whether calls to an address come to the sidecar there, if one is known."""
    there = sidecars_at(view, namespace, address, port)
    return not there or any(address in each.called_at for each in there)


def _sliced(
    slices: Collection[EndpointSlice], service: Service, port: ServicePort
) -> tuple[Mapping[Place, Health], Mapping[IpAddress, str]]:
    """Return what slices say of a service's port: how each place is, the best of what they say; the zones."""
    found: dict[Place, Health] = {}
    for each in slices:
        for number in slice_numbers(each, service, port):
            for address, health in each.healths:
                place = (IpAddress(address), number)
                if (had := found.get(place)) is None or health_rank(health) < health_rank(had):
                    found[place] = health
    return found, zones_of(slices)


def _own_health(service: Service, workload: Workload) -> Health:
    return Health.READY if service.publish_not_ready else workload.health


def _health_at(sliced: Mapping[Place, Health], number: Port, address: IpAddress) -> int:
    """Return the rank of what slices say of an address; of which they say nothing is ready."""
    return health_rank(sliced.get((address, number), Health.READY))


def _worse(one: Health, other: Health) -> Health:
    return max(one, other, key=health_rank)


def _of_slice(
    view: View, key: ServiceKey, port: ServicePort, place: Place, zone: str, health: Health
) -> Endpoint:
    address, number = place
    there = sidecars_at(view, key.namespace, address, number)
    identities = {each.identity for each in there}
    # Without an identity: nobody is there, or who is cannot be told.
    identity, proxies = (identities.pop(), _proxies(there)) if len(identities) == 1 else (None, ())
    return Endpoint(
        key, port.port, address, number, identity, locality=_locality(zone), proxies=proxies, health=health
    )


def _each_once(found: Iterable[Endpoint]) -> Iterator[Endpoint]:
    """Yield endpoints, those of one sidecar's port as one: it has a slice for each family.

    It is as well as it is at its best; which of its addresses is the first goes by their order.
    """
    alone: dict[tuple[ProxyName, Port], list[Endpoint]] = {}
    for each in found:
        if len(each.proxies) == 1:
            alone.setdefault((each.proxies[0], each.port), []).append(each)
        else:
            yield each
    for several in alone.values():
        first, *others = sorted(several, key=lambda each: (health_rank(each.health), each.address))
        yield replace(first, other_addresses=tuple(each.address for each in others))


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
        identity=workload.identity if workload.uuid is not None else None,
        locality=workload.locality or _locality(zone),
        weight=workload.weight,
        proxies=_proxies((workload,)),
        health=health,
        other_addresses=called_at[1:],
    )


def _locality(zone: str) -> str:
    """Return a locality of which the zone alone is known."""
    return f"/{zone}" if zone else ""


def _proxies(workloads: Iterable[Workload]) -> tuple[ProxyName, ...]:
    return tuple(each.proxy_name for each in workloads if each.proxy_name is not None)
