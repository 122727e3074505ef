"""Manifests as YAML texts, one document each; the namespace is `shop` by default.

Fields that not every manifest of a kind has are given as YAML in flow style: `spec="weight: 2"`.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from meshwright.mesh.kinds import SERVICE_ACCOUNT, WORKLOAD
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey

DRIVER: Final = "meshwright.dev/sidecar-driver"
_VERSIONS: Final = {
    "Namespace": "v1",
    "Service": "v1",
    "ServiceAccount": "v1",
    "Workload": "meshwright.dev/v1alpha1",
    "MeshConfig": "config.openservicemesh.io/v1alpha2",
    "HTTPRouteGroup": "specs.smi-spec.io/v1alpha4",
    "TCPRoute": "specs.smi-spec.io/v1alpha4",
    "TrafficTarget": "access.smi-spec.io/v1alpha3",
    "TrafficSplit": "split.smi-spec.io/v1alpha4",
    "HTTPRoute": "gateway.networking.k8s.io/v1",
    "GRPCRoute": "gateway.networking.k8s.io/v1",
}


def manifest(
    kind: str, name: str, spec: str | None = None, *, namespace: str = "shop", metadata: str = ""
) -> str:
    """Write any manifest; `namespace` may be empty."""
    where = f", namespace: {namespace}" if namespace else ""
    more = f", {metadata}" if metadata else ""
    text = "" if spec is None else f"spec: {{{spec}}}\n"
    head = f"apiVersion: {_VERSIONS[kind]}\nkind: {kind}\nmetadata: {{name: {name}{where}{more}}}\n"
    return head + text


def joined(*documents: str) -> str:
    """Write several manifests as one file."""
    return "---\n".join(documents)


def written(documents: Iterable[Mapping[str, Any]]) -> str:
    """Write manifests as one file in JSON, which is YAML too, and takes a fraction of the time."""
    return joined(*(f"{json.dumps(document)}\n" for document in documents))


def account(name: str) -> str:
    """Write a ServiceAccount."""
    return manifest("ServiceAccount", name)


def account_key(name: str) -> ObjectKey:
    """Return the key of the object of `account`."""
    return ObjectKey(SERVICE_ACCOUNT, Namespace("shop"), name)


def port(number: int, target: int | str = 8080, protocol: str = "http", name: str = "") -> str:
    """Write a service's port; its name begins with the protocol, such as `http`."""
    return f"{{name: {name or protocol}, port: {number}, targetPort: {target}}}"


def service(
    name: str, *ports: str, app: str | None = "", spec: str = "", namespace: str = "shop", metadata: str = ""
) -> str:
    """Write a Service that selects `app=<app>`, by default its own name; `app=None` is no selector."""
    lines = [] if app is None else [f"selector: {{app: {app or name}}}"]
    lines += [f"ports: [{', '.join(ports or (port(80),))}]", *([spec] if spec else [])]
    return manifest("Service", name, ", ".join(lines), namespace=namespace, metadata=metadata)


def workload(
    name: str,
    address: str,
    *,
    app: str | None = "",
    account: str = "",
    uuid: str | None = "",
    spec: str = "",
    namespace: str = "shop",
    annotations: str = "",
) -> str:
    """Write a Workload with label `app`, ServiceAccount and UUID, all by default its name; None is none."""
    metadata = [] if app is None else [f"labels: {{app: {app or name}}}"]
    metadata += [f"annotations: {{{annotations}}}"] if annotations else []
    lines = [f"address: {address}", f"serviceAccount: {account or name}"]
    lines += [] if uuid is None else [f"uuid: {uuid or name}"]
    lines += [spec] if spec else []
    return manifest("Workload", name, ", ".join(lines), namespace=namespace, metadata=", ".join(metadata))


def workload_key(name: str) -> ObjectKey:
    """Return the key of the object of `workload`."""
    return ObjectKey(WORKLOAD, Namespace("shop"), name)


def upstream(name: str, address: str, local_port: int, number: int = 80) -> str:
    """Write an upstream of a workload: a service's port, and the local address for the application."""
    return f"{{service: {name}, port: {number}, address: {address}, localPort: {local_port}}}"


def match(name: str, path: str = "", more: str = "") -> str:
    """Write an HTTP match."""
    lines = [f"name: {name}", *([f"pathRegex: '{path}'"] if path else []), *([more] if more else [])]
    return f"{{{', '.join(lines)}}}"


def route_group(name: str, *matches: str, namespace: str = "shop") -> str:
    """Write an HTTPRouteGroup."""
    return manifest("HTTPRouteGroup", name, f"matches: [{', '.join(matches)}]", namespace=namespace)


def tcp_route(name: str, *ports: int) -> str:
    """Write a TCPRoute."""
    return manifest("TCPRoute", name, f"matches: {{ports: [{', '.join(map(str, ports))}]}}" if ports else "")


def http(name: str, *matches: str) -> str:
    """Write a rule for an HTTPRouteGroup."""
    these = f", matches: [{', '.join(matches)}]" if matches else ""
    return f"{{kind: HTTPRouteGroup, name: {name}{these}}}"


def tcp(name: str) -> str:
    """Write a rule for a TCPRoute."""
    return f"{{kind: TCPRoute, name: {name}}}"


def target(name: str, source: str, destination: str, *rules: str, namespace: str = "shop") -> str:
    """Write a TrafficTarget from one ServiceAccount to one."""
    there, here = (
        f"{{kind: ServiceAccount, name: {each}, namespace: {namespace}}}" for each in (destination, source)
    )
    spec = f"destination: {there}, sources: [{here}], rules: [{', '.join(rules)}]"
    return manifest("TrafficTarget", name, spec, namespace=namespace)


def split(name: str, apex: str, *backends: tuple[str, int], group: str = "", namespace: str = "shop") -> str:
    """Write a TrafficSplit, for the requests of an HTTPRouteGroup if one is named."""
    shares = ", ".join(f"{{service: {item}, weight: {weight}}}" for item, weight in backends)
    these = f", matches: [{http(group)}]" if group else ""
    spec = f"service: {apex}, backends: [{shares}]{these}"
    return manifest("TrafficSplit", name, spec, namespace=namespace)


def gateway_route(
    name: str, parent: str, *rules: str, kind: str = "HTTPRoute", namespace: str = "shop"
) -> str:
    """Write a route of the Gateway API for the calls to a Service of the namespace `shop`."""
    parents = f'[{{group: "", kind: Service, name: {parent}, namespace: shop, port: 80}}]'
    return manifest(kind, name, f"parentRefs: {parents}, rules: [{', '.join(rules)}]", namespace=namespace)


def rule(matches: str, *backends: tuple[str, int], more: str = "") -> str:
    """Write a rule of a route with matches in flow style, and backends at port 80 with their weights."""
    shares = ", ".join(f"{{name: {name}, port: 80, weight: {weight}}}" for name, weight in backends)
    return f"{{matches: [{matches}], backendRefs: [{shares}]{f', {more}' if more else ''}}}"


def mesh_config(spec: str) -> str:
    """Write the MeshConfig."""
    return manifest("MeshConfig", "osm-mesh-config", spec, namespace="osm-system")


PERMISSIVE: Final = mesh_config("traffic: {enablePermissiveTrafficPolicyMode: true}")
