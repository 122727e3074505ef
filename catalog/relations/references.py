"""References of Gateway API routes to their backends, resolved to ports of Services.

A backend means the endpoints of the Service, whatever routes the Service has as a parent. In a mesh a
backend may be in any namespace without a ReferenceGrant, because the callee's policies decide about callers.
"""

from collections.abc import Iterator
from dataclasses import replace

from catalog.relations.verdicts import (
    BrokenReference,
    Resolution,
    ResolvedBackend,
    ResolvedReason,
    ResolvedRule,
    ServicePlace,
)
from catalog.store.gateway import backend_service, route_of
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.gateway.filters import Filters
from meshwright.mesh.gateway.references import BackendObject
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.kinds import GRPC_ROUTE, HTTP_ROUTE
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.service import ServicePort

_DECLARED = "appProtocol"
"""Source of a declared protocol, as opposed to a guess."""


@derived
def resolved_rules(view: View, key: ObjectKey) -> tuple[ResolvedRule, ...]:
    """Return the references of each rule of a route, in order; empty if the route does not exist."""
    route = route_of(view, key)
    rules = () if route is None else route.rules
    requests = key.kind in (HTTP_ROUTE, GRPC_ROUTE)
    return tuple(
        _resolved(view, rule, f"spec.rules[{index}]", requests=requests) for index, rule in enumerate(rules)
    )


def _resolved(view: View, rule: Rule, field: str, *, requests: bool) -> ResolvedRule:
    if rule.dropped:
        return ResolvedRule()
    backends = tuple(
        ResolvedBackend(
            _backend(view, backend.to, backend.filters, f"{field}.backendRefs[{index}]", requests=requests),
            _mirrors(view, backend.filters, f"{field}.backendRefs[{index}].filters"),
        )
        for index, backend in enumerate(rule.backends)
    )
    unknown = tuple(_unknown(rule.filters, f"{field}.filters"))
    return ResolvedRule(backends, _mirrors(view, rule.filters, f"{field}.filters"), unknown)


def _backend(
    view: View, backend: BackendObject, filters: Filters, field: str, *, requests: bool
) -> Resolution:
    # Requests must fail and not skip the filter, so the backend counts as missing.
    for unknown in _unknown(_of_backend(filters), f"{field}.filters"):
        return unknown
    return place_of(view, backend, field, requests=requests)


def _mirrors(view: View, filters: Filters, field: str) -> tuple[Resolution, ...]:
    return tuple(place_of(view, mirror.backend, field, requests=True) for mirror in filters.mirrors)


def _unknown(filters: Filters, field: str) -> Iterator[BrokenReference]:
    for name in filters.unknown:
        message = f"Meshwright does not carry out the filter {name}, so the requests are answered with 500"
        yield BrokenReference(ResolvedReason.INVALID_KIND, message, field)


def _of_backend(filters: Filters) -> Filters:
    """Return the filters of a backend, with filters of whole rules as unknown."""
    whole = (("RequestRedirect", filters.redirect), ("CORS", filters.cors))
    return replace(filters, unknown=(*filters.unknown, *(name for name, given in whole if given is not None)))


def place_of(view: View, backend: BackendObject, field: str, *, requests: bool) -> Resolution:
    """Return the Service port behind a reference, or the reason why the reference is broken.

    `requests` is True for routes of requests, whose backends must not be declared as another protocol.
    """
    key = backend_service(backend)
    if key is None:
        message = f"{backend.kind.full} {backend.namespace}/{backend.name} is no Service"
        return BrokenReference(ResolvedReason.INVALID_KIND, message, field)
    service = view.services.get(key)
    if service is None:
        return BrokenReference(ResolvedReason.BACKEND_NOT_FOUND, f"Service {key} does not exist", field)
    if backend.port is None:
        message = f"the reference to Service {key} lacks a port"
        return BrokenReference(ResolvedReason.BACKEND_NOT_FOUND, message, field)
    port = service.port(backend.port)
    if port is None:
        message = f"Service {key} does not have port {backend.port}"
        return BrokenReference(ResolvedReason.BACKEND_NOT_FOUND, message, field)
    if requests and _is_declared_otherwise(port):
        message = f"port {port.port} of Service {key} speaks {port.protocol}, as its appProtocol declares"
        return BrokenReference(ResolvedReason.UNSUPPORTED_PROTOCOL, message, field)
    return ServicePlace(key, port)


def _is_declared_otherwise(port: ServicePort) -> bool:
    return port.protocol_source == _DECLARED and not port.protocol.is_http
