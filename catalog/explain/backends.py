"""Places (identity and port) that would answer a request, to find missing policy and other obstacles."""

from dataclasses import dataclass

from catalog.oracle import decide as oracle
from catalog.oracle.decide import Place
from catalog.oracle.request.request import Request
from catalog.store.view import View
from meshwright.mesh.service import ServiceKey


@dataclass(frozen=True, slots=True)
class BackendReadiness:
    """A Service with a share of the calls: all its places, and the places taking calls now."""

    service: ServiceKey
    places: tuple[tuple[Place, bool], ...]
    ready: frozenset[Place]

    @property
    def waits(self) -> bool:
        """Return whether no workload of the Service takes calls yet."""
        return not any(place in self.ready for place, _ in self.places)


def answering(view: View, request: Request) -> tuple[BackendReadiness, ...]:
    """Return the places that would answer: the places that the client may call, or else all possible places.

    `request` must be in the form that the client's sidecar forwards. Backends without a share and Services
    without places are left out.
    """
    service = view.services.get(request.service)
    port = service.port(request.port) if service is not None else None
    if port is None or request.identity is None:
        return ()
    split = oracle.split_for(view, request, port)
    readinesses = [
        BackendReadiness(
            key,
            oracle.places(view, key, service_port),
            oracle.ready_places(view, request, key, service_port, split),
        )
        for key, service_port, weight in oracle.backends(view, request, port, split)
        if weight > 0
    ]
    asked = [
        BackendReadiness(
            readiness.service,
            tuple(p for p in readiness.places if oracle.may_answer(view, request, p)),
            readiness.ready,
        )
        for readiness in readinesses
    ]
    chosen = asked if any(readiness.places for readiness in asked) else readinesses
    return tuple(readiness for readiness in chosen if readiness.places)
