"""Names for machines without mesh DNS: lines of a hosts file, as one namespace sees them."""

from collections.abc import Iterator

from catalog.endpoints import endpoints
from catalog.view import View
from mesh.names import IpAddress, Namespace
from mesh.service import Service


def hosts(view: View, namespace: Namespace) -> tuple[tuple[IpAddress, tuple[str, ...]], ...]:
    """Return address and names of every service, sorted by name.

    Services of the namespace also have their bare name. A headless service has a line per endpoint, as its
    DNS answer would.
    """
    return tuple(
        (address, _names(view, service, namespace))
        for service in view.services.values()
        for address in _addresses(view, service)
    )


def _addresses(view: View, service: Service) -> Iterator[IpAddress]:
    if service.headless:
        found = {each.address for port in service.ports for each in endpoints(view, service.key, port)}
        yield from sorted(found)
        return
    address = service.cluster_ip or view.virtual_addresses.get(service.key)
    if address is not None:
        yield address


def _names(view: View, service: Service, namespace: Namespace) -> tuple[str, ...]:
    names = service.key.host_names(view.settings.cluster_domain)
    return (service.key.name, *names) if service.key.namespace == namespace else names
