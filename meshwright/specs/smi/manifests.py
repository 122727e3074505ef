"""Writer of SMI objects as manifests: reading the manifest again returns an equal value."""

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import (
    HTTP_ROUTE_GROUP,
    SERVICE_ACCOUNT,
    TCP_ROUTE,
    TRAFFIC_SPLIT,
    TRAFFIC_TARGET,
    Kind,
)
from meshwright.mesh.objects import MeshObject
from meshwright.mesh.policies.smi import (
    HTTPMatch,
    HTTPRouteGroup,
    PolicyKey,
    Rule,
    TCPRoute,
    TrafficSplit,
    TrafficTarget,
)

Written = dict[str, object]


def written(value: MeshObject) -> Written | None:
    """Return the manifest of an SMI object in the newest version with all its fields; None for other kinds.

    Fields without an effect, for example labels, are missing, because the object does not have them.
    """
    match value:
        case TrafficTarget():
            return _target(value)
        case HTTPRouteGroup():
            matches = [_match(match) for match in value.matches]
            return _manifest("v1alpha4", HTTP_ROUTE_GROUP, value.key, {"matches": matches})
        case TCPRoute():
            ports: Written = {"matches": {"ports": list(map(int, value.ports))}} if value.ports else {}
            return _manifest("v1alpha4", TCP_ROUTE, value.key, ports)
        case TrafficSplit():
            return _split(value)
        case _:
            return None


def _target(value: TrafficTarget) -> Written:
    # Only older versions have a port.
    version = "v1alpha3" if value.port is None else "v1alpha2"
    port = {} if value.port is None else {"port": int(value.port)}
    spec: Written = {
        "destination": _account(value.destination) | port,
        "sources": [_account(source) for source in value.sources],
        "rules": [_rule(rule) for rule in value.rules],
    }
    return _manifest(version, TRAFFIC_TARGET, value.key, spec)


def _rule(rule: Rule) -> Written:
    matches = {"matches": list(rule.matches)} if rule.matches else {}
    return {"kind": rule.kind.value, "name": rule.name, **matches}


def _match(match: HTTPMatch) -> Written:
    result: Written = {"name": match.name}
    if match.path_regex is not None:
        result["pathRegex"] = match.path_regex
    if match.methods:
        result["methods"] = list(match.methods)
    if match.headers:
        result["headers"] = [{header.name: header.regex} for header in match.headers]
    return result


def _split(value: TrafficSplit) -> Written:
    spec: Written = {
        "service": str(value.apex.name),
        "backends": [
            {"service": str(backend.service), "weight": backend.weight} for backend in value.backends
        ],
    }
    if value.matches:
        spec["matches"] = [{"kind": HTTP_ROUTE_GROUP.name, "name": match} for match in value.matches]
    return _manifest("v1alpha4", TRAFFIC_SPLIT, value.key, spec, value.created)


def _account(identity: ServiceIdentity) -> Written:
    return {
        "kind": SERVICE_ACCOUNT.name,
        "name": str(identity.service_account),
        "namespace": str(identity.namespace),
    }


def _manifest(version: str, kind: Kind, key: PolicyKey, spec: Written, created: str = "") -> Written:
    metadata = {"name": key.name, "namespace": str(key.namespace)}
    age = {"creationTimestamp": created} if created else {}
    head = {"apiVersion": f"{kind.group}/{version}", "kind": kind.name}
    return {**head, "metadata": metadata | age, "spec": spec}
