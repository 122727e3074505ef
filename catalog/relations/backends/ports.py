"""Ports: which number a service's target port is at a workload, and what is spoken there."""

from collections.abc import Iterable, Iterator, Mapping

from catalog.store.precedence import age
from meshwright.mesh.names import Port
from meshwright.mesh.objects import EndpointSlice
from meshwright.mesh.service import Protocol, Service, ServiceKey, ServicePort
from meshwright.mesh.workload import Workload, WorkloadPort


def target_number(port: ServicePort, workload_ports: Iterable[WorkloadPort]) -> Port | None:
    """Return the number of a service port's target at a workload; None where it has no port of that name."""
    if isinstance(port.target_port, int):
        return port.target_port
    return next((each.number for each in workload_ports if each.name == port.target_port), None)


def declared_protocol(number: Port, workload_ports: Iterable[WorkloadPort]) -> Protocol | None:
    """Return what the workload itself says is spoken on its port, or None where it says nothing."""
    return next((each.protocol for each in workload_ports if each.number == number and each.protocol), None)


def spoken(port: ServicePort, workloads: Iterable[Workload]) -> Protocol:
    """Return the protocol of a service's port.

    What the service says wins (`appProtocol`, name, well-known number). Where that is only the default,
    what its workloads declare is taken, if those that declare something agree.
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
"""The ports of a workload that EndpointSlices give: by Service pairs of its port and the workload's."""

ServedPorts = tuple[tuple[Port, Protocol, tuple[Service, ...]], ...]
"""Ports of a workload with the protocol and the services that are called there, sorted."""


def served(
    services: Iterable[Service], workload_ports: tuple[WorkloadPort, ...], given: GivenPorts = ()
) -> ServedPorts:
    """Return the ports at which a workload serves these services: number, protocol and services, sorted.

    A workload's own word on the protocol wins; then the oldest service that does not merely take the default;
    then the oldest service. Of the same age the first by name counts.
    """
    found: dict[Port, list[tuple[Service, ServicePort]]] = {}
    by_slices = dict(given)
    for service in sorted(services, key=lambda each: each.key):
        for port in sorted(service.ports, key=lambda each: each.port):
            for number in _numbers(service, port, workload_ports, by_slices):
                found.setdefault(number, []).append((service, port))
    return tuple(
        (
            number,
            declared_protocol(number, workload_ports) or _first_said(pairs),
            tuple(dict.fromkeys(service for service, _ in pairs)),
        )
        for number, pairs in sorted(found.items())
    )


def slice_numbers(found: EndpointSlice, service: Service, port: ServicePort) -> Iterator[Port]:
    """Yield the numbers that a slice has for a service's port: matched by name, as Kubernetes does."""
    alone = len(service.ports) == 1 and len(found.ports) == 1
    for name, number in found.ports:
        if name == port.name or alone:
            yield Port(number)


def _numbers(
    service: Service,
    port: ServicePort,
    workload_ports: tuple[WorkloadPort, ...],
    given: Mapping[ServiceKey, tuple[tuple[Port, Port], ...]],
) -> Iterator[Port]:
    if (pairs := given.get(service.key)) is not None:
        yield from (number for called, number in pairs if called == port.port)
    elif (number := target_number(port, workload_ports)) is not None:
        yield number


def _first_said(pairs: list[tuple[Service, ServicePort]]) -> Protocol:
    oldest = [port for _, port in sorted(pairs, key=lambda each: age(each[0].created))]
    return next((port.protocol for port in oldest if port.protocol_source != "default"), oldest[0].protocol)
