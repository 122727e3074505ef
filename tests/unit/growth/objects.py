"""A small mesh, and each of its objects with parts of any size."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

from tests.tools.counted_work import Text

Document = dict[str, Any]

SPECS, ACCESS = "specs.smi-spec.io/v1alpha4", "access.smi-spec.io/v1alpha3"
SPLIT, OSM = "split.smi-spec.io/v1alpha4", "policy.openservicemesh.io/v1alpha1"
OWN, CONFIG = "policy.meshwright.dev/v1alpha1", "config.openservicemesh.io/v1alpha3"


def document(api_version: str, kind: str, name: str, **fields: Any) -> Document:
    """Return an object of namespace shop."""
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def many(size: int, word: str = "n") -> list[str]:
    """Return as many words; two sizes have no word in common, so that no cache helps."""
    return [Text(f"{word}{size}x{number}") for number in range(size)]


def addresses(size: int) -> list[str]:
    """Return as many addresses; each size has its own network."""
    return [f"10.{size}.{number // 200}.{number % 200 + 1}" for number in range(size)]


def ports(size: int) -> list[int]:
    """Return as many ports that no other object has."""
    return list(range(20_000 + 10 * size, 20_000 + 11 * size))


def account(name: str) -> Document:
    """Return a reference to a ServiceAccount."""
    return {"kind": "ServiceAccount", "name": name, "namespace": "shop"}


def group(name: str) -> Document:
    """Return a reference to an HTTPRouteGroup."""
    return {"apiGroup": "specs.smi-spec.io", "kind": "HTTPRouteGroup", "name": name}


def pod(name: str, address: str, app: str, **spec: Any) -> Document:
    """Return a Pod with a sidecar."""
    result = document("v1", "Pod", name)
    uuid = f"00000000-0000-4000-8000-{address.replace('.', ''):0>12}"
    result["metadata"] |= {"labels": {"app": app, "meshwright.dev/proxy-uuid": uuid}, "uid": uuid}
    ready = [{"type": "Ready", "status": "True"}]
    result["status"] = {"podIP": address, "phase": "Running", "conditions": ready}
    result["spec"] = {"serviceAccountName": app, "containers": [{"name": "app", "image": "app:1"}], **spec}
    return result


MESH: tuple[Document, ...] = (
    document(
        "v1", "Service", "web", spec={"selector": {"app": "web"}, "ports": [{"port": 80, "name": "http"}]}
    ),
    document(
        "v1", "Service", "next", spec={"selector": {"app": "web"}, "ports": [{"port": 80, "name": "http"}]}
    ),
    pod("web-1", "10.0.0.1", "web"),
    pod("client-1", "10.0.0.2", "client"),
    document(SPECS, "HTTPRouteGroup", "paths", spec={"matches": [{"name": "one", "pathRegex": "/one"}]}),
    document(
        ACCESS,
        "TrafficTarget",
        "web",
        spec={
            "destination": account("web"),
            "sources": [account("client")],
            "rules": [{"kind": "HTTPRouteGroup", "name": "paths"}],
        },
    ),
)


def _group(matches: list[Document]) -> Document:
    return document(SPECS, "HTTPRouteGroup", "paths", spec={"matches": matches})


def _target(**spec: Any) -> Document:
    return {**MESH[5], "spec": {**MESH[5]["spec"], **spec}}


def _service(ports: list[Document], **spec: Any) -> Document:
    return document("v1", "Service", "web", spec={"selector": {"app": "web"}, "ports": ports, **spec})


def _split(backends: list[Document], matches: list[Document]) -> Document:
    return document(
        SPLIT, "TrafficSplit", "s", spec={"service": "web", "backends": backends, "matches": matches}
    )


def _egress(
    size: int, *, hosts: int = 1, networks: int = 0, at: int = 1, sources: int = 0, said: str = "http"
) -> Document:
    spec = {
        "sources": [account("client"), *map(account, many(sources, "client"))],
        "hosts": [Text(f"{item}.example.org") for item in many(hosts, f"h{size}")],
        "ipAddresses": [f"{address}/32" for address in addresses(networks)],
        "ports": [{"number": number, "protocol": said} for number in ports(at)],
    }
    return document(OSM, "Egress", "out", spec=spec)


def _ingress(
    backends: list[Document], sources: list[Document], matches: list[Document] | None = None
) -> Document:
    spec = {"backends": backends, "sources": sources, "matches": matches or []}
    return document(OSM, "IngressBackend", "in", spec=spec)


def _backend(number: int, protocol: str = "http", **tls: Any) -> Document:
    return {"name": "web", "port": {"number": number, "protocol": protocol}, "tls": tls}


def _ranges(size: int) -> list[Document]:
    return [{"kind": "IPRange", "name": f"{address}/32"} for address in addresses(size)]


def _tls(**spec: Any) -> Document:
    return document(OWN, "MutualTLS", "m", spec={"mode": "Permissive", **spec})


def _route_policy(rules: list[Document]) -> Document:
    return document(OWN, "RoutePolicy", "r", spec={"service": "web", "rules": rules})


def _limited(number: int) -> Document:
    return {"local": {"requests": number, "unit": "second"}}


def _setting(routes: list[Document]) -> Document:
    spec = {"host": "web.shop.svc.cluster.local", "httpRoutes": routes}
    return document(OSM, "UpstreamTrafficSetting", "u", spec=spec)


def _retry(names: list[str]) -> Document:
    spec = {
        "source": account("client"),
        "destinations": [
            {"kind": "Service", "name": "web"},
            *({"kind": "Service", "name": name} for name in names),
        ],
        "retryPolicy": {"retryOn": "5xx"},
    }
    return document(OSM, "Retry", "r", spec=spec)


def _slice(size: int, at: int = 1) -> Document:
    result = document("discovery.k8s.io/v1", "EndpointSlice", "web-1")
    result["metadata"]["labels"] = {"kubernetes.io/service-name": "web"}
    endpoints = [{"addresses": [address], "conditions": {"ready": True}} for address in addresses(size)]
    named = [{"name": name, "port": 8080 + number} for number, name in enumerate(["http", *many(at)])]
    return {**result, "addressType": "IPv4", "endpoints": endpoints, "ports": named}


def _endpoints(size: int) -> Document:
    subset = {
        "addresses": [{"ip": address} for address in addresses(size)],
        "ports": [{"port": 8080, "name": "http"}],
    }
    return document("v1", "Endpoints", "web", subsets=[subset])


def _labelled(labels: Mapping[str, str], annotations: Mapping[str, str], **spec: Any) -> Document:
    result = copy.deepcopy(MESH[2])
    result["spec"] |= spec
    result["metadata"]["labels"] |= labels
    result["metadata"]["annotations"] = dict(annotations)
    return result


def _workload(**spec: Any) -> Document:
    result = document("meshwright.dev/v1alpha1", "Workload", "machine")
    base = {
        "address": "10.0.0.9",
        "serviceAccount": "web",
        "service": "web",
        "uuid": "machine-1",
        "ports": [{"number": 80}],
    }
    return {**result, "spec": {**base, **spec}}


def _deployment(**spec: Any) -> Document:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", **spec}]}}
    return document("apps/v1", "Deployment", "web", spec={"template": template})


def _namespace(labels: Mapping[str, str], annotations: Mapping[str, str]) -> Document:
    metadata = {"name": "shop", "labels": dict(labels), "annotations": dict(annotations)}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _listening(numbers: list[int], words: list[str]) -> list[Document]:
    return [{"containerPort": number, "name": word} for number, word in zip(numbers, words, strict=True)]


LARGE: Mapping[str, Callable[[int], Document]] = {
    "HTTPRouteGroup": lambda n: _group(
        [
            *({"name": item, "pathRegex": f"/{item}"} for item in many(n)),
            *({"name": item, "pathRegex": f"/same{n}"} for item in many(n, "same")),
            *({"name": item, "pathRegex": item} for item in many(n, "none")),
            {"name": "all", "headers": [{item: ".*"} for item in many(n, "h")]},
        ]
    ),
    "TCPRoute": lambda n: document(SPECS, "TCPRoute", "tcp", spec={"matches": {"ports": ports(n)}}),
    "TrafficTarget": lambda n: _target(
        sources=[account(item) for item in ("client", *many(n))],
        rules=[
            {"kind": "HTTPRouteGroup", "name": "paths", "matches": ["one", *many(n)]},
            *({"kind": "HTTPRouteGroup", "name": item} for item in many(n)),
            *({"kind": "HTTPRouteGroup", "name": "paths", "matches": [item]} for item in many(n)),
            *({"kind": "HTTPRouteGroup", "name": "paths", "matches": ["one"]} for _ in range(n)),
        ],
    ),
    "TrafficSplit of backends": lambda n: _split(
        [{"service": item, "weight": 1} for item in ("next", *many(n))], []
    ),
    "TrafficSplit of matches": lambda n: _split(
        [{"service": "next", "weight": 1}], list(map(group, many(n)))
    ),
    "Service": lambda n: _service(
        [
            *({"port": port, "name": f"http-{port}"} for port in ports(n)),
            *({"port": 1 + item, "name": f"p{item}", "targetPort": f"t{item}"} for item in range(n)),
        ],
    ),
    "Service without addresses": lambda n: _service(
        [{"port": port, "name": f"p{port}"} for port in ports(n)], clusterIP="None"
    ),
    "Service with labels": lambda n: _service([{"port": 80}], selector=dict.fromkeys(many(n), "x")),
    "EndpointSlice": lambda n: _slice(n, n),
    "Endpoints": _endpoints,
    "Pod": lambda n: _labelled(
        dict.fromkeys(many(n), "x"),
        {
            **dict.fromkeys(many(n, "meshwright.dev/a"), "x"),
            "meshwright.dev/egress-services": ",".join(("shop/web", *(f"shop/{each}" for each in many(n)))),
        },
        containers=[{"name": item, "ports": [{"containerPort": 8080}]} for item in many(n)],
    ),
    "Pod with ports": lambda n: _labelled(
        {}, {}, containers=[{"name": "app", "ports": _listening(ports(n), many(n))}]
    ),
    "Workload": lambda n: _workload(
        applicationAddress="127.0.0.1",
        ports=[{"number": port, "name": f"p{port}"} for port in ports(n)],
        upstreams=[
            {"service": "web", "port": 80, "address": "127.0.0.1", "localPort": port + 20_000}
            for port in ports(n)
        ],
    ),
    "Deployment": lambda n: _deployment(ports=_listening(ports(n), many(n))),
    "Namespace": lambda n: _namespace(
        dict.fromkeys(many(n), "x"), dict.fromkeys(many(n, "meshwright.dev/a"), "x")
    ),
    "MeshConfig": lambda n: document(
        CONFIG,
        "MeshConfig",
        "mesh-config",
        spec={
            "traffic": {
                "inboundPortExclusionList": ports(n),
                "outboundIPRangeExclusionList": [f"{socket_address}/32" for socket_address in addresses(n)],
            },
            "sidecar": {"sidecarDrivers": [{"sidecarName": item} for item in many(n)]},
        },
    ),
    "Egress": lambda n: _egress(n, hosts=n, networks=n, sources=n),
    "Egress without ranges": lambda n: _egress(n, hosts=n, sources=n, said="https"),
    "Egress with ports": lambda n: _egress(n, at=n, networks=1, sources=n),
    "Egress of connections": lambda n: _egress(n, networks=n, said="tcp"),
    "IngressBackend": lambda n: _ingress(
        [_backend(80), *map(_backend, ports(n))],
        [*_ranges(n), *({"kind": "Service", "name": item, "namespace": "shop"} for item in many(n))],
        list(map(group, many(n))),
    ),
    "IngressBackend with names in certificates": lambda n: _ingress(
        [_backend(80, "https")],
        [*_ranges(n), *({"kind": "AuthenticatedPrincipal", "name": item} for item in many(n))],
    ),
    "IngressBackend with names that are asked for": lambda n: _ingress(
        [
            _backend(
                80,
                "https",
                skipClientCertValidation=True,
                sniHosts=[f"{item}.example.org" for item in many(n)],
            )
        ],
        _ranges(n),
    ),
    "Retry": lambda n: _retry(many(n)),
    "UpstreamTrafficSetting": lambda n: _setting(
        [
            {"path": f"/{item}", "rateLimit": _limited(1000 * n + number)}
            for number, item in enumerate(many(n))
        ]
    ),
    "RoutePolicy": lambda n: _route_policy(
        [
            {"matches": list(map(group, many(n))), "timeout": {"request": "1s"}},
            *(
                {"matches": [group("paths")], "timeout": {"request": f"{1000 * n + item}ms"}}
                for item in range(n)
            ),
        ]
    ),
    "MutualTLS": lambda n: _tls(
        serviceAccounts=["web", *many(n)],
        ports=[80, *ports(n)],
        plaintext={"sources": _ranges(n), "matches": list(map(group, ("paths", *many(n))))},
    ),
    "ExternalAuthorization": lambda n: document(
        OWN,
        "ExternalAuthorization",
        "e",
        spec={"serviceAccounts": ["web", *many(n)], "ports": [80, *ports(n)], "host": "a.b", "port": 1},
    ),
    "Telemetry": lambda n: document(
        OSM,
        "Telemetry",
        "t",
        spec={
            "selector": dict.fromkeys(many(n), "x"),
            "accessLog": {
                "openTelemetry": {
                    "extensionService": {"name": "c", "namespace": "shop"},
                    "attributes": dict.fromkeys(many(n), "x"),
                }
            },
        },
    ),
}
"""An object of each kind, as functions of how many items each part of it has.

Parts are large together, so that what is done for each pair of their items is seen as well. Apart are parts
of which one makes another useless, and the ports of an Egress: each of its hosts is at each of its ports.
"""
