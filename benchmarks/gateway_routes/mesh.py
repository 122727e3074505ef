"""A mesh with HTTPRoutes in a cluster: one caller, two backends, and Services whose calls routes decide.

The three workloads have sidecars in explicit interception, so real Envoys run on loopback without Pods.
"""

from collections.abc import Iterator
from typing import Final

from benchmarks.in_kubernetes.objects import NAMESPACE, SERVICE, Document, Kind, Object
from meshwright.controller.kubernetes.home import HOME

NAMESPACE_NAME: Final = "shop"
ROUTE: Final = Kind("/apis/gateway.networking.k8s.io/v1", "httproutes", "HTTPRoute")
WORKLOAD: Final = Kind("/apis/meshwright.dev/v1alpha1", "workloads", "Workload")
TCP_ROUTE: Final = Kind("/apis/specs.smi-spec.io/v1alpha4", "tcproutes", "TCPRoute")
TARGET: Final = Kind("/apis/access.smi-spec.io/v1alpha3", "traffictargets", "TrafficTarget")
CALLER: Final = "caller"
BACKENDS: Final = ("one", "two")
ADDRESSES: Final = {CALLER: "127.53.0.1", "one": "127.53.0.2", "two": "127.53.0.3"}
APPLICATIONS: Final = {"one": "127.53.1.2", "two": "127.53.1.3"}
APPLICATION_PORT: Final = 8080
FIRST_LOCAL_PORT: Final = 20000
"""Local port of the caller for the first Service; the next Services have the next ports."""


def objects(services: int) -> Iterator[Object]:
    """Yield the Namespaces, the workloads, permissions, and Services `service-0` and so on."""
    for namespace in (HOME, NAMESPACE_NAME):  # the leader that writes statuses has its Lease in HOME
        yield Object(NAMESPACE, "", namespace, {})
    yield Object(TCP_ROUTE, NAMESPACE_NAME, "all", {"spec": {}})
    for name in BACKENDS:
        rule = {"kind": "TCPRoute", "name": "all"}
        spec = {"destination": _account(name), "sources": [_account(CALLER)], "rules": [rule]}
        yield Object(TARGET, NAMESPACE_NAME, name, {"spec": spec})
        yield _service(name, name)
    for number in range(services):
        yield _service(service(number), BACKENDS[0])
    for name in ADDRESSES:
        yield _workload(name, services)


def service(number: int) -> str:
    """Return the name of a Service whose calls routes decide."""
    return f"service-{number}"


def route(number: int, services: int, backend: str = BACKENDS[1]) -> Object:
    """Return a route for path `/NUMBER` of one of the Services."""
    match = {"path": {"type": "Exact", "value": f"/{number}"}}
    rule = {"matches": [match], "backendRefs": [{"name": backend, "port": 80}]}
    parent = {"group": "", "kind": "Service", "name": service(number % services), "port": 80}
    return Object(
        ROUTE, NAMESPACE_NAME, f"route-{number}", {"spec": {"parentRefs": [parent], "rules": [rule]}}
    )


def _account(name: str) -> Document:
    return {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE_NAME}


def _service(name: str, backend: str) -> Object:
    port = {"name": "http", "port": 80, "targetPort": APPLICATION_PORT, "appProtocol": "http"}
    return Object(SERVICE, NAMESPACE_NAME, name, {"spec": {"selector": {"app": backend}, "ports": [port]}})


def _workload(name: str, services: int) -> Object:
    spec: Document = {"address": ADDRESSES[name], "serviceAccount": name, "uuid": name}
    if name == CALLER:
        spec["upstreams"] = [
            {
                "service": f"{service(number)}.{NAMESPACE_NAME}",
                "port": 80,
                "address": ADDRESSES[CALLER],
                "localPort": FIRST_LOCAL_PORT + number,
            }
            for number in range(services)
        ]
    else:
        spec["applicationAddress"] = APPLICATIONS[name]
    body = {"metadata": {"labels": {"app": name}}, "spec": spec}
    return Object(WORKLOAD, NAMESPACE_NAME, name, body)
