"""Places (identity and port) that would answer a request, to find missing policy and other obstacles."""

from dataclasses import dataclass, replace

from catalog.oracle import decide as oracle
from catalog.oracle.decide import Place
from catalog.oracle.gateway import routes_for
from catalog.oracle.request.request import Request
from catalog.store.view import View
from meshwright.mesh.service import ServiceKey


@dataclass(frozen=True, slots=True)
class BackendReadiness:
    """A Service with a share of the calls: all its places, and the places taking calls now.

    `request` is in the form in which it leaves the client for this Service.
    """

    service: ServiceKey
    request: Request
    places: tuple[tuple[Place, bool], ...]
    ready: frozenset[Place]

    @property
    def waits(self) -> bool:
        """Return whether no workload of the Service takes calls yet."""
        return not any(place in self.ready for place, _ in self.places)


def answering(view: View, request: Request) -> tuple[BackendReadiness, ...]:
    """Return the places that would answer: the places that the client may call, or else all possible places.

    A share of a route stays at its Service, so each Service counts by itself there. `request` must be in the
    form that the client's sidecar forwards. Backends without a share and Services without places are left
    out.
    """
    service = view.services.get(request.service)
    port = service.port(request.port) if service is not None else None
    if port is None or request.identity is None:
        return ()
    split = oracle.split_for(view, request, port)
    every = [
        BackendReadiness(
            way.service,
            way.request,
            oracle.places(view, way.service, way.port),
            oracle.ready_places(view, way.request, way.service, way.port, split),
        )
        for way in oracle.ways(view, request, port, split)
        if way.weight > 0
    ]
    asked = [replace(item, places=_callable(view, item)) for item in every]
    if routes_for(view, request, port):
        chosen = [mine if mine.places else item for mine, item in zip(asked, every, strict=True)]
    else:
        chosen = asked if any(item.places for item in asked) else every
    return tuple(item for item in chosen if item.places)


def _callable(view: View, item: BackendReadiness) -> tuple[tuple[Place, bool], ...]:
    return tuple(place for place in item.places if oracle.may_answer(view, item.request, place))
