"""Enforcement of a decision of policy by the sidecars.

The oracle decides by policy alone. Sidecars may act differently for two reasons. A part of policy rejected by
a proxy is excluded from the configuration, so requests allowed only by this part are denied. A disconnected
sidecar, or one without an ACK for the last configuration, may still have an older one.

All functions are pure: the caller passes the state of the sidecars.
"""

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from catalog.oracle import decide as oracle
from catalog.oracle.decide import Admitting, Answer, Decision, LocalReply, Place, Verdict
from catalog.oracle.request.request import Request, fits
from catalog.oracle.targets import matches_of
from catalog.relations.backends.targets import served_by
from catalog.store.inventory import by_identity
from catalog.store.smi import http_route_groups, splits_by_apex
from catalog.store.view import View
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.kinds import (
    INGRESS_BACKEND,
    MESH_CONFIG,
    MUTUAL_TLS,
    NAMESPACE,
    TRAFFIC_SPLIT,
    TRAFFIC_TARGET,
)
from meshwright.mesh.names import Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.callers import Outsider
from meshwright.mesh.policies.ingress import IngressBackend
from meshwright.mesh.policies.mutual_tls import MutualTLS
from meshwright.mesh.policies.smi import HTTPMatch, PolicyKey, RouteKind, TrafficTarget
from meshwright.mesh.workload import Workload

NAMED: Final = 5
"""Maximum number of sidecars with an unknown configuration named in an answer."""

NOT_ASKED: Final = "only policy was evaluated; a running server also knows the configuration of the proxies"


@dataclass(frozen=True, slots=True)
class ExcludedPolicy:
    """A part of policy excluded from a sidecar's configuration: a match in all rules, or an object.

    `cause` is the error message of the rejecting proxy.
    """

    object: ObjectKey
    match: HTTPMatch | None
    cause: str

    def __str__(self) -> str:
        part = str(self.object) if self.match is None else f"match {self.match.name} of {self.object}"
        return f"{part}, which the proxy rejects: {self.cause}"


@dataclass(frozen=True, slots=True)
class Sidecar:
    """State of one sidecar. `unknown` is a predicate with the reason for an unknown configuration."""

    unknown: str = ""
    without: tuple[ExcludedPolicy, ...] = ()


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


@dataclass(slots=True)
class _Judge:
    """Decide for places by the configuration of their sidecars, and record the policy parts lacking there."""

    sidecars: Mapping[ProxyName, Sidecar]
    lacks: dict[str, None] = field(default_factory=dict)
    divided: bool = False

    def admitting(self, view: View, request: Request, place: tuple[Place, bool]) -> Admitting | None:
        """Return the admission by policy, or None if all sidecars of the place lack a part of it."""
        by_policy = oracle.admitting(view, request, place)
        if by_policy is None:
            return None
        result = {name: self._parts_missed(view, request, place, name) for name in _at_place(view, place[0])}
        for name, missed in result.items():
            self.lacks.update(dict.fromkeys(f"{name} is served without {item}" for item in missed))
        self.divided = self.divided or (any(result.values()) and not all(result.values()))
        return None if result and all(result.values()) else by_policy

    def _parts_missed(
        self, view: View, request: Request, place: tuple[Place, bool], name: ProxyName
    ) -> tuple[ExcludedPolicy, ...]:
        """Return the policy parts missing in a sidecar, so that it denies a request admitted by policy."""
        without = self.sidecars.get(name, Sidecar()).without
        arrived = oracle.at_server(view, request, place)
        if not without or isinstance(arrived, LocalReply):
            return ()
        # In a permissive namespace only the MeshConfig or the Namespace counts, because it admits everyone.
        if request.identity and oracle.accepts_everyone(view, place[0].identity.namespace):
            return tuple(policy for policy in without if policy.object.kind in (MESH_CONFIG, NAMESPACE))
        missed: dict[ExcludedPolicy, None] = {}
        for target, verdict in oracle.verdicts(view, arrived, place):
            if verdict is Verdict.ADMITS:
                parts = tuple(_parts(view, arrived, target, is_http=place[1]))
                gone = [[policy for policy in without if _is(policy, part)] for part in parts]
                # One part that the sidecar has is enough, because each part admits the request by itself.
                if not all(gone):
                    return ()
                missed.update(dict.fromkeys(policy for these in gone for policy in these))
        outside: list[IngressBackend | MutualTLS] = [*oracle.lets_in(view, arrived, place)]
        outside += oracle.lets_plain_in(view, arrived, place)
        for result in outside:
            gone = [[e for e in without if _is(e, part)] for part in _outside_parts(view, arrived, result)]
            if not all(gone):
                return ()
            missed.update(dict.fromkeys(policy for these in gone for policy in these))
        return tuple(missed)


