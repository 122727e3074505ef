"""The benchmarks' mesh (`benchmarks.meshes`) as Kubernetes and Istio objects, and its sidecars as Nodes.

Per service a Service, a ServiceAccount, an EndpointSlice, two running Pods and an AuthorizationPolicy that
admits its five callers; for a tenth a VirtualService that splits. The narrow scope adds a Sidecar for each,
with the hosts that the service calls: Istio at its best.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks import meshes
from mesh.config import TlsVersion
from mesh.workload import Workload
from protos.envoy.config.core.v3 import base_pb2

Document = dict[str, Any]

SYSTEM: Final = "istio-system"
NODE: Final = "node-0"
VERSION: Final = "1.31.0"
"""What the sidecars say that they are; the control plane's own is a development version of it."""
_CORE: Final = "/api/v1"
_NETWORKING: Final = "/apis/networking.istio.io/v1"
_SECURITY: Final = "/apis/security.istio.io/v1"
_DISCOVERY: Final = "/apis/discovery.k8s.io/v1"
_MUTUAL: Final = {"security.istio.io/tlsMode": "istio"}
"""The injector's label of a Pod whose sidecar speaks mTLS."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind: the path of its group and version, its plural, and its name there."""

    group: str
    plural: str
    name: str

    def collection(self, namespace: str) -> str:
        """Return the path of all objects of a namespace; of the cluster's if it is empty."""
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
VIRTUAL_SERVICE: Final = Kind(_NETWORKING, "virtualservices", "VirtualService")
SIDECAR: Final = Kind(_NETWORKING, "sidecars", "Sidecar")
POLICY: Final = Kind(_SECURITY, "authorizationpolicies", "AuthorizationPolicy")


@dataclass(frozen=True, slots=True)
class Object:
    """An object to be written: its kind, and what is in it; `status` is written in a request of its own."""

    kind: Kind
    namespace: str
    name: str
    body: Document
    status: Document | None = None

    @property
    def path(self) -> str:
        """Return where it is."""
        return f"{self.kind.collection(self.namespace)}/{self.name}"

    def document(self) -> Document:
        """Return what is sent to create it."""
        own = self.body.get("metadata", {})
        metadata = {"name": self.name} | ({"namespace": self.namespace} if self.namespace else {}) | own
        group = self.kind.group.removeprefix("/apis/").removeprefix("/api/")
        return {**self.body, "apiVersion": group, "kind": self.kind.name, "metadata": metadata}


def namespaces() -> Iterator[Object]:
    """Yield the namespaces: the control plane's and those of the services."""
    for name in (SYSTEM, *(f"team-{number}" for number in range(meshes.NAMESPACES))):
        yield Object(NAMESPACE, "", name, {})


def settings(version: TlsVersion = TlsVersion.V1_2) -> Object:
    """Return the mesh's settings as an installation has them, with a least TLS version."""
    least = {TlsVersion.V1_2: "TLSV1_2", TlsVersion.V1_3: "TLSV1_3"}[version]
    mesh = (
        "defaultConfig: {discoveryAddress: 'istiod.istio-system.svc:15012'}\n"
        "defaultProviders: {metrics: [prometheus]}\n"
        "enablePrometheusMerge: true\n"
        "rootNamespace: istio-system\n"
        "trustDomain: cluster.local\n"
        f"meshMTLS: {{minProtocolVersion: {least}}}\n"
    )
    return Object(CONFIG_MAP, SYSTEM, "istio", {"data": {"mesh": mesh}})


def service(number: int, services: int, sources: Sequence[int]) -> Iterator[Object]:
    """Yield what belongs to one service, which these others may call."""
    namespace, name = _place(number)
    ports = [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}]
    yield Object(ACCOUNT, namespace, name, {})
    yield Object(SERVICE, namespace, name, {"spec": {"selector": {"app": name}, "ports": ports}})
    for replica in range(2):
        yield _pod(meshes.workload(number, replica))
    yield endpoints(number, [meshes.workload(number, replica) for replica in range(2)])
    yield policy(number, sources)
    if number < services and number % meshes.SPLIT_EVERY == 0:
        yield split(number, services, 1)


