"""Who would answer a request: the places that policy and admission are to be held against."""

from dataclasses import dataclass

from catalog.oracle import decide as oracle
from catalog.oracle.decide import Place
from catalog.oracle.request.request import Request
from catalog.store.view import View
from meshwright.mesh.service import ServiceKey


@dataclass(frozen=True, slots=True)
class BackendReadiness:
    """A service that has, or would have, a share: its places, and those of them that take calls now."""

    service: ServiceKey
    places: tuple[tuple[Place, bool], ...]
    ready: frozenset[Place]

    @property
    def waits(self) -> bool:
        """Say whether nobody there takes calls yet."""
        return not any(place in self.ready for place, _ in self.places)


def answering(view: View, request: Request) -> tuple[BackendReadiness, ...]:
    """Return who would answer: whoever the client may send something to, or else everybody behind the call.

    The request is one that the client's sidecar has passed on. Backends without a share and services with
    nobody behind them are left out.
    """
    service = view.services.get(request.service)
    port = service.port(request.port) if service is not None else None
    if port is None or request.identity is None:
        return ()
    split = oracle.split_for(view, request, port)
    found = [
        BackendReadiness(
            key, oracle.places(view, key, each), oracle.ready_places(view, request, key, each, split)
        )
        for key, each, weight in oracle.backends(view, request, port, split)
        if weight > 0
    ]
    asked = [
        BackendReadiness(
            each.service, tuple(p for p in each.places if oracle.may_answer(view, request, p)), each.ready
        )
        for each in found
    ]
    chosen = asked if any(each.places for each in asked) else found
    return tuple(each for each in chosen if each.places)
