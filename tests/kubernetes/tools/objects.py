"""Objects of a cluster in the form of their owners and of a kubelet's reports."""

from typing import Any, Final

Document = dict[str, Any]

NODE: Final = "node-0"
"""The Node that Pods of tests run on. Its kubelet is who tests: it writes what a kubelet would report."""


def node() -> Document:
    """Return the Node."""
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}


def definition(group: str, plural: str, kind: str, *versions: str, scope: str = "Namespaced") -> Document:
    """Return a CustomResourceDefinition with a schema that accepts any field, stored in its last version.

    The status is a subresource, as in the Gateway API.
    """
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    served = [
        {"name": version, "served": True, "storage": version == versions[-1], "schema": schema}
        for version in versions
    ]
    for version in served:
        version["subresources"] = {"status": {}}
    names = {"plural": plural, "kind": kind}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        # Kubernetes wants to know that it has not approved a definition in a group of its own.
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, of a test"},
        },
        "spec": {"group": group, "names": names, "scope": scope, "versions": served},
    }


def gateway_route(kind: str, name: str, *, service: str = "shop", port: int = 80) -> Document:
    """Return a route of the Gateway API for the requests to a Service, to the same Service."""
    names = {"hostnames": ["shop.example"]} if kind == "TLSRoute" else {}
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "parentRefs": [{"group": "", "kind": "Service", "name": service}],
            **names,
            "rules": [{"backendRefs": [{"name": service, "port": port}]}],
        },
    }


def pod(name: str, account: str = "default", *, port: int = 8080, uuid: str = "", **labels: str) -> Document:
    """Return a Pod that is bound to the Node; with a UUID it has a sidecar."""
    containers = [{"name": "app", "image": "none", "ports": [{"name": "http", "containerPort": port}]}]
    spec = {"nodeName": NODE, "serviceAccountName": account, "containers": containers}
    sidecar = {"meshwright.dev/proxy-uuid": uuid} if uuid else {}
    metadata = {"name": name, "labels": {**(labels or {"app": name}), **sidecar}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def runs(name: str, address: str, *, ready: bool = True) -> Document:
    """Return the applied status of a running Pod: its address, and whether it is ready."""
    state = str(ready)
    conditions = [{"type": item, "status": state} for item in ("Ready", "ContainersReady")]
    conditions.append({"type": "PodScheduled", "status": "True"})
    status = {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": conditions,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "status": status}


def service(name: str, *, port: int = 80, target: int | str = 8080, **selector: str) -> Document:
    """Return a Service with one HTTP port."""
    ports = [{"name": "http", "port": port, "targetPort": target, "appProtocol": "http"}]
    spec = {"selector": selector or {"app": name}, "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def workload(name: str, address: str, account: str, *, uuid: str = "", **labels: str) -> Document:
    """Return a Workload with a Pod's interception; the UUID of its sidecar is its name by default."""
    metadata = {"name": name, "labels": labels or {"app": name}}
    spec = {"address": address, "serviceAccount": account, "uuid": uuid or name}
    return {"apiVersion": "meshwright.dev/v1alpha1", "kind": "Workload", "metadata": metadata, "spec": spec}


def routes(name: str, path: str = "/.*") -> Document:
    """Return an HTTPRouteGroup with one match."""
    spec = {"matches": [{"name": "those", "pathRegex": path, "methods": ["*"]}]}
    return _smi("specs.smi-spec.io/v1alpha4", "HTTPRouteGroup", name, spec)


def target(name: str, namespace: str, source: str, destination: str, group: str) -> Document:
    """Return a TrafficTarget between two accounts of a namespace, with the rules of a route group."""
    result = [
        {"kind": "ServiceAccount", "name": item, "namespace": namespace} for item in (destination, source)
    ]
    spec = {
        "destination": result[0],
        "sources": [result[1]],
        "rules": [{"kind": "HTTPRouteGroup", "name": group}],
    }
    return _smi("access.smi-spec.io/v1alpha3", "TrafficTarget", name, spec)


def _smi(version: str, kind: str, name: str, spec: Document) -> Document:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def account(name: str) -> Document:
    """Return a ServiceAccount."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}


def ingress(name: str) -> Document:
    """Return an IngressBackend that admits a range of addresses to the shop in plain text."""
    return {
        "apiVersion": "policy.openservicemesh.io/v1alpha1",
        "kind": "IngressBackend",
        "metadata": {"name": name},
        "spec": {
            "backends": [{"name": "shop", "port": {"number": 8080, "protocol": "http"}}],
            "sources": [{"kind": "IPRange", "name": "192.0.2.0/24"}],
        },
    }


def root(name: str, namespace: str, **more: str) -> Document:
    """Return a MeshRootCertificate whose Secret has its name."""
    secret = {"name": name, "namespace": namespace}
    return {
        "apiVersion": "config.openservicemesh.io/v1alpha2",
        "kind": "MeshRootCertificate",
        "metadata": {"name": name},
        "spec": {"provider": {"tresor": {"ca": {"secretRef": secret}}}, **more},
    }
