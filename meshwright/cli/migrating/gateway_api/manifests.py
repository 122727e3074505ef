"""Routes of the Gateway API as manifests."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from catalog.policy.values.route_actions import Forward, RequestMirror
from catalog.policy.values.route_table import RouteEntry
from catalog.store.view import View
from meshwright.cli.migrating.findings import Document
from meshwright.cli.migrating.gateway_api.routes import Destination, NewRoute, RouteRule, service_port
from meshwright.mesh.kinds import SERVICE
from meshwright.mesh.matching import Exact, Regex, RequestMatch
from meshwright.mesh.policies.routing import HeaderChanges

VERSION: Final = "v1"
MILLION: Final = 1_000_000
"""Denominator of a mirror's share, which is a fraction of whole numbers."""


def manifest(view: View, route: NewRoute, name: str) -> Document:
    """Return the manifest of a route; `view` has the Services of the route."""
    parent = {
        "group": SERVICE.group,
        "kind": SERVICE.name,
        "name": str(route.service.name),
        "port": int(route.port.port),
    }
    return {
        "apiVersion": f"{route.kind.group}/{VERSION}",
        "kind": route.kind.name,
        "metadata": {"name": name, "namespace": str(route.service.namespace)},
        "spec": {"parentRefs": [parent], "rules": [_rule(view, route, rule) for rule in route.rules]},
    }


def _rule(view: View, route: NewRoute, rule: RouteRule) -> Mapping[str, Any]:
    result: dict[str, Any] = {}
    if rule.matches and rule.matches != (RequestMatch(),):
        result["matches"] = [_match(match) for match in rule.matches]
    if filters := _filters(view, rule.entry):
        result["filters"] = filters
    result["backendRefs"] = [
        {"name": str(to.service.name), "port": int(to.port.port), "weight": to.weight}
        for to in rule.destinations
    ]
    action = rule.entry.action
    if route.is_http and isinstance(action, Forward) and action.timeout is not None:
        result["timeouts"] = {"request": _duration(action.timeout)}
    return result


def _match(match: RequestMatch) -> Mapping[str, Any]:
    result: dict[str, Any] = {}
    if isinstance(match.path, Exact | Regex):
        result["path"] = _value(match.path)
    if match.headers:
        result["headers"] = [{"name": header.name, **_value(header.value)} for header in match.headers]
    if match.methods:
        result["method"] = match.methods[0]
    return result


def _value(value: Exact | Regex) -> Mapping[str, str]:
    match value:
        case Exact(text):
            return {"type": "Exact", "value": text}
        case Regex(regex):
            return {"type": "RegularExpression", "value": regex}


def _filters(view: View, entry: RouteEntry) -> list[Mapping[str, Any]]:
    result: list[Mapping[str, Any]] = []
    if entry.treatment is not None:
        for field, changes in (
            ("requestHeaderModifier", entry.treatment.request_headers),
            ("responseHeaderModifier", entry.treatment.response_headers),
        ):
            if changes != HeaderChanges():
                result.append({"type": field[0].upper() + field[1:], field: _changes(changes)})
    if isinstance(entry.action, Forward):
        result += [_mirror(view, mirror) for mirror in entry.action.mirrors]
    return result


def _changes(changes: HeaderChanges) -> Mapping[str, Any]:
    result: dict[str, Any] = {}
    for field, headers in (("set", changes.put), ("add", changes.add)):
        if headers:
            result[field] = [{"name": name, "value": value} for name, value in headers]
    if changes.remove:
        result["remove"] = list(changes.remove)
    return result


def _mirror(view: View, mirror: RequestMirror) -> Mapping[str, Any]:
    to: Destination = service_port(view, mirror.backend)
    backend = {"name": str(to.service.name), "port": int(to.port.port)}
    result: dict[str, Any] = {"backendRef": backend}
    if mirror.numerator != mirror.denominator:
        share = mirror.numerator / mirror.denominator
        result["fraction"] = {"numerator": round(share * MILLION), "denominator": MILLION}
    return {"type": "RequestMirror", "requestMirror": result}


def _duration(duration: timedelta) -> str:
    """Return a duration in the form of the Gateway API (GEP-2257), for example `1s500ms`."""
    rest = duration // timedelta(milliseconds=1)
    parts = []
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        number, rest = divmod(rest, size)
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts) or "1ms"
