"""OSM's policies in a view, with their indexes."""

from typing import Final

from catalog.store.view import IN_VIEW, View, kind
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import (
    EGRESS,
    EXTENSION_SERVICE,
    INGRESS_BACKEND,
    MESH_ROOT_CERTIFICATE,
    RETRY,
    TELEMETRY,
    UPSTREAM_TRAFFIC_SETTING,
)
from meshwright.mesh.policies.authorization import ExternalAuthorization
from meshwright.mesh.policies.egress import Egress
from meshwright.mesh.policies.ingress import IngressBackend
from meshwright.mesh.policies.limits import UpstreamTrafficSetting
from meshwright.mesh.policies.retries import Retry
from meshwright.mesh.policies.roots import MeshRootCertificate
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.policies.telemetry import ExtensionService, Telemetry
from meshwright.mesh.service import ServiceKey

retries: Final = kind(Retry, RETRY, "Retries", lambda retry: retry.key)
settings: Final = kind(
    UpstreamTrafficSetting,
    UPSTREAM_TRAFFIC_SETTING,
    "UpstreamTrafficSettings",
    lambda setting: setting.key,
)
ingress_backends: Final = kind(
    IngressBackend, INGRESS_BACKEND, "IngressBackends", lambda ingress_backend: ingress_backend.key
)


def _services(_: PolicyKey, ingress_backend: IngressBackend) -> tuple[ServiceKey, ...]:
    return tuple(dict.fromkeys(backend.service for backend in ingress_backend.backends))


retries_by_source: Final = IN_VIEW.index("Retries by source", retries, lambda _, retry: (retry.source,))
settings_by_host: Final = IN_VIEW.index(
    "UpstreamTrafficSettings by host", settings, lambda _, setting: (setting.host,)
)
ingress_by_service: Final = IN_VIEW.index("IngressBackends by service", ingress_backends, _services)
"""IngressBackends by the services that they expose."""

egresses: Final = kind(Egress, EGRESS, "Egresses", lambda result: result.key)


def _sources(_: PolicyKey, egress: Egress) -> tuple[ServiceIdentity, ...]:
    return egress.sources


egresses_by_source: Final = IN_VIEW.index("Egresses by source", egresses, _sources)


def _limits(_: PolicyKey, egress: Egress) -> tuple[PolicyKey, ...]:
    return () if egress.limits is None else (PolicyKey(egress.key.namespace, egress.limits),)


egresses_by_limits: Final = IN_VIEW.index("Egresses by UpstreamTrafficSetting", egresses, _limits)

root_certificates: Final = kind(
    MeshRootCertificate, MESH_ROOT_CERTIFICATE, "MeshRootCertificates", lambda root: root.key
)

telemetries: Final = kind(Telemetry, TELEMETRY, "Telemetries", lambda telemetry: telemetry.key)
telemetries_in: Final = IN_VIEW.index(
    "Telemetries by namespace", telemetries, lambda key, _: (key.namespace,)
)
extension_services: Final = kind(
    ExtensionService, EXTENSION_SERVICE, "ExtensionServices", lambda service: service.key
)


def server_of(view: View, authorization: ExternalAuthorization) -> HostPort | None:
    """Return the address of the ExtensionService named by an object; `None` if missing or not named."""
    service = None if authorization.service is None else extension_services(view).get(authorization.service)
    return None if service is None else service.server
