"""Hosts and addresses of the mesh's services, for the distinction from places outside."""

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
"""The services with a port, by port number."""


def service_called(view: View, host: str, namespace: Namespace) -> ServiceKey | None:
    """Return the service behind a host, as seen from a namespace, or `None`.

    All DNS names of a service are recognised, including those of its endpoints, as is its address.
    """
    if key := next(iter(sorted(by_own_address(view).get(IpAddress(host), ()))), None):
        return key
    # Accepted forms: `cart`, `cart.shop`, `cart.shop.svc`, with or without the cluster's domain.
    labels = host.removesuffix(f".{view.settings.cluster_domain}").split(".")
    in_full = labels[-1] == "svc"
    labels = labels[:-1] if in_full else labels
    if len(labels) > 2 and not in_full:
        return None
    where = Namespace(labels[-1]) if len(labels) > 1 else namespace
    key = ServiceKey(where, ServiceName(labels[-2] if len(labels) > 1 else labels[-1]))
    return key if key in view.services else None


def setting_named(view: View, egress: Egress) -> UpstreamTrafficSetting | None:
    """Return the UpstreamTrafficSetting named by an Egress; `None` if missing or not named."""
    if egress.limits is None:
        return None
    return settings(view).get(PolicyKey(egress.key.namespace, egress.limits))
