"""Admission of endpoints: a workload with a sidecar gets traffic once that sidecar can take it.

It decides about addresses alone. Who may answer, where calls are routed and whom a server lets in are what
they were before and will be after, so that an endpoint which is not admitted yet leaves a service with fewer
addresses, or with none (503), and never takes the service out of anybody's configuration.
"""

from typing import Final

from catalog.store.settings import EndpointAdmission
from catalog.store.view import View
from mesh.identity import ProxyName
from mesh.workload import Endpoint

WAITS_FOR: Final = {
    EndpointAdmission.OFF: "nothing",
    EndpointAdmission.IDENTITY: "its sidecar has not connected with its certificate",
    EndpointAdmission.READY: "its sidecar has not acknowledged its first listeners",
}
"""What an endpoint that is not admitted waits for."""


def is_admitted(view: View, proxy: ProxyName) -> bool:
    """Say whether a proxy's workload gets traffic."""
    return view.settings.endpoint_admission is EndpointAdmission.OFF or proxy in view.admitted


def takes_traffic(view: View, endpoint: Endpoint) -> bool:
    """Say whether calls may be sent to an endpoint; one without a sidecar has nobody to wait for."""
    return not endpoint.proxies or any(is_admitted(view, each) for each in endpoint.proxies)
