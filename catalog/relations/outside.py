"""Which hosts and addresses are the mesh's, and so no places outside it; what limits calls to others."""

from typing import Final

from catalog.relations.backends.addresses import by_own_address
from catalog.store.osm import settings
from catalog.store.view import IN_VIEW, View, services
from meshwright.mesh.names import IpAddress, Namespace, ServiceName
from meshwright.mesh.policies.egress import Egress
from meshwright.mesh.policies.limits import UpstreamTrafficSetting
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey

services_by_port: Final = IN_VIEW.index(
    "services by port", services, lambda _, service: tuple({port.port: None for port in service.ports})
)
"""The services that have a port, by its number."""


def service_called(view: View, host: str, namespace: Namespace) -> ServiceKey | None:
    """Return the service of the mesh that a host is for whoever calls from a namespace; None if it is none.

    By any of the names that a service has in the DNS, those of its endpoints among them, or by its address.
    """
    if key := next(iter(sorted(by_own_address(view).get(IpAddress(host), ()))), None):
        return key
    labels = host.removesuffix(f".{view.settings.cluster_domain}").split(".")
    in_full = labels[-1] == "svc"
    labels = labels[:-1] if in_full else labels
    if len(labels) > 2 and not in_full:
        return None
    where = Namespace(labels[-1]) if len(labels) > 1 else namespace
    key = ServiceKey(where, ServiceName(labels[-2] if len(labels) > 1 else labels[-1]))
    return key if key in view.services else None


def setting_named(view: View, egress: Egress) -> UpstreamTrafficSetting | None:
    """Return the UpstreamTrafficSetting that an Egress names; None for none, or one that is not there."""
    if egress.limits is None:
        return None
    return settings(view).get(PolicyKey(egress.key.namespace, egress.limits))
