"""A bookstore in the form of OSM's published demo, written for these tests.

Controllers create the pods, so no document has an address. Policies come in every version of SMI that OSM
used.
"""

from collections.abc import Iterator
from typing import Any, Final

import yaml

Manifest = dict[str, Any]

ACCESS: Final = ("v1alpha1", "v1alpha2", "v1alpha3")
SPECS: Final = ("v1alpha1", "v1alpha2", "v1alpha3", "v1alpha4")
SPLIT: Final = ("v1alpha1", "v1alpha2", "v1alpha3", "v1alpha4")

NAMESPACES: Final = ("bookbuyer", "bookstore", "bookthief", "bookwarehouse")

MESH_CONFIG: Final = """
apiVersion: config.openservicemesh.io/v1alpha1
kind: MeshConfig
metadata:
  name: osm-mesh-config
spec:
  sidecar:
    enablePrivilegedInitContainer: false
    logLevel: error
    maxDataPlaneConnections: 0
    envoyImage: envoyproxy/envoy-alpine:v1.19.1
    initContainerImage: openservicemesh/init:v1.1.0
    configResyncInterval: "0s"
  traffic:
    enableEgress: false
    enablePermissiveTrafficPolicyMode: false
  observability:
    enableDebugServer: true
    outboundPortExclusionList: []
    inboundPortExclusionList: []
    outboundIPRangeExclusionList: []
    tracing:
      enable: false
  certificate:
    serviceCertValidityDuration: 24h
"""
"""Three lists stand in a section that is not theirs, as they do in what OSM publishes."""


def namespaces() -> Iterator[Manifest]:
    """Yield the namespaces, enrolled in the way of OSM."""
    for name in NAMESPACES:
        metadata = {
            "name": name,
            "labels": {"openservicemesh.io/monitored-by": "osm"},
            "annotations": {"openservicemesh.io/sidecar-injection": "enabled"},
        }
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def account(namespace: str, name: str) -> Manifest:
    """Return a ServiceAccount."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": namespace},
    }


def service(namespace: str, name: str, /, **port: object) -> Manifest:
    """Return a Service that selects `app: <name>`; it is headless if it has an appProtocol."""
    spec: Manifest = {"ports": [{"port": 14001, "name": f"{name}-port"} | port], "selector": {"app": name}}
    if "appProtocol" in port:
        spec["clusterIP"] = "None"
    metadata = {"name": name, "namespace": namespace, "labels": {"app": name}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def controller(
    namespace: str, name: str, kind: str = "Deployment", port: int | None = 14001, account: str = ""
) -> Manifest:
    """Return a controller of pods with the label `app: <name>`."""
    labels = {"app": name, "version": "v1"}
    container: Manifest = {"name": name, "image": f"openservicemesh/{name}:v1.1.0", "command": [f"/{name}"]}
    if port is not None:
        container["ports"] = [{"containerPort": port, "name": "web"}]
    pod = {
        "serviceAccountName": account or name,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "containers": [container],
    }
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec: Manifest = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    if kind == "StatefulSet":
        spec |= {"serviceName": name, "volumeClaimTemplates": [{"metadata": {"name": "data"}}]}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}


def applications() -> list[Manifest]:
    """Return the demo's applications."""
    return [
        account("bookbuyer", "bookbuyer"),
        controller("bookbuyer", "bookbuyer", port=None),
        account("bookthief", "bookthief"),
        controller("bookthief", "bookthief", port=None),
        service("bookstore", "bookstore"),
        account("bookstore", "bookstore"),
        controller("bookstore", "bookstore"),
        service("bookstore", "bookstore-v2"),
        account("bookstore", "bookstore-v2"),
        controller("bookstore", "bookstore-v2"),
        account("bookwarehouse", "bookwarehouse"),
        service("bookwarehouse", "bookwarehouse"),
        controller("bookwarehouse", "bookwarehouse", port=None),
        account("bookwarehouse", "mysql"),
        service("bookwarehouse", "mysql", port=3306, targetPort="web", name="client", appProtocol="tcp"),
        controller("bookwarehouse", "mysql", "StatefulSet", port=3306),
    ]


