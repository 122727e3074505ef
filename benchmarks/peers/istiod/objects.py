"""Istio's objects for the benchmarks' mesh, and Nodes for its sidecars.

Each service has an AuthorizationPolicy that allows its five callers; every tenth service has a VirtualService
with a split. The narrow scope adds a Sidecar resource for each service with the hosts that the service calls,
which is Istio at its best.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from benchmarks.in_kubernetes.objects import CONFIG_MAP, MUTUAL, NODE, Document, Kind, Object, place
from benchmarks.meshes import generator as meshes
from meshwright.mesh.config import TlsVersion
from meshwright.mesh.workload import Workload
from protos.envoy.config.core.v3 import base_pb2

SYSTEM: Final = "istio-system"
VERSION: Final = "1.31.0"
"""Istio version presented by the sidecars; the control plane is a development version of it."""
_NETWORKING: Final = "/apis/networking.istio.io/v1"
_SECURITY: Final = "/apis/security.istio.io/v1"

VIRTUAL_SERVICE: Final = Kind(_NETWORKING, "virtualservices", "VirtualService")
SIDECAR: Final = Kind(_NETWORKING, "sidecars", "Sidecar")
POLICY: Final = Kind(_SECURITY, "authorizationpolicies", "AuthorizationPolicy")


def settings(version: TlsVersion = TlsVersion.V1_2) -> Object:
    """Return the ConfigMap of Istio's mesh settings, with a minimum TLS version."""
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


def policy(number: int, sources: Sequence[int], narrow: int | None = None) -> Object:
    """Return the policy of a service: callers may read and write, and the caller `narrow` may only read."""
    namespace, name = place(number)

    def principal(source: int) -> str:
        where, who = place(source)
        return f"cluster.local/ns/{where}/sa/{who}"

    def rule(principals: Sequence[str], *methods: str) -> Document:
        paths = {"GET": f"/{name}/*", "POST": f"/{name}"}
        to = [{"operation": {"methods": [method], "paths": [paths[method]]}} for method in methods]
        return {"from": [{"source": {"principals": list(principals)}}], "to": to}

    others = [principal(item) for item in sources if item != narrow]
    rules = [rule(others, "GET", "POST")] if others else []
    if narrow is not None:
        rules.append(rule([principal(narrow)], "GET"))
    spec = {"selector": {"matchLabels": {"app": name}}, "action": "ALLOW", "rules": rules}
    return Object(POLICY, namespace, name, {"spec": spec})


def split(number: int, services: int, weight: int) -> Object:
    """Return the VirtualService that splits a service's calls with another service of its namespace."""
    namespace, name = place(number)
    other = host(meshes.backend(number, services))
    routes = [
        {"destination": {"host": item, "port": {"number": 80}}, "weight": share}
        for item, share in ((host(number), 10), (other, weight))
    ]
    return Object(
        VIRTUAL_SERVICE, namespace, name, {"spec": {"hosts": [host(number)], "http": [{"route": routes}]}}
    )


def sidecar(number: int, services: int) -> Object:
    """Return the Sidecar resource of a service: the hosts that it calls, and the backends of their splits."""
    namespace, name = place(number)
    called = meshes.called(number, services)
    further = (meshes.backend(item, services) for item in called if item % meshes.SPLIT_EVERY == 0)
    hosts = [f"{place(item)[0]}/{host(item)}" for item in dict.fromkeys((*called, *further))]
    spec = {"workloadSelector": {"labels": {"app": name}}, "egress": [{"hosts": hosts}]}
    return Object(SIDECAR, namespace, name, {"spec": spec})


def host(number: int) -> str:
    """Return the host name of a service, for example `service-17.team-7.svc.cluster.local`."""
    namespace, name = place(number)
    return f"{name}.{namespace}.svc.cluster.local"


def node(workload: Workload) -> bytes:
    """Return the encoded xDS Node of a sidecar, as Istio's agent makes it."""
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


def _labels(workload: Workload) -> dict[str, str]:
    return {**dict(workload.labels), **MUTUAL}
