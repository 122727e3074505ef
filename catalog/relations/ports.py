"""Ports: which number a service's target port is at a workload, and what is spoken there."""

from collections.abc import Iterable

from mesh.names import Port
from mesh.service import Protocol, Service, ServicePort
from mesh.workload import Workload, WorkloadPort


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


def served(
    services: Iterable[Service], workload_ports: tuple[WorkloadPort, ...]
) -> tuple[tuple[Port, Protocol, tuple[Service, ...]], ...]:
    """Return the ports at which a workload serves these services: number, protocol and services, sorted.

    A workload's own word on the protocol wins; then the first service, by key, that does not merely take
    the default; then the first service.
    """
    found: dict[Port, list[tuple[Service, ServicePort]]] = {}
    for service in sorted(services, key=lambda each: each.key):
        for port in sorted(service.ports, key=lambda each: each.port):
            number = target_number(port, workload_ports)
            if number is not None:
                found.setdefault(number, []).append((service, port))
    return tuple(
        (
            number,
            declared_protocol(number, workload_ports) or _first_said([port for _, port in pairs]),
            tuple(dict.fromkeys(service for service, _ in pairs)),
        )
        for number, pairs in sorted(found.items())
    )


def _first_said(ports: list[ServicePort]) -> Protocol:
    return next((port.protocol for port in ports if port.protocol_source != "default"), ports[0].protocol)
