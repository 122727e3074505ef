"""The least policy that would allow a request, as manifests."""

from collections.abc import Iterable, Iterator
from typing import Final

from catalog.explain.backends import answering
from catalog.oracle import decide as oracle
from catalog.oracle.decide import LocalReply, Place
from catalog.oracle.request.expressions import literal
from catalog.oracle.request.request import Request, path_of
from catalog.store.view import View
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import HTTP_ROUTE_GROUP, SERVICE_ACCOUNT, TCP_ROUTE, TRAFFIC_TARGET, Kind
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.objects import ObjectKey

Manifest = dict[str, object]

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE"})
_LONGEST_NAME: Final = 200
_LONGEST_PATH: Final = 1000


def remedy(view: View, request: Request) -> tuple[Manifest, ...]:
    """Return the missing manifests; empty if policy allows the request or is not the cause.

    With the manifests the request is allowed as soon as the client's sidecar knows the Service and the
    endpoints are admitted, usually at once. They admit only this client to the possible endpoints, with this
    method and path (headers are not included), or on TCP at this port.
    """
    arrived = oracle.arriving(view, request)
    if oracle.decide(view, request).allowed or isinstance(arrived, LocalReply):
        return ()
    refused = {
        (place, is_http, readiness.request): None
        for readiness in answering(view, arrived)
        for place, is_http in readiness.places
        if oracle.admitting(view, readiness.request, (place, is_http)) is None
    }
    return tuple(admitting_manifests(view, request, sorted(refused, key=lambda item: item[:2])))


def admitting_manifests(
    view: View, request: Request, refused: list[tuple[Place, bool, Request]]
) -> Iterator[Manifest]:
    """Yield the manifests that admit the client of `request` at places, each with the request sent there."""
    # A manifest with the name of an existing object would replace that object.
    taken = set(view.sourced)
    by_server: dict[tuple[ServiceIdentity, bool], list[tuple[Port, Request]]] = {}
    for place, is_http, sent in refused:
        arrived = oracle.at_server(view, sent, (place, is_http))
        if not isinstance(arrived, LocalReply):
            by_server.setdefault((place.identity, is_http), []).append((place.port, arrived))
    for (server, is_http), calls in by_server.items():
        kind = HTTP_ROUTE_GROUP if is_http else TCP_ROUTE
        name = _free(taken, server.namespace, f"{_client(request)}-to-{server.service_account}")
        ports = {port for port, _ in calls}
        spec: Manifest = {"matches": _matches(arrived for _, arrived in calls)}
        if not is_http:
            spec = {"matches": {"ports": sorted(ports)}}
        yield _manifest("v1alpha4", kind, server.namespace, name, spec)
        yield _target(request, server, name, kind)


def _client(request: Request) -> str:
    return request.identity.service_account if request.identity is not None else ""


def _target(request: Request, server: ServiceIdentity, name: str, kind: Kind) -> Manifest:
    spec: Manifest = {
        "destination": _account(server),
        "sources": [_account(identity) for identity in (request.identity,) if identity is not None],
        "rules": [{"kind": kind.name, "name": name}],
    }
    return _manifest("v1alpha3", TRAFFIC_TARGET, server.namespace, name, spec)


def _matches(requests: Iterable[Request]) -> list[Manifest]:
    """Return a match for each path and method; backends of a route may get the request in different forms."""
    forms = dict.fromkeys((path_of(request), request.method) for request in requests)
    return [
        _match("this" if number == 1 else f"this-{number}", path, method)
        for number, (path, method) in enumerate(forms, 1)
    ]


def _match(name: str, path: str, method: str) -> Manifest:
    regex = literal(path[:_LONGEST_PATH]) + (".*" if len(path) > _LONGEST_PATH else "")
    return {
        "name": name,
        "pathRegex": regex,
        # SMI's schema lists the allowed methods; any other method is only covered by the wildcard.
        "methods": [method if method in _METHODS else "*"],
    }


def _account(identity: ServiceIdentity) -> Manifest:
    return {
        "kind": SERVICE_ACCOUNT.name,
        "name": str(identity.service_account),
        "namespace": str(identity.namespace),
    }


def _manifest(version: str, kind: Kind, namespace: Namespace, name: str, spec: Manifest) -> Manifest:
    metadata = {"name": name, "namespace": str(namespace)}
    return {"apiVersion": f"{kind.group}/{version}", "kind": kind.name, "metadata": metadata, "spec": spec}


def _free(taken: set[ObjectKey], namespace: Namespace, wanted: str) -> str:
    """Return and reserve a name unused by routes and TrafficTargets of the namespace.

    For example, `cart-2` if a TrafficTarget `cart` exists.
    """
    stem = wanted[:_LONGEST_NAME].rstrip("-.")
    kinds = (HTTP_ROUTE_GROUP, TCP_ROUTE, TRAFFIC_TARGET)
    number, name = 1, stem
    while any(ObjectKey(kind, namespace, name) in taken for kind in kinds):
        number += 1
        name = f"{stem}-{number}"
    taken.update(ObjectKey(kind, namespace, name) for kind in kinds)
    return name
