"""Admission of a request by sidecars that lack parts of policy."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from catalog.explain.sidecars import ExcludedPolicy, Sidecar
from catalog.oracle import decide as oracle
from catalog.oracle.decide import Admitting, LocalReply, Place, Verdict
from catalog.oracle.request.request import Request, fits
from catalog.oracle.targets import matches_of
from catalog.relations.backends.targets import served_by
from catalog.store.inventory import by_identity
from catalog.store.smi import http_route_groups
from catalog.store.view import View
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.kinds import INGRESS_BACKEND, MESH_CONFIG, MUTUAL_TLS, NAMESPACE, TRAFFIC_TARGET
from meshwright.mesh.names import Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.ingress import IngressBackend
from meshwright.mesh.policies.mutual_tls import MutualTLS
from meshwright.mesh.policies.smi import HTTPMatch, PolicyKey, RouteKind, TrafficTarget
from meshwright.mesh.workload import Workload


@dataclass(slots=True)
class Judge:
    """Decide for places by the configuration of their sidecars, and record the policy parts lacking there."""

    sidecars: Mapping[ProxyName, Sidecar]
    lacks: dict[str, None] = field(default_factory=dict)
    divided: bool = False

    def admitting(self, view: View, request: Request, place: tuple[Place, bool]) -> Admitting | None:
        """Return the admission by policy, or None if all sidecars of the place lack a part of it."""
        by_policy = oracle.admitting(view, request, place)
        if by_policy is None:
            return None
        result = {name: self._parts_missed(view, request, place, name) for name in at_place(view, place[0])}
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
                gone = [[policy for policy in without if is_part(policy, part)] for part in parts]
                # One part that the sidecar has is enough, because each part admits the request by itself.
                if not all(gone):
                    return ()
                missed.update(dict.fromkeys(policy for these in gone for policy in these))
        outside: list[IngressBackend | MutualTLS] = [*oracle.lets_in(view, arrived, place)]
        outside += oracle.lets_plain_in(view, arrived, place)
        for result in outside:
            gone = [
                [e for e in without if is_part(e, part)] for part in _outside_parts(view, arrived, result)
            ]
            if not all(gone):
                return ()
            missed.update(dict.fromkeys(policy for these in gone for policy in these))
        return tuple(missed)


def at_place(view: View, place: Place) -> tuple[ProxyName, ...]:
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


def is_part(without: ExcludedPolicy, part: ObjectKey | HTTPMatch) -> bool:
    """Return whether an excluded part of policy is this match or object."""
    return part == (without.object if without.match is None else without.match)
