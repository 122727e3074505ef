"""Target ports of calls to a service's port at a workload.

Usually the Service defines them: a number, or the name of a port of the workload. A Service without selector
defines nothing for workloads. Its EndpointSlices do, and then only the port of the slice counts, as in every
implementation of Services, because the target port may belong to another program.
"""

from catalog.relations.backends.ports import GivenPorts, ServedPorts, served, slice_numbers, target_number
from catalog.relations.backends.workloads import services_of
from catalog.store.inventory import slices_by_service
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.names import Port
from meshwright.mesh.service import Service, ServicePort
from meshwright.mesh.workload import Workload, WorkloadKey


@derived
def slice_ports(view: View, key: WorkloadKey) -> GivenPorts:
    """Return the ports of a workload in slices of Services without selector, by Service.

    Sorted; nearly always empty.
    """
    workload = view.workloads.get(key)
    if workload is None or workload.shares_address:
        return ()
    own = set(workload.addresses)
    result = []
    for service_key in services_of(view, key):
        service = view.services[service_key]
        if service.selector:
            continue
        naming = [
            one
            for one in slices_by_service(view).lookup(service_key)
            if any(address in own for address, _ in one.healths)
        ]
        if naming:
            numbers = {
                (port.port, number)
                for port in service.ports
                for one in naming
                for number in slice_numbers(one, service, port)
            }
            result.append((service_key, tuple(sorted(numbers))))
    return tuple(result)


def target_numbers(view: View, workload: Workload, service: Service, port: ServicePort) -> tuple[Port, ...]:
    """Return the ports of a workload that receive calls to a service's port, sorted."""
    for key, numbers in slice_ports(view, workload.key):
        if key == service.key:
            return tuple(number for called, number in numbers if called == port.port)
    number = target_number(port, workload.ports)
    return () if number is None else (number,)


def served_by(view: View, workload: Workload) -> ServedPorts:
    """Return the ports at which a workload serves its services, like `served`."""
    services = [view.services[service_key] for service_key in services_of(view, workload.key)]
    return served(services, workload.ports, slice_ports(view, workload.key))
