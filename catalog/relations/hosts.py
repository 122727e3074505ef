"""Lines of a hosts file for machines without mesh DNS, as seen from one namespace."""

from collections.abc import Iterator

from catalog.relations.backends.addresses import own_addresses
from catalog.relations.backends.endpoints import endpoints
from catalog.relations.backends.workloads import backing
from catalog.store.view import View
from meshwright.mesh.names import IpAddress, Namespace
from meshwright.mesh.service import Service
from meshwright.mesh.workload import Health


def hosts(view: View, namespace: Namespace) -> tuple[tuple[IpAddress, tuple[str, ...]], ...]:
    """Return the addresses and names of every service, sorted by name.

    Services of the namespace also have their short name. A headless service has a line per endpoint, like its
    DNS answer, beginning with the workload's own name, for example `node-0.nodes.default`. Virtual addresses
    are IPv4 only, because IPv6 ones lead nowhere unless IPv6 is redirected to the proxy.
    """
    return tuple(
        line
        for service in view.services.values()
        for line in _lines(view, service, _names(view, service, namespace))
    )


def _lines(
    view: View, service: Service, names: tuple[str, ...]
) -> Iterator[tuple[IpAddress, tuple[str, ...]]]:
    if service.headless:
        behind = backing(view, service.key)
        workloads = {address: workload.key.name for workload in behind for address in workload.addresses}
        there = (endpoint for port in service.ports for endpoint in endpoints(view, service.key, port))
        # As in DNS, which lists only ready endpoints of a headless Service.
        addresses = {address for item in there if item.health is Health.READY for address in item.addresses}
        for address in sorted(addresses):
            own = tuple(f"{workloads[address]}.{name}" for name in names) if address in workloads else ()
            yield address, (*own, *names)
        return
    for called_at in own_addresses(view, service):
        yield called_at, names


def _names(view: View, service: Service, namespace: Namespace) -> tuple[str, ...]:
    names = service.key.host_names(view.settings.cluster_domain)
    return (service.key.name, *names) if service.key.namespace == namespace else names
