"""References of Gateway API routes to their backends, resolved to ports of Services.

A backend means the endpoints of the Service, whatever routes the Service has as a parent. In a mesh a
backend may be in any namespace without a ReferenceGrant, because the callee's policies decide about callers.
For requests that come through a gateway the specification demands a grant.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from catalog.relations.backend_tls.decision import deciding_policy
from catalog.relations.gateways.grants import is_granted
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
from meshwright.mesh.kinds import GRPC_ROUTE, HTTP_ROUTE, SERVICE
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.service import ServicePort

_DECLARED = "appProtocol"
"""Source of a declared protocol, as opposed to a guess."""


@derived
def resolved_rules(view: View, key: ObjectKey) -> tuple[ResolvedRule, ...]:
    """Return the references of each rule of a route, in order; empty if the route does not exist."""
    return _rules(view, key, at_gateways=False)


@derived
def resolved_rules_at_gateways(view: View, key: ObjectKey) -> tuple[ResolvedRule, ...]:
    """Return the references as gateways may follow them: other namespaces need a ReferenceGrant.

    Otherwise as `resolved_rules`.
    """
    return _rules(view, key, at_gateways=True)


def _rules(view: View, key: ObjectKey, *, at_gateways: bool) -> tuple[ResolvedRule, ...]:
    route = route_of(view, key)
    rules = () if route is None else route.rules
    resolver = _Resolver(view, key, at_gateways)
    return tuple(resolver.rule(rule, f"spec.rules[{index}]") for index, rule in enumerate(rules))


@dataclass(frozen=True, slots=True)
class _Resolver:
    """Resolution of the references of one route."""

    view: View
    route: ObjectKey
    at_gateways: bool

    @property
    def has_requests(self) -> bool:
        """True for routes of requests, whose backends must not be declared as another protocol."""
        return self.route.kind in (HTTP_ROUTE, GRPC_ROUTE)

    def rule(self, rule: Rule, field: str) -> ResolvedRule:
        """Return the references of a rule."""
        if rule.dropped:
            return ResolvedRule()
        backends = tuple(
            ResolvedBackend(
                self._backend(backend.to, backend.filters, f"{field}.backendRefs[{index}]"),
                self._mirrors(backend.filters, f"{field}.backendRefs[{index}].filters"),
            )
            for index, backend in enumerate(rule.backends)
        )
        unknown = tuple(_unknown(rule.filters, f"{field}.filters"))
        return ResolvedRule(backends, self._mirrors(rule.filters, f"{field}.filters"), unknown)

    def _backend(self, backend: BackendObject, filters: Filters, field: str) -> Resolution:
        # Requests must fail and not skip the filter, so the backend counts as missing.
        unknown = next(_unknown(_of_backend(filters), f"{field}.filters"), None)
        return self._place(backend, field, requests=self.has_requests) if unknown is None else unknown

    def _mirrors(self, filters: Filters, field: str) -> tuple[Resolution, ...]:
        return tuple(self._place(mirror.backend, field, requests=True) for mirror in filters.mirrors)

    def _place(self, backend: BackendObject, field: str, *, requests: bool) -> Resolution:
        target = ObjectKey(backend.kind, backend.namespace, backend.name)
        # Before the object is looked up, so that a route does not show what exists in another namespace.
        if self.at_gateways and not is_granted(self.view, self.route.kind, self.route.namespace, target):
            message = (
                f"no ReferenceGrant of namespace {backend.namespace} lets {self.route.kind.name}s of "
                f"namespace {self.route.namespace} refer to {target}"
            )
            return BrokenReference(ResolvedReason.REF_NOT_PERMITTED, message, field, target)
        return _place_of(self.view, backend, field, requests=requests, at_gateways=self.at_gateways)


def _unknown(filters: Filters, field: str) -> Iterator[BrokenReference]:
    for name in filters.unknown:
        message = f"Meshwright does not carry out the filter {name}, so the requests are answered with 500"
        yield BrokenReference(ResolvedReason.INVALID_KIND, message, field)


def _of_backend(filters: Filters) -> Filters:
    """Return the filters of a backend, with filters of whole rules as unknown."""
    whole = (("RequestRedirect", filters.redirect), ("CORS", filters.cors))
    return replace(filters, unknown=(*filters.unknown, *(name for name, given in whole if given is not None)))


def _place_of(
    view: View, backend: BackendObject, field: str, *, requests: bool, at_gateways: bool
) -> Resolution:
    """Return the Service port behind a reference, or the reason why the reference is broken."""
    key = backend_service(backend)
    if key is None:
        message = f"{backend.kind.full} {backend.namespace}/{backend.name} is no Service"
        return BrokenReference(ResolvedReason.INVALID_KIND, message, field)
    service = view.services.get(key)
    if service is None:
        message, target = f"Service {key} does not exist", ObjectKey.from_name(SERVICE, key)
        return BrokenReference(ResolvedReason.BACKEND_NOT_FOUND, message, field, target)
    if backend.port is None:
        message = f"the reference to Service {key} lacks a port"
        return BrokenReference(ResolvedReason.BACKEND_NOT_FOUND, message, field)
    port = service.port(backend.port)
    if port is None:
        message = f"Service {key} does not have port {backend.port}"
        return BrokenReference(ResolvedReason.BACKEND_NOT_FOUND, message, field)
    is_secured = at_gateways and port.secure and deciding_policy(view, key, port) is not None
    if requests and _is_declared_otherwise(port) and not is_secured:
        message = f"port {port.port} of Service {key} speaks {port.protocol}, as its appProtocol declares"
        return BrokenReference(ResolvedReason.UNSUPPORTED_PROTOCOL, message, field)
    return ServicePlace(key, port)


def _is_declared_otherwise(port: ServicePort) -> bool:
    return port.protocol_source == _DECLARED and not port.protocol.is_http
