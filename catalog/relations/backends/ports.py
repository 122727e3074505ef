"""Target ports of services: the port number at a workload, and the protocol."""

from collections.abc import Iterable, Iterator, Mapping

from catalog.store.precedence import age
from meshwright.mesh.names import Port
from meshwright.mesh.objects import EndpointSlice
from meshwright.mesh.service import Protocol, Service, ServiceKey, ServicePort
from meshwright.mesh.workload import Workload, WorkloadPort


def target_number(port: ServicePort, workload_ports: Iterable[WorkloadPort]) -> Port | None:
    """Return the number of a service port's target at a workload, or `None` for an unknown port name."""
    if isinstance(port.target_port, int):
        return port.target_port
    return next(
        (workload_port.number for workload_port in workload_ports if workload_port.name == port.target_port),
        None,
    )


def declared_protocol(number: Port, workload_ports: Iterable[WorkloadPort]) -> Protocol | None:
    """Return the protocol that a workload declares for its port, or `None`."""
    return next(
        (
            workload_port.protocol
            for workload_port in workload_ports
            if workload_port.number == number and workload_port.protocol
        ),
        None,
    )


def spoken(port: ServicePort, workloads: Iterable[Workload]) -> Protocol:
    """Return the protocol of a service's port.

    The service wins (`appProtocol`, name, well-known number). If that gives only the default, the protocol
    declared by its workloads is used, if those with a declaration agree.
    """
    if port.protocol_source != "default":
        return port.protocol
    declared = {
        protocol
        for workload in workloads
        if (number := target_number(port, workload.ports)) is not None
        and (protocol := declared_protocol(number, workload.ports)) is not None
    }
    return declared.pop() if len(declared) == 1 else port.protocol


GivenPorts = tuple[tuple[ServiceKey, tuple[tuple[Port, Port], ...]], ...]
"""Ports of a workload from EndpointSlices: per Service pairs of its port and the workload's port."""

ServedPorts = tuple[tuple[Port, Protocol, tuple[Service, ...]], ...]
"""Ports of a workload with their protocol and services, sorted."""


def served(
    services: Iterable[Service], workload_ports: tuple[WorkloadPort, ...], slice_ports: GivenPorts = ()
) -> ServedPorts:
    """Return the ports at which a workload serves these services: number, protocol and services, sorted.

    The workload's own protocol wins, then that of the oldest service without the default, then that of the
    oldest service. Services of the same age are ordered by name.
    """
    result: dict[Port, list[tuple[Service, ServicePort]]] = {}
    by_slices = dict(slice_ports)
    for service in sorted(services, key=lambda item: item.key):
        for port in sorted(service.ports, key=lambda service_port: service_port.port):
            for number in _numbers(service, port, workload_ports, by_slices):
                result.setdefault(number, []).append((service, port))
    return tuple(
        (
            number,
            declared_protocol(number, workload_ports) or _first_protocol(pairs),
            tuple(dict.fromkeys(service for service, _ in pairs)),
        )
        for number, pairs in sorted(result.items())
    )


def slice_numbers(endpoint_slice: EndpointSlice, service: Service, port: ServicePort) -> Iterator[Port]:
    """Yield the port numbers of a slice for a service's port, matched by name as in Kubernetes."""
    # A single port needs no name, and names may then differ.
    alone = len(service.ports) == 1 and len(endpoint_slice.ports) == 1
    for name, number in endpoint_slice.ports:
        if name == port.name or alone:
            yield Port(number)


def _numbers(
    service: Service,
    port: ServicePort,
    workload_ports: tuple[WorkloadPort, ...],
    slice_ports: Mapping[ServiceKey, tuple[tuple[Port, Port], ...]],
) -> Iterator[Port]:
    if (pairs := slice_ports.get(service.key)) is not None:
        yield from (number for called, number in pairs if called == port.port)
    elif (number := target_number(port, workload_ports)) is not None:
        yield number


def _first_protocol(pairs: list[tuple[Service, ServicePort]]) -> Protocol:
    oldest = [port for _, port in sorted(pairs, key=lambda pair: age(pair[0].created))]
    return next((port.protocol for port in oldest if port.protocol_source != "default"), oldest[0].protocol)
