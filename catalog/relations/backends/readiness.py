"""Which endpoints get traffic: those that are ready, once a sidecar in front of them can take it.

It decides about addresses alone. Who may answer, where calls are routed and whom a server lets in are what
they were before and will be after, so that an endpoint which is not admitted yet, or not ready, leaves a
service with fewer addresses, or with none (503), and never takes the service out of anybody's configuration.
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
"""What an endpoint that is not admitted waits for."""

WITHDRAWN: Final = "the certificate of its sidecar was revoked"


def is_admitted(view: View, proxy: ProxyName) -> bool:
    """Say whether a proxy's workload gets traffic."""
    return not waits_for(view, proxy)


def waits_for(view: View, proxy: ProxyName) -> str:
    """Say in a clause why a proxy's workload gets no traffic yet, or any more; empty where it does."""
    mode = view.settings.endpoint_admission
    match view.admissions.get(proxy):
        case Admission.ADMITTED:
            return ""
        case Admission.WITHDRAWN:
            return WITHDRAWN
        case None:
            return "" if mode is EndpointAdmission.OFF else _WAITS_FOR[mode]


def can_take_traffic(view: View, endpoint: Endpoint) -> bool:
    """Say whether a sidecar in front of an endpoint can; one without a sidecar has nobody to wait for."""
    return not endpoint.proxies or any(is_admitted(view, each) for each in endpoint.proxies)


@derived
def taking_traffic(view: View, key: ServiceKey, port: ServicePort) -> tuple[Endpoint, ...]:
    """Return the endpoints of a service's port to which calls are sent, sorted.

    Those that are ready; where none is, those that are about to end, as Kubernetes' own proxies do.
    """
    there = (each for each in endpoints(view, key, port) if each.health is not Health.UNREADY)
    able = tuple(each for each in there if can_take_traffic(view, each))
    return tuple(each for each in able if each.health is Health.READY) or able


def why_withheld(view: View, endpoint: Endpoint) -> str:
    """Say in a clause why an endpoint by itself gets no calls, empty where it may get some."""
    if endpoint.health is Health.UNREADY:
        return "it is not ready"
    return "" if can_take_traffic(view, endpoint) else waits_for(view, endpoint.proxies[0])