def _account(namespace: str, name: str) -> Manifest:
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def target(version: str, namespace: str, name: str, rule: Manifest, *sources: str) -> Manifest:
    """Return a TrafficTarget of the given version for the ServiceAccount of the same name."""
    body = {
        "destination": _account(namespace, name),
        "specs" if version == "v1alpha1" else "rules": [rule],
        "sources": [_account(*source.split("/")) for source in sources],
    }
    head = {
        "apiVersion": f"access.smi-spec.io/{version}",
        "kind": "TrafficTarget",
        "metadata": {"name": name, "namespace": namespace},
    }
    return head | (body if version == "v1alpha1" else {"spec": body})


def routes(version: str, namespace: str, name: str, *matches: Manifest) -> Manifest:
    """Return an HTTPRouteGroup of the given version."""
    head = {
        "apiVersion": f"specs.smi-spec.io/{version}",
        "kind": "HTTPRouteGroup",
        "metadata": {"name": name, "namespace": namespace},
    }
    body = {"matches": list(matches)}
    return head | (body if version in ("v1alpha1", "v1alpha2") else {"spec": body})


def tcp_route(version: str) -> Manifest:
    """Return the database's TCPRoute; only v1alpha4 has ports."""
    head = {
        "apiVersion": f"specs.smi-spec.io/{version}",
        "kind": "TCPRoute",
        "metadata": {"name": "mysql", "namespace": "bookwarehouse"},
    }
    return head | ({"spec": {"matches": {"ports": [3306]}}} if version == "v1alpha4" else {})


def policies(access: str = "v1alpha3", specs: str = "v1alpha4") -> list[Manifest]:
    """Return the demo's access policies."""
    named = {"kind": "HTTPRouteGroup", "name": "bookstore-service-routes"}
    rule = named | {"matches": ["buy-a-book", "books-bought"]}
    restock = {"kind": "HTTPRouteGroup", "name": "bookwarehouse-service-routes", "matches": ["restock-books"]}
    clients = [{"user-agent": ".*-http-client/*.*"}, {"client-app": "bookbuyer"}]
    return [
        target(access, "bookstore", "bookstore", rule, "bookbuyer/bookbuyer", "bookthief/bookthief"),
        target(access, "bookstore", "bookstore-v2", rule, "bookbuyer/bookbuyer", "bookthief/bookthief"),
        target(
            access, "bookwarehouse", "bookwarehouse", restock, "bookstore/bookstore", "bookstore/bookstore-v2"
        ),
        target(
            access,
            "bookwarehouse",
            "mysql",
            {"kind": "TCPRoute", "name": "mysql"},
            "bookwarehouse/bookwarehouse",
        ),
        routes(
            specs,
            "bookstore",
            "bookstore-service-routes",
            {"name": "books-bought", "pathRegex": "/books-bought", "methods": ["GET"], "headers": clients},
            {"name": "buy-a-book", "pathRegex": ".*a-book.*new", "methods": ["GET"]},
        ),
        routes(
            specs,
            "bookwarehouse",
            "bookwarehouse-service-routes",
            {"name": "restock-books", "methods": ["POST"]},
        ),
        tcp_route(specs),
    ]


def split(version: str = "v1alpha2") -> Manifest:
    """Return the demo's TrafficSplit; weights of v1alpha1 are quantities."""
    share: object = "500m" if version == "v1alpha1" else 50
    backends = [{"service": name, "weight": share} for name in ("bookstore", "bookstore-v2")]
    return {
        "apiVersion": f"split.smi-spec.io/{version}",
        "kind": "TrafficSplit",
        "metadata": {"name": "bookstore-split", "namespace": "bookstore"},
        "spec": {"service": "bookstore.bookstore", "backends": backends},
    }


def demo(access: str = "v1alpha3", specs: str = "v1alpha4", splits: str = "v1alpha2") -> list[Manifest]:
    """Return the whole demo without its MeshConfig."""
    return [*namespaces(), *applications(), *policies(access, specs), split(splits)]


def text(manifests: list[Manifest]) -> str:
    """Return manifests as one file of several documents."""
    return yaml.safe_dump_all(manifests, sort_keys=False, explicit_start=True)
