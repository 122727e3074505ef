"""Conditions of a call besides TrafficTargets: permissive namespaces, scopes, and readiness.

A part of the oracle; see `catalog.oracle.decide`.
"""

from dataclasses import dataclass

from catalog.oracle.request.request import Request
from catalog.oracle.targets import Place
from catalog.relations.backends.endpoints import endpoints
from catalog.relations.backends.ports import spoken
from catalog.relations.backends.readiness import taking_traffic
from catalog.relations.backends.targets import served_by
from catalog.relations.backends.workloads import backing
from catalog.store.inventory import by_identity
from catalog.store.objects import workload_object
from catalog.store.view import View
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject, ObjectKey
from meshwright.mesh.policies.smi import TrafficSplit
from meshwright.mesh.service import Scope, ServiceKey, ServicePort
from meshwright.mesh.workload import Explicit

_PERMISSIVE = "meshwright.dev/permissive"


def accepts_everyone(view: View, namespace: Namespace) -> bool:
    """Return whether a namespace is permissive, by the annotation, else by the MeshConfig."""
    held = view.sourced.get(ObjectKey.of_namespace(namespace))
    if held is None or not isinstance(held.value, NamespaceObject):
        return view.config.permissive
    text = dict(held.value.annotations).get(_PERMISSIVE)
    return view.config.permissive if text is None else text == "true"


@dataclass(frozen=True, slots=True)
class Visibility:
    """Visibility of a service for a client's sidecar, with the scope and the object that sets the scope."""

    yes: bool
    scope: Scope
    by: ObjectKey | None


def visibilities(view: View, client: ServiceIdentity, key: ServiceKey) -> tuple[Visibility, ...]:
    """Return the visibility of a service for each of a client's sidecars, without duplicates.

    A workload's own scope wins, else the namespace's. Without a sidecar the namespace's scope counts.
    """
    name = ObjectKey.of_namespace(client.namespace)
    held = view.sourced.get(name)
    of_namespace = held.value.scope if held and isinstance(held.value, NamespaceObject) else None
    result: list[tuple[Scope, ObjectKey]] = []
    for workload in by_identity(view).lookup(client):
        if workload.uuid is not None and workload.scope is not None:
            result.append((workload.scope, workload_object(view, workload.key)))
        elif workload.uuid is not None:
            result.append((of_namespace, name))
    return tuple(
        dict.fromkeys(
            Visibility(_names(scope, key), scope, None if scope is None else by)
            # Without a sidecar the namespace's scope shows what a future sidecar of this client would know.
            for scope, by in result or [(of_namespace, name)]
        )
    )


def ready_places(
    view: View, request: Request, key: ServiceKey, port: ServicePort, split: TrafficSplit | None
) -> frozenset[Place]:
    """Return the places of a service's port with an admitted endpoint, which take calls now.

    If the client chooses the endpoint itself, readiness does not matter (`chooses_endpoint`).
    """
    at_once = split is None and chooses_endpoint(view, request)
    result = endpoints(view, key, port) if at_once else taking_traffic(view, key, port)
    return frozenset(Place(endpoint.identity, endpoint.port) for endpoint in result if endpoint.identity)


def speaks_otherwise(view: View, key: ServiceKey, port: ServicePort, where: Place) -> bool:
    """Return whether every sidecar of a place behind a service uses another protocol on the port.

    Two Services may share a port of a workload with different protocols. There is one listener, so calls to
    the Service with the other protocol fail.
    """
    called = spoken(port, backing(view, key))
    taken = [
        protocol
        for workload in backing(view, key)
        if workload.uuid is not None and workload.identity == where.identity
        for number, protocol, _ in served_by(view, workload)
        if number == where.port
    ]
    return bool(taken) and all(item.is_http != called.is_http for item in taken)


def chooses_endpoint(view: View, request: Request) -> bool:
    """Return whether a client calls a headless service at the addresses of its endpoints.

    In explicit interception the client calls its own sidecar instead, which takes any ready endpoint. A
    client with only some workloads in explicit interception counts as one of these.
    """
    service = view.services.get(request.service)
    if service is None or not service.headless or request.identity is None:
        return False
    running = by_identity(view).lookup(request.identity)
    return not any(isinstance(workload.interception, Explicit) for workload in running)


def _names(scope: Scope, key: ServiceKey) -> bool:
    if scope is None:
        return True
    wanted = (key.namespace, key.name)
    return any((pattern.namespace or key.namespace, pattern.name or key.name) == wanted for pattern in scope)