def concerned(view: View, request: Request, decision: Decision) -> tuple[ProxyName, ...]:
    """Return the sidecars on the way of a request: at the client and at all possible endpoints."""
    proxy_names = set(_of_client(view, request))
    if decision.turned_down is None:
        proxy_names.update(name for place in _chosen(view, request) for name in _at_place(view, place))
    return tuple(sorted(proxy_names))


def standing(
    view: View, request: Request, decision: Decision, sidecars: Mapping[ProxyName, Sidecar]
) -> Enforcement:
    """Return whether the sidecars on the path of a request enforce the oracle's decision about it."""
    result = {
        name: sidecars.get(name, Sidecar("is new")).unknown for name in concerned(view, request, decision)
    }
    unknown = [f"{name} {clause}" for name, clause in result.items() if clause]
    del unknown[NAMED:]
    if request.identity is not None and not _of_client(view, request):
        unknown.insert(0, f"{request.identity} has no sidecar")
    unknown.extend(_of_splits(view, request, sidecars))
    judge = _Judge(sidecars)
    really = oracle.decide(view, request, judge.admitting)
    if unknown or judge.divided:
        return Enforcement(
            EnforcementState.UNKNOWN, decision, (*unknown, *(judge.lacks if judge.divided else ()))
        )
    # Other objects may have the same effect, for example if two TrafficTargets admit the request.
    if replace(really, because=()) == replace(decision, because=()):
        return Enforcement(EnforcementState.YES, decision)
    return Enforcement(EnforcementState.NO, really, tuple(judge.lacks))


def _of_client(view: View, request: Request) -> tuple[ProxyName, ...]:
    running = () if request.identity is None else by_identity(view).lookup(request.identity)
    return tuple(sorted(workload.proxy_name for workload in running if workload.proxy_name is not None))


def _at_place(view: View, place: Place) -> tuple[ProxyName, ...]:
    """Return the sidecars of the identity's workloads that are called at the port of a place, sorted."""
    return tuple(
        sorted(
            workload.proxy_name
            for workload in by_identity(view).lookup(place.identity)
            if workload.proxy_name is not None and place.port in _called_at(view, workload)
        )
    )


def _called_at(view: View, workload: Workload) -> set[Port]:
    return {number for number, _, _ in served_by(view, workload)}


def _chosen(view: View, request: Request) -> Iterator[Place]:
    """Yield the places that may get a request by policy, including places that deny the request."""
    service, arrived = view.services.get(request.service), oracle.arriving(view, request)
    port = service.port(request.port) if service is not None else None
    if isinstance(request.client, Outsider) and port is not None:
        yield from (place for place, _ in oracle.places(view, request.service, port))
        return
    if port is None or isinstance(arrived, LocalReply):
        return
    for key, their_port, weight in oracle.backends(
        view, arrived, port, oracle.split_for(view, arrived, port)
    ):
        if weight > 0:
            for place in oracle.places(view, key, their_port):
                if oracle.may_answer(view, arrived, place):
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
            if any(_is(item, part) for part in parts):
                yield f"{name} is served without {item}; the endpoint that answers then is not known"


def _parts(
    view: View, request: Request, target: TrafficTarget, *, is_http: bool
) -> Iterable[ObjectKey | HTTPMatch]:
    """Yield the parts of a target each of which admits a request by itself."""
    if is_http and any(rule.kind is RouteKind.HTTP for rule in target.rules):
        yield from (http_match for http_match in matches_of(view, target) if fits(http_match, request))
    else:
        yield ObjectKey.from_name(TRAFFIC_TARGET, target.key)


def _outside_parts(
    view: View, request: Request, result: IngressBackend | MutualTLS
) -> tuple[ObjectKey | HTTPMatch, ...]:
    """Return the parts of an object each of which admits a request from outside by itself."""
    match result:
        case IngressBackend(matches=names):
            kind = INGRESS_BACKEND
        case MutualTLS(plaintext=said):
            kind, names = MUTUAL_TLS, () if said is None else said.matches
    if not names:
        return (ObjectKey.from_name(kind, result.key),)
    groups = (http_route_groups(view).get(PolicyKey(result.key.namespace, name)) for name in names)
    return tuple(match for group in groups if group for match in group.matches if fits(match, request))


def _is(without: ExcludedPolicy, part: ObjectKey | HTTPMatch) -> bool:
    return part == (without.object if without.match is None else without.match)


def enforcement_without_server(decision: Decision) -> Enforcement:
    """Return the enforcement of a decision that was computed without a server: NOT_ASKED."""
    return Enforcement(EnforcementState.NOT_ASKED, decision, (NOT_ASKED,))


def headline(standing: Enforcement, policy: Answer) -> str:
    """Return the answer to a request in a few words, and whether the sidecars enforce the answer."""
    match standing.in_force:
        case EnforcementState.NO:
            return f"{standing.decision.answer.value}, although the answer by policy is {policy.value}"
        case EnforcementState.UNKNOWN:
            return f"{policy.value} by policy, but it is not known whether the sidecars enforce this"
        case _:
            return policy.value
