"""Selection of the endpoints for traffic: ready ones, after admission of the sidecar.

Only addresses are decided here. Identities, routes and admission do not change, so an unready endpoint leaves
a service with fewer addresses, or without any (503), and never removes the service from a configuration.
"""

from typing import Final

from catalog.relations.backends.endpoints import endpoints
from catalog.store.settings import Admission, EndpointAdmission
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.service import ServiceKey, ServicePort
from meshwright.mesh.workload import Endpoint, Health

_WAITS_FOR: Final = {
    EndpointAdmission.IDENTITY: "its sidecar has not connected with its certificate",
    EndpointAdmission.READY: "its sidecar has not accepted its inbound listeners",
}
"""Condition that an endpoint waits for, by mode."""

WITHDRAWN: Final = "the certificate of its sidecar was revoked"


def is_admitted(view: View, proxy: ProxyName) -> bool:
    """Return whether the workload of a proxy is admitted to traffic."""
    return not waits_for(view, proxy)


def waits_for(view: View, proxy: ProxyName) -> str:
    """Return a clause with the reason why a proxy's workload gets no traffic; empty if it does."""
    mode = view.settings.endpoint_admission
    match view.admissions.get(proxy):
        case Admission.ADMITTED:
            return ""
        case Admission.WITHDRAWN:
            return WITHDRAWN
        case None:
            return "" if mode is EndpointAdmission.OFF else _WAITS_FOR[mode]


def can_take_traffic(view: View, endpoint: Endpoint) -> bool:
    """Return whether the sidecar of an endpoint can take traffic; True without a sidecar."""
    return not endpoint.proxies or any(is_admitted(view, proxy) for proxy in endpoint.proxies)


@derived
def taking_traffic(view: View, key: ServiceKey, port: ServicePort) -> tuple[Endpoint, ...]:
    """Return the endpoints of a service's port that get calls, sorted.

    These are the ready endpoints; without any, the terminating ones, as in Kubernetes' own proxies.
    """
    there = (endpoint for endpoint in endpoints(view, key, port) if endpoint.health is not Health.UNREADY)
    able = tuple(item for item in there if can_take_traffic(view, item))
    return tuple(item for item in able if item.health is Health.READY) or able


def why_withheld(view: View, endpoint: Endpoint) -> str:
    """Return a clause with the reason why an endpoint gets no calls; empty if it may get some."""
    if endpoint.health is Health.UNREADY:
        return "it is not ready"
    return "" if can_take_traffic(view, endpoint) else waits_for(view, endpoint.proxies[0])
