"""Enforcement of a decision of policy by the sidecars.

The oracle decides by policy alone. Sidecars may act differently for two reasons. A part of policy rejected by
a proxy is excluded from the configuration, so requests allowed only by this part are denied. A disconnected
sidecar, or one without an ACK for the last configuration, may still have an older one.

All functions are pure: the caller passes the state of the sidecars.
"""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from catalog.explain.admission import Judge, at_place, is_part
from catalog.explain.missed_routes import missed_routes, possible_requests
from catalog.explain.sidecars import Sidecar
from catalog.oracle import decide as oracle
from catalog.oracle.decide import Decision, LocalReply, Place
from catalog.oracle.request.request import Request, fits
from catalog.store.inventory import by_identity
from catalog.store.smi import http_route_groups, splits_by_apex
from catalog.store.view import View
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.kinds import (
    TRAFFIC_SPLIT,
)
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.callers import Outsider
from meshwright.mesh.policies.smi import HTTPMatch, PolicyKey

NAMED: Final = 5
"""Maximum number of sidecars with an unknown configuration named in an answer."""

NOT_ASKED: Final = "only policy was evaluated; a running server also knows the configuration of the proxies"


class EnforcementState(enum.StrEnum):
    """Whether the sidecars enforce a decision. NOT_ASKED: only policy was evaluated."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    NOT_ASKED = "not asked"


@dataclass(frozen=True, slots=True)
class Enforcement:
    """Enforcement of a decision of policy: the state, the real decision of the sidecars, and the reasons."""

    in_force: EnforcementState
    decision: Decision
    because: tuple[str, ...] = ()


def concerned(view: View, request: Request, decision: Decision) -> tuple[ProxyName, ...]:
    """Return the sidecars that may be on the way of a request: at the client and at possible endpoints.

    Included are the endpoints of further matches of routes, in case the client's sidecar lacks the first.
    """
    forms = possible_requests(view, request)
    return tuple(
        sorted({*_on_the_way(view, request, decision), *(n for form in forms for n in _called(view, form))})
    )


def _on_the_way(view: View, request: Request, decision: Decision) -> tuple[ProxyName, ...]:
    called = _called(view, request) if decision.turned_down is None else ()
    return tuple(sorted({*_of_client(view, request), *called}))


def _called(view: View, request: Request) -> Iterator[ProxyName]:
    for place in _chosen(view, request):
        yield from at_place(view, place)


def standing(
    view: View, request: Request, decision: Decision, sidecars: Mapping[ProxyName, Sidecar]
) -> Enforcement:
    """Return whether the sidecars on the path of a request enforce the oracle's decision about it."""
    routing = missed_routes(
        view, request, {name: sidecars.get(name, Sidecar()) for name in _of_client(view, request)}
    )
    judge = Judge(sidecars)
    asked = replace(request, missed=routing.missed)
    really = oracle.decide(view, asked, judge.admitting)
    unknown = [*_of_sidecars(view, asked, really, sidecars), *_of_splits(view, request, sidecars)]
    unknown.extend(routing.unknown)
    if unknown or judge.divided:
        return Enforcement(
            EnforcementState.UNKNOWN, decision, (*unknown, *(judge.lacks if judge.divided else ()))
        )
    # Other objects may have the same effect, for example if two TrafficTargets admit the request. But another
    # match of a route may treat the request in another way.
    if not routing.lacks and replace(really, because=()) == replace(decision, because=()):
        return Enforcement(EnforcementState.YES, decision)
    return Enforcement(EnforcementState.NO, really, (*routing.lacks, *judge.lacks))


def _of_sidecars(
    view: View, request: Request, really: Decision, sidecars: Mapping[ProxyName, Sidecar]
) -> list[str]:
    """Return a clause for each of the first sidecars with an unknown configuration."""
    result = {
        name: sidecars.get(name, Sidecar("is new")).unknown for name in _on_the_way(view, request, really)
    }
    unknown = [f"{name} {clause}" for name, clause in result.items() if clause][:NAMED]
    if request.identity is not None and not _of_client(view, request):
        unknown.insert(0, f"{request.identity} has no sidecar")
    return unknown


def _of_client(view: View, request: Request) -> tuple[ProxyName, ...]:
    running = () if request.identity is None else by_identity(view).lookup(request.identity)
    return tuple(sorted(workload.proxy_name for workload in running if workload.proxy_name is not None))


def _chosen(view: View, request: Request) -> Iterator[Place]:
    """Yield the places that may get a request by policy, including places that deny the request."""
    service, arrived = view.services.get(request.service), oracle.arriving(view, request)
    port = service.port(request.port) if service is not None else None
    if isinstance(request.client, Outsider) and port is not None:
        yield from (place for place, _ in oracle.places(view, request.service, port))
        return
    if port is None or isinstance(arrived, LocalReply):
        return
    for way in oracle.ways(view, arrived, port, oracle.split_for(view, arrived, port)):
        if way.weight > 0:
            for place in oracle.places(view, way.service, way.port):
                if oracle.may_answer(view, way.request, place):
                    yield place[0]


def _of_splits(view: View, request: Request, sidecars: Mapping[ProxyName, Sidecar]) -> Iterator[str]:
    """Yield a clause for each client sidecar without a TrafficSplit of the Service or a fitting match."""
    arrived = oracle.arriving(view, request)
    if isinstance(arrived, LocalReply):
        return
    parts: set[ObjectKey | HTTPMatch] = set()
    for split in splits_by_apex(view).lookup(request.service):
        groups = [http_route_groups(view).get(PolicyKey(split.key.namespace, name)) for name in split.matches]
        parts.add(ObjectKey.from_name(TRAFFIC_SPLIT, split.key))
        parts.update(match for group in groups if group for match in group.matches if fits(match, arrived))
    for name in _of_client(view, request):
        for item in sidecars.get(name, Sidecar()).without:
            if any(is_part(item, part) for part in parts):
                yield f"{name} is served without {item}; the endpoint that answers then is not known"


def enforcement_without_server(decision: Decision) -> Enforcement:
    """Return the enforcement of a decision that was computed without a server: NOT_ASKED."""
    return Enforcement(EnforcementState.NOT_ASKED, decision, (NOT_ASKED,))


def headline(standing: Enforcement, policy: Decision) -> str:
    """Return the answer to a request in a few words, and whether the sidecars enforce the answer."""
    real, wanted = _word(standing.decision), _word(policy)
    match standing.in_force:
        case EnforcementState.NO if real == wanted:
            return f"{wanted}, but not in the way that policy decides"
        case EnforcementState.NO:
            return f"{real}, although the answer by policy is {wanted}"
        case EnforcementState.UNKNOWN:
            return f"{wanted} by policy, but it is not known whether the sidecars enforce this"
        case _:
            return wanted


def _word(decision: Decision) -> str:
    reply = decision.turned_down
    if reply is not None and reply.is_redirect:
        return f"redirected with {reply.status}"
    return decision.answer.value
