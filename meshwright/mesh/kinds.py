"""Kinds of objects, and the kinds that are read as another.

A kind is a name with its API group: other projects may define another Service or TCPRoute.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Kind(NamedTuple):
    """A kind of objects: the name, and the API group, empty for the core group of Kubernetes.

    Kinds are sorted by name. `str()` is the name alone, or, for a name in use by another kind, the name with
    the group as in kubectl: `TCPRoute.gateway.networking.k8s.io`.
    """

    name: str
    group: str = ""

    @property
    def full(self) -> str:
        """Name of the kind, followed by the API group, if there is one."""
        return f"{self.name}.{self.group}" if self.group else self.name

    def __str__(self) -> str:
        return self.name if _KNOWN.get(self.name, self) == self else self.full


_KNOWN: Final[dict[str, Kind]] = {}
"""Kind for a name without a group: the first kind with this name."""


def _known(name: str, group: str = "") -> Kind:
    kind = Kind(name, group)
    _KNOWN.setdefault(name, kind)
    return kind


NAMESPACE: Final = _known("Namespace")
SERVICE_ACCOUNT: Final = _known("ServiceAccount")
SERVICE: Final = _known("Service")
POD: Final = _known("Pod")
ENDPOINTS: Final = _known("Endpoints")
POD_TEMPLATE: Final = _known("PodTemplate")
REPLICATION_CONTROLLER: Final = _known("ReplicationController")
DAEMON_SET: Final = _known("DaemonSet", "apps")
DEPLOYMENT: Final = _known("Deployment", "apps")
REPLICA_SET: Final = _known("ReplicaSet", "apps")
STATEFUL_SET: Final = _known("StatefulSet", "apps")
CRON_JOB: Final = _known("CronJob", "batch")
JOB: Final = _known("Job", "batch")
CONFIG_MAP: Final = _known("ConfigMap")
SECRET: Final = _known("Secret")
ENDPOINT_SLICE: Final = _known("EndpointSlice", "discovery.k8s.io")

TRAFFIC_TARGET: Final = _known("TrafficTarget", "access.smi-spec.io")
HTTP_ROUTE_GROUP: Final = _known("HTTPRouteGroup", "specs.smi-spec.io")
TCP_ROUTE: Final = _known("TCPRoute", "specs.smi-spec.io")
UDP_ROUTE: Final = _known("UDPRoute", "specs.smi-spec.io")
TRAFFIC_SPLIT: Final = _known("TrafficSplit", "split.smi-spec.io")
MESH_CONFIG: Final = _known("MeshConfig", "config.openservicemesh.io")
MESH_ROOT_CERTIFICATE: Final = _known("MeshRootCertificate", "config.openservicemesh.io")
RETRY: Final = _known("Retry", "policy.openservicemesh.io")
UPSTREAM_TRAFFIC_SETTING: Final = _known("UpstreamTrafficSetting", "policy.openservicemesh.io")
EGRESS: Final = _known("Egress", "policy.openservicemesh.io")
INGRESS_BACKEND: Final = _known("IngressBackend", "policy.openservicemesh.io")
TELEMETRY: Final = _known("Telemetry", "policy.openservicemesh.io")
EXTENSION_SERVICE: Final = _known("ExtensionService", "config.openservicemesh.io")
WORKLOAD: Final = _known("Workload", "meshwright.dev")
ROUTE_POLICY: Final = _known("RoutePolicy", "policy.meshwright.dev")
UPSTREAM_POLICY: Final = _known("UpstreamPolicy", "policy.meshwright.dev")
MUTUAL_TLS: Final = _known("MutualTLS", "policy.meshwright.dev")
EXTERNAL_AUTHORIZATION: Final = _known("ExternalAuthorization", "policy.meshwright.dev")
CLIENT_TRAFFIC_POLICY: Final = _known("ClientTrafficPolicy", "policy.meshwright.dev")

GATEWAY_API: Final = "gateway.networking.k8s.io"
"""API group of the Gateway API."""
HTTP_ROUTE: Final = _known("HTTPRoute", GATEWAY_API)
GRPC_ROUTE: Final = _known("GRPCRoute", GATEWAY_API)
TLS_ROUTE: Final = _known("TLSRoute", GATEWAY_API)
# SMI's TCPRoute keeps the plain name, so `str()` of this kind has the group.
GATEWAY_TCP_ROUTE: Final = _known("TCPRoute", GATEWAY_API)
REFERENCE_GRANT: Final = _known("ReferenceGrant", GATEWAY_API)
GATEWAY: Final = _known("Gateway", GATEWAY_API)
GATEWAY_CLASS: Final = _known("GatewayClass", GATEWAY_API)
LISTENER_SET: Final = _known("ListenerSet", GATEWAY_API)
BACKEND_TLS_POLICY: Final = _known("BackendTLSPolicy", GATEWAY_API)
EXPERIMENTAL_GATEWAY_API: Final = "gateway.networking.x-k8s.io"
"""API group of the Gateway API's experimental kinds."""
# Not an input of the mesh: only its status is written.
X_MESH: Final = Kind("XMesh", EXPERIMENTAL_GATEWAY_API)

# Inputs that are not objects have kinds too, because a wave names each of its causes by a kind.
ADMISSION: Final = Kind("admission")
CERTIFICATE: Final = Kind("certificate")
REJECTION: Final = Kind("rejection")
SETTINGS: Final = Kind("settings")
TAP: Final = Kind("tap")
TRUST_BUNDLE: Final = Kind("trust bundle")
"""Pseudo-kind without objects: the roots, on which configurations depend too."""

READ_AS: Final[Mapping[Kind, Kind]] = {POD: WORKLOAD, ENDPOINTS: ENDPOINT_SLICE}
"""Kinds that are read as another: a Pod is a workload, Endpoints are a slice."""

FORMS: Final[Mapping[Kind, tuple[Kind, ...]]] = {main: (other, main) for other, main in READ_AS.items()}
"""Kinds in which objects of a kind may be written."""
