"""Short constructors of policy objects; the namespace is `shop` by default."""

from collections.abc import Mapping
from typing import Any

Document = dict[str, Any]
Match = dict[str, Any]

PERMISSIVE: Document = {
    "apiVersion": "config.openservicemesh.io/v1alpha2",
    "kind": "MeshConfig",
    "metadata": {"name": "osm-mesh-config", "namespace": "osm-system"},
    "spec": {"traffic": {"enablePermissiveTrafficPolicyMode": True}},
}


def _object(api: str, kind: str, namespace: str, name: str, spec: Document) -> Document:
    return {
        "apiVersion": f"{api}.smi-spec.io/{'v1alpha3' if api == 'access' else 'v1alpha4'}",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def config(**spec: Document) -> Document:
    """Make a MeshConfig with these sections."""
    return {**PERMISSIVE, "spec": spec}


def routes(name: str, *matches: Match, namespace: str = "shop") -> Document:
    """Make an HTTPRouteGroup; its matches are named by number."""
    named = [{"name": f"m{number}", **match} for number, match in enumerate(matches)]
    return _object("specs", "HTTPRouteGroup", namespace, name, {"matches": named})


def path(regex: str, *methods: str) -> Match:
    """Make a match of paths, and of methods if any are given."""
    return {"pathRegex": regex, **({"methods": list(methods)} if methods else {})}


def ports(name: str, *numbers: int, namespace: str = "shop") -> Document:
    """Make a TCPRoute; without numbers it is for all ports."""
    matches = {"ports": list(numbers)} if numbers else {}
    return _object("specs", "TCPRoute", namespace, name, {"matches": matches})


def http(name: str, *matches: str) -> Document:
    """Refer to an HTTPRouteGroup, or to some of its matches."""
    return {"kind": "HTTPRouteGroup", "name": name, **({"matches": list(matches)} if matches else {})}


def tcp(name: str) -> Document:
    """Refer to a TCPRoute."""
    return {"kind": "TCPRoute", "name": name}


def target(
    name: str, destination: str, sources: tuple[str, ...], *rules: Document, namespace: str = "shop"
) -> Document:
    """Make a TrafficTarget; accounts are `<namespace>/<name>`."""
    spec = {
        "destination": _account(destination),
        "sources": [_account(source) for source in sources],
        "rules": list(rules),
    }
    return _object("access", "TrafficTarget", namespace, name, spec)


def egress(
    name: str, source: str, *at: tuple[int, str], hosts: tuple[str, ...] = (), **more: object
) -> Document:
    """Make an Egress of one source, at ports with their protocols; `more` are further fields."""
    return {
        "apiVersion": "policy.openservicemesh.io/v1alpha1",
        "kind": "Egress",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "sources": [_account(source)],
            "ports": [{"number": number, "protocol": spoken} for number, spoken in at],
            "hosts": list(hosts),
            **more,
        },
    }


def split(name: str, apex: str, weights: Mapping[str, int], *matches: str) -> Document:
    """Make a TrafficSplit; `matches` names HTTPRouteGroups."""
    backends = [{"service": service, "weight": weight} for service, weight in weights.items()]
    spec: Document = {"service": apex, "backends": backends}
    if matches:
        spec["matches"] = [{"kind": "HTTPRouteGroup", "name": match} for match in matches]
    return _object("split", "TrafficSplit", "shop", name, spec)


def telemetry(name: str, **spec: Any) -> Document:
    """Make a Telemetry of the shop."""
    return {
        "apiVersion": "policy.openservicemesh.io/v1alpha1",
        "kind": "Telemetry",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": spec,
    }


def extension_service(name: str, port: int) -> Document:
    """Make an ExtensionService of the shop, on this machine."""
    return {
        "apiVersion": "config.openservicemesh.io/v1alpha2",
        "kind": "ExtensionService",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"host": "127.0.0.1", "port": port},
    }


def limiting_host(host: str, **spec: Any) -> Document:
    """Make an UpstreamTrafficSetting of a host outside, `few`."""
    made = upstream_traffic("few", **spec)
    return {**made, "spec": {**made["spec"], "host": host}}


def upstream_traffic(service: str, **spec: Any) -> Document:
    """Make an UpstreamTrafficSetting of a service."""
    return {
        "apiVersion": "policy.openservicemesh.io/v1alpha1",
        "kind": "UpstreamTrafficSetting",
        "metadata": {"name": service, "namespace": "shop"},
        "spec": {"host": f"{service}.shop.svc.cluster.local", **spec},
    }


def authorization(name: str, **spec: object) -> Document:
    """Make an ExternalAuthorization of namespace shop."""
    return {
        "apiVersion": "policy.meshwright.dev/v1alpha1",
        "kind": "ExternalAuthorization",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": spec,
    }


def retry(name: str, source: str, services: tuple[str, ...], policy: Document) -> Document:
    """Make a Retry of an account, `<namespace>/<name>`, for services."""
    return {
        "apiVersion": "policy.openservicemesh.io/v1alpha1",
        "kind": "Retry",
        "metadata": {"name": name, "namespace": source.partition("/")[0]},
        "spec": {
            "source": _account(source),
            "destinations": [
                {"kind": "Service", "name": service, "namespace": "shop"} for service in services
            ],
            "retryPolicy": policy,
        },
    }


def route_policy(name: str, service: str, *rules: Document) -> Document:
    """Make a RoutePolicy of a service in namespace shop."""
    return {
        "apiVersion": "policy.meshwright.dev/v1alpha1",
        "kind": "RoutePolicy",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"service": service, "rules": list(rules)},
    }


def upstream_policy(service: str, **spec: Any) -> Document:
    """Make an UpstreamPolicy of a service in namespace shop."""
    return {
        "apiVersion": "policy.meshwright.dev/v1alpha1",
        "kind": "UpstreamPolicy",
        "metadata": {"name": service, "namespace": "shop"},
        "spec": {"service": service, **spec},
    }


def _account(name: str) -> Document:
    namespace, account = name.split("/")
    return {"kind": "ServiceAccount", "namespace": namespace, "name": account}


EVERYTHING = (routes("everything", path(".*")), ports("any"))
ALL = (http("everything"), tcp("any"))
"""Rules, with `EVERYTHING`, that admit every request and every connection."""