def endpoints(number: int, workloads: Sequence[Workload]) -> Object:
    """Return the EndpointSlice of a service."""
    namespace, name = _place(number)
    body = {
        "metadata": {"labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        "endpoints": [
            {
                "addresses": [str(each.address)],
                "conditions": {"ready": True, "serving": True, "terminating": False},
                "nodeName": NODE,
                "targetRef": {"kind": "Pod", "name": each.key.name, "namespace": namespace},
            }
            for each in workloads
        ],
    }
    return Object(SLICE, namespace, f"{name}-slice", body)


def policy(number: int, sources: Sequence[int], narrow: int | None = None) -> Object:
    """Return who may do what at a service: all may read and write, but `narrow`, which may only read."""
    namespace, name = _place(number)

    def principal(source: int) -> str:
        where, who = _place(source)
        return f"cluster.local/ns/{where}/sa/{who}"

    def rule(who: Sequence[str], *methods: str) -> Document:
        paths = {"GET": f"/{name}/*", "POST": f"/{name}"}
        to = [{"operation": {"methods": [each], "paths": [paths[each]]}} for each in methods]
        return {"from": [{"source": {"principals": list(who)}}], "to": to}

    others = [principal(each) for each in sources if each != narrow]
    rules = [rule(others, "GET", "POST")] if others else []
    if narrow is not None:
        rules.append(rule([principal(narrow)], "GET"))
    spec = {"selector": {"matchLabels": {"app": name}}, "action": "ALLOW", "rules": rules}
    return Object(POLICY, namespace, name, {"spec": spec})


def split(number: int, services: int, weight: int) -> Object:
    """Return the VirtualService of a service that shares its calls with another of its namespace."""
    namespace, name = _place(number)
    other = host(meshes.backend(number, services))
    routes = [
        {"destination": {"host": each, "port": {"number": 80}}, "weight": share}
        for each, share in ((host(number), 10), (other, weight))
    ]
    return Object(
        VIRTUAL_SERVICE, namespace, name, {"spec": {"hosts": [host(number)], "http": [{"route": routes}]}}
    )


def sidecar(number: int, services: int) -> Object:
    """Return the scope of a service's sidecars: the hosts that it calls, and those that they are split to."""
    namespace, name = _place(number)
    called = meshes.called(number, services)
    further = (meshes.backend(each, services) for each in called if each % meshes.SPLIT_EVERY == 0)
    hosts = [f"{_place(each)[0]}/{host(each)}" for each in dict.fromkeys((*called, *further))]
    spec = {"workloadSelector": {"labels": {"app": name}}, "egress": [{"hosts": hosts}]}
    return Object(SIDECAR, namespace, name, {"spec": spec})


def host(number: int) -> str:
    """Return the name by which a service is called."""
    namespace, name = _place(number)
    return f"{name}.{namespace}.svc.cluster.local"


def node(workload: Workload) -> bytes:
    """Return what a sidecar says of itself, as the agent beside it does."""
    namespace, app = str(workload.key.namespace), str(workload.service)
    made = base_pb2.Node(
        id=f"sidecar~{workload.address}~{workload.key.name}.{namespace}~{namespace}.svc.cluster.local",
        cluster=f"{app}.{namespace}",
        user_agent_name="envoy",
    )
    metadata: Mapping[str, Any] = {
        "NAME": workload.key.name,
        "NAMESPACE": namespace,
        "INSTANCE_IPS": str(workload.address),
        "CLUSTER_ID": "Kubernetes",
        "MESH_ID": "cluster.local",
        "ISTIO_VERSION": VERSION,
        "INTERCEPTION_MODE": "REDIRECT",
        "SERVICE_ACCOUNT": str(workload.identity.service_account),
        "WORKLOAD_NAME": app,
        "NODE_NAME": NODE,
        "LABELS": _labels(workload),
        "PROXY_CONFIG": {"discoveryAddress": "istiod.istio-system.svc:15012", "concurrency": 2},
    }
    made.metadata.update(metadata)
    return bytes(made.SerializeToString())


def _pod(workload: Workload) -> Object:
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
            {"type": each, "status": "True"} for each in ("Ready", "ContainersReady", "PodScheduled")
        ],
    }
    body = {"metadata": {"labels": _labels(workload)}, "spec": spec}
    return Object(POD, str(workload.key.namespace), workload.key.name, body, status)


def _labels(workload: Workload) -> dict[str, str]:
    return {**dict(workload.labels), **_MUTUAL}


def _place(number: int) -> tuple[str, str]:
    key = meshes.service_key(number)
    return str(key.namespace), str(key.name)
