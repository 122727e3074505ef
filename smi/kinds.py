"""Which kinds are read, in which versions and by whom, and which are known and not used."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mesh.objects import MeshObject
from smi.access import traffic_target
from smi.core import namespace, service, service_account
from smi.endpoints import endpoint_slice, endpoints, pod
from smi.manifest import Manifest
from smi.mesh_config import mesh_config
from smi.specs import http_route_group, tcp_route, udp_route
from smi.split import traffic_split
from smi.workload import workload

V1_TO_4 = ("v1alpha1", "v1alpha2", "v1alpha3", "v1alpha4")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind that is read: its API group, versions, drafts refused by name, and reader."""

    group: str
    versions: tuple[str, ...]
    read: Callable[[Manifest], MeshObject | None]
    drafts: tuple[str, ...] = ()

    @property
    def api_versions(self) -> tuple[str, ...]:
        """Return what may stand in apiVersion."""
        return tuple(f"{self.group}/{version}" if self.group else version for version in self.versions)


READ: Mapping[str, Kind] = {
    "TrafficTarget": Kind("access.smi-spec.io", V1_TO_4[:3], traffic_target, drafts=("v1alpha4",)),
    "HTTPRouteGroup": Kind("specs.smi-spec.io", V1_TO_4, http_route_group),
    "TCPRoute": Kind("specs.smi-spec.io", V1_TO_4, tcp_route),
    "UDPRoute": Kind("specs.smi-spec.io", V1_TO_4[3:], udp_route),
    "TrafficSplit": Kind("split.smi-spec.io", V1_TO_4, traffic_split),
    "MeshConfig": Kind("config.openservicemesh.io", V1_TO_4[:2], mesh_config),
    "Workload": Kind("meshwright.dev", ("v1alpha1",), workload),
    "Namespace": Kind("", ("v1",), namespace),
    "ServiceAccount": Kind("", ("v1",), service_account),
    "Service": Kind("", ("v1",), service),
    "Pod": Kind("", ("v1",), pod),
    "Endpoints": Kind("", ("v1",), endpoints),
    "EndpointSlice": Kind("discovery.k8s.io", ("v1", "v1beta1"), endpoint_slice),
}

NOT_USED: Mapping[str, frozenset[str]] = {
    "": frozenset(
        {
            "ConfigMap",
            "Event",
            "LimitRange",
            "Node",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "PodTemplate",
            "ReplicationController",
            "ResourceQuota",
            "Secret",
        }
    ),
    "admissionregistration.k8s.io": frozenset(
        {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
    ),
    "apiextensions.k8s.io": frozenset({"CustomResourceDefinition"}),
    "apiregistration.k8s.io": frozenset({"APIService"}),
    "apps": frozenset({"ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"}),
    "autoscaling": frozenset({"HorizontalPodAutoscaler"}),
    "batch": frozenset({"CronJob", "Job"}),
    "config.openservicemesh.io": frozenset({"ExtensionService", "MeshRootCertificate"}),
    "coordination.k8s.io": frozenset({"Lease"}),
    "networking.k8s.io": frozenset({"Ingress", "IngressClass", "NetworkPolicy"}),
    "policy": frozenset({"PodDisruptionBudget"}),
    "policy.openservicemesh.io": frozenset(
        {"Egress", "IngressBackend", "Retry", "Telemetry", "UpstreamTrafficSetting"}
    ),
    "rbac.authorization.k8s.io": frozenset({"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}),
    "scheduling.k8s.io": frozenset({"PriorityClass"}),
    "storage.k8s.io": frozenset({"StorageClass"}),
}
"""Kinds that stand beside a mesh's in usual manifests, by API group; any version of them."""
