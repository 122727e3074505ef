"""Matches of Gateway API routes that the client's sidecars are served without, and the effect on a request.

Without a match, the next fitting match decides the request, or the client's sidecar answers 404.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from catalog.explain.sidecars import ExcludedPolicy, Sidecar
from catalog.oracle import decide as oracle
from catalog.oracle.decide import LocalReply
from catalog.oracle.gateway import fitting_matches, routes_for
from catalog.oracle.request.request import Request
from catalog.store.view import View
from meshwright.mesh.gateway.routes import MatchPlace
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.objects import ObjectKey

Missed = frozenset[tuple[ObjectKey, MatchPlace]]


@dataclass(frozen=True, slots=True)
class MissedRoutes:
    """Effect of the missed matches on a request.

    All sidecars of the client are without `missed`, and `lacks` are the sentences about it. With `unknown`,
    clauses, it is not known which match decides.
    """

    missed: Missed = frozenset()
    lacks: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def missed_routes(view: View, request: Request, sidecars: Mapping[ProxyName, Sidecar]) -> MissedRoutes:
    """Return the effect on a request if these are all sidecars of the client."""
    fitting = _fitting(view, request)
    deciding = _deciding(view, request)
    found = {name: _first_missed(fitting, sidecar.without) for name, sidecar in sorted(sidecars.items())}
    lacks = tuple(f"{name} is served without {part}" for name, parts in found.items() for part in parts)
    unknown = tuple(
        f"{name} is served without {part}; it has an earlier version of the routes to "
        f"{request.service}:{request.port}, and the rule that decides there is not known"
        for name, sidecar in sorted(sidecars.items())
        for part in sidecar.without
        if part.is_replaced and part.object in deciding
    )
    sets = {_places(parts) for parts in found.values()}
    if len(sets) > 1:
        unknown = (*unknown, *(text for text in lacks if text not in unknown))
    if unknown or not sets:
        return MissedRoutes(unknown=unknown)
    return MissedRoutes(sets.pop(), lacks)


def possible_requests(view: View, request: Request) -> Iterator[Request]:
    """Yield a request as decided without the first fitting match of routes, then without two, and so on."""
    missed: Missed = frozenset()
    for item in _fitting(view, request):
        missed |= {item}
        yield replace(request, missed=missed)


def _first_missed(
    fitting: tuple[tuple[ObjectKey, MatchPlace], ...], without: tuple[ExcludedPolicy, ...]
) -> tuple[ExcludedPolicy, ...]:
    """Return the excluded parts for the matches that would decide before the first match in force."""
    excluded = {(part.object, part.match): part for part in without}
    result: list[ExcludedPolicy] = []
    for item in fitting:
        if (part := excluded.get(item)) is None:
            break
        result.append(part)
    return tuple(result)


def _places(parts: tuple[ExcludedPolicy, ...]) -> Missed:
    return frozenset((part.object, part.match) for part in parts if isinstance(part.match, MatchPlace))


def _fitting(view: View, request: Request) -> tuple[tuple[ObjectKey, MatchPlace], ...]:
    """Return the places of the fitting matches of routes, the deciding one first."""
    service, arrived = view.services.get(request.service), oracle.arriving(view, request)
    port = service.port(request.port) if service is not None else None
    if port is None or isinstance(arrived, LocalReply) or request.identity is None:
        return ()
    return tuple((item.key, item.place) for item in fitting_matches(view, arrived, port))


def _deciding(view: View, request: Request) -> tuple[ObjectKey, ...]:
    service = view.services.get(request.service)
    port = service.port(request.port) if service is not None else None
    return () if port is None or request.identity is None else routes_for(view, request, port)
