"""Services outside the mesh; a call to one is explained as a call out of the mesh."""

from catalog.oracle.decide import Answer, offered
from catalog.oracle.outside import ClientProtocol, OutsideCall, decide_outside
from catalog.oracle.request.request import Request
from catalog.relations.backends.workloads import backing
from catalog.relations.membership import belongs_to_the_mesh, has_outsiders
from catalog.relations.outside import service_called
from catalog.store.osm import egresses_by_source
from catalog.store.view import View
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import IpAddress, Port
from meshwright.mesh.service import ServiceKey


def address_outside(view: View, client: ServiceIdentity, key: ServiceKey, port: Port) -> IpAddress | None:
    """Return the address at which a client calls a Service outside the mesh; None for any other Service.

    A Service with sidecars is outside only if the call is allowed in plain text. A Service without any
    endpoint does not count as outside; the caller explains the missing endpoints.
    """
    service = view.services.get(key)
    if service is None or service.cluster_ip is None or service.port(port) is None:
        return None
    if not is_outside(view, client, key, port):
        return None
    call = OutsideCall(client, port, ClientProtocol.OTHER, address=service.cluster_ip)
    has_sidecars = any(workload.uuid is not None for workload in backing(view, key))
    passes = decide_outside(view, call).answer is Answer.ALLOWED
    return service.cluster_ip if passes or not has_sidecars else None


def is_outside(view: View, client: ServiceIdentity, key: ServiceKey, port: Port) -> bool:
    """Return whether a call of a client to a Service's port is a call out of the mesh.

    Such a Service is not a member of the mesh and has an endpoint without a sidecar, and policy does not
    offer the port to the client.
    """
    if belongs_to_the_mesh(view, key) or not has_outsiders(view, key):
        return False
    there = view.services[key].port(port)
    return there is None or not offered(view, Request(client, key, port), there)


def host_named(view: View, client: ServiceIdentity, key: ServiceKey, port: Port) -> str:
    """Return the name of a Service in an Egress of the client for a port, or an empty text."""
    hosts = (
        host
        for egress in egresses_by_source(view).lookup(client)
        if any(egress_port.number == port for egress_port in egress.ports)
        for host in egress.hosts
        if service_called(view, host, client.namespace) == key
    )
    return next(hosts, "")
