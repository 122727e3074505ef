"""Where a service's port is reached, and who answers there."""

from collections.abc import Iterable, Iterator

from catalog.relations.backing import backing
from catalog.relations.ports import target_number
from catalog.store.inventory import by_address, slices_by_service
from catalog.store.view import View
from engine.derived import derived
from mesh.identity import ProxyName
from mesh.names import IpAddress, Namespace, Port
from mesh.objects import EndpointSlice
from mesh.service import Service, ServiceKey, ServicePort
from mesh.workload import Endpoint, Workload


@derived
def endpoints(view: View, key: ServiceKey, port: ServicePort) -> tuple[Endpoint, ...]:
    """Return the endpoints of a service's port, from workloads and endpoint slices, sorted.

    A workload with weight 0 is no endpoint: it is taken out of use. Where a slice repeats a workload's
    address and port, the workload's word (weight, locality) holds.
    """
    service = view.services.get(key)
    if service is None:
        return ()
    found: dict[tuple[IpAddress, Port], Endpoint] = {}
    out_of_use: set[tuple[IpAddress, Port]] = set()
    for workload in backing(view, key):
        number = target_number(port, workload.ports)
        if number is None:
            continue
        if workload.weight <= 0:
            # Noted, not only passed over: a slice that repeats the address must not bring it back.
            out_of_use.add((workload.address, number))
            continue
        found.setdefault((workload.address, number), _of_workload(key, port, workload, number))
    for each in slices_by_service(view).found(key):
        for number in _slice_numbers(each, service, port):
            for address in map(IpAddress, each.addresses):
                if (address, number) not in out_of_use:
                    sliced = _of_slice(view, key, port, address, number)
                    found.setdefault((address, number), sliced)
    return tuple(found[each] for each in sorted(found))


def sidecars_at(view: View, namespace: Namespace, address: IpAddress, port: Port) -> tuple[Workload, ...]:
    """Return the workloads whose sidecar may be listening at an address and port.

    Only workloads of the service's own namespace count: a slice must not borrow another namespace's.
    """
    there = [
        each
        for each in by_address(view).found(address)
        if each.key.namespace == namespace and each.uuid is not None
    ]
    # Where several share an address their ports tell them apart; one alone may have named none.
    if len(there) > 1:
        there = [each for each in there if any(known.number == port for known in each.ports)]
    return tuple(there)


def _of_slice(view: View, key: ServiceKey, port: ServicePort, address: IpAddress, number: Port) -> Endpoint:
    there = sidecars_at(view, key.namespace, address, number)
    identities = {each.identity for each in there}
    if len(identities) != 1:  # nobody is there, or who is cannot be told
        return Endpoint(key, port.port, address, number)
    return Endpoint(key, port.port, address, number, identities.pop(), proxies=_proxies(there))


def _of_workload(key: ServiceKey, port: ServicePort, workload: Workload, number: Port) -> Endpoint:
    return Endpoint(
        key,
        port.port,
        workload.address,
        number,
        identity=workload.identity if workload.uuid is not None else None,
        locality=workload.locality,
        weight=workload.weight,
        proxies=_proxies((workload,)),
    )


def _proxies(workloads: Iterable[Workload]) -> tuple[ProxyName, ...]:
    return tuple(each.proxy_name for each in workloads if each.proxy_name is not None)


def _slice_numbers(found: EndpointSlice, service: Service, port: ServicePort) -> Iterator[Port]:
    """Yield the numbers that a slice has for a service's port: matched by name, as Kubernetes does."""
    alone = len(service.ports) == 1 and len(found.ports) == 1
    for name, number in found.ports:
        if name == port.name or alone:
            yield Port(number)
