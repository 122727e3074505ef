"""Kubernetes objects of the benchmarks' mesh (`benchmarks.meshes.generator`), for any control plane.

Each service has a Service, a ServiceAccount, an EndpointSlice and running Pods. The Pods have the labels by
which each control plane recognises a sidecar.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.meshes import generator as meshes
from meshwright.mesh.workload import Workload

Document = dict[str, Any]

NODE: Final = "node-0"
_CORE: Final = "/api/v1"
_DISCOVERY: Final = "/apis/discovery.k8s.io/v1"
MUTUAL: Final = {"security.istio.io/tlsMode": "istio"}
"""Label of Istio's injector for a Pod whose sidecar accepts mTLS."""
UUID: Final = "osm-proxy-uuid"
"""Label with the proxy's UUID in its certificate, set by our injector."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of objects: the path of its group and version, its plural, and its name."""

    group: str
    plural: str
    name: str

    def collection(self, namespace: str) -> str:
        """Return the path of all objects in a namespace, for example `/api/v1/namespaces/team-7/pods`.

        With an empty `namespace` the path is that of all objects in the cluster.
        """
        return (
            f"{self.group}/namespaces/{namespace}/{self.plural}"
            if namespace
            else f"{self.group}/{self.plural}"
        )


NAMESPACE: Final = Kind(_CORE, "namespaces", "Namespace")
CONFIG_MAP: Final = Kind(_CORE, "configmaps", "ConfigMap")
SERVICE: Final = Kind(_CORE, "services", "Service")
ACCOUNT: Final = Kind(_CORE, "serviceaccounts", "ServiceAccount")
POD: Final = Kind(_CORE, "pods", "Pod")
SLICE: Final = Kind(_DISCOVERY, "endpointslices", "EndpointSlice")


@dataclass(frozen=True, slots=True)
class Object:
    """An object to write: its kind and contents; `status` is written by a request of its own."""

    kind: Kind
    namespace: str
    name: str
    body: Document
    status: Document | None = None

    @property
    def path(self) -> str:
        """Return the object's path, for example `/api/v1/namespaces/team-7/services/service-17`."""
        return f"{self.kind.collection(self.namespace)}/{self.name}"

    def document(self) -> Document:
        """Return the document for its creation."""
        own = self.body.get("metadata", {})
        metadata = {"name": self.name} | ({"namespace": self.namespace} if self.namespace else {}) | own
        group = self.kind.group.removeprefix("/apis/").removeprefix("/api/")
        return {**self.body, "apiVersion": group, "kind": self.kind.name, "metadata": metadata}


def namespaces(*more: str) -> Iterator[Object]:
    """Yield the Namespaces of the services, and those with the given names."""
    for name in (*more, *(f"team-{number}" for number in range(meshes.NAMESPACES))):
        yield Object(NAMESPACE, "", name, {})


def service(number: int, replicas: int = 2) -> Iterator[Object]:
    """Yield the objects of one service (Service, Pods and others), without policies."""
    namespace, name = place(number)
    ports = [
        {"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP", "appProtocol": "http"},
    ]
    yield Object(ACCOUNT, namespace, name, {})
    yield Object(SERVICE, namespace, name, {"spec": {"selector": {"app": name}, "ports": ports}})
    workloads = [meshes.workload(number, replica) for replica in range(replicas)]
    yield from map(pod, workloads)
    yield endpoints(number, workloads)


def endpoints(number: int, workloads: Sequence[Workload], unready: int | None = None) -> Object:
    """Return the EndpointSlice of a service; one replica can be unready."""
    namespace, name = place(number)
    body = {
        "metadata": {"labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP", "appProtocol": "http"}],
        "endpoints": [
            {
                "addresses": [str(workload.address)],
                "conditions": {"ready": ready, "serving": ready, "terminating": False},
                "nodeName": NODE,
                "targetRef": {"kind": "Pod", "name": workload.key.name, "namespace": namespace},
            }
            for replica, workload in enumerate(workloads)
            for ready in [replica != unready]
        ],
    }
    return Object(SLICE, namespace, f"{name}-slice", body)


def pod(workload: Workload) -> Object:
    """Return the running Pod of a replica."""
    containers = [{"name": "app", "image": "none", "ports": [{"name": "http", "containerPort": 8080}]}]
    spec = {
        "nodeName": NODE,
        "serviceAccountName": str(workload.identity.service_account),
        "containers": containers,
    }
    address = str(workload.address)
    status = {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [
            {"type": item, "status": "True"} for item in ("Ready", "ContainersReady", "PodScheduled")
        ],
    }
    body = {
        "metadata": {"labels": {**dict(workload.labels), **MUTUAL, UUID: str(workload.uuid)}},
        "spec": spec,
    }
    return Object(POD, str(workload.key.namespace), workload.key.name, body, status)


def place(number: int) -> tuple[str, str]:
    """Return namespace and name of a service, for example `team-7` and `service-17`."""
    key = meshes.service_key(number)
    return str(key.namespace), str(key.name)
