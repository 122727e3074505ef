"""Rejections as problems: what proxies refuse, held against the one object that is at fault."""

from collections.abc import Iterable
from typing import Final

from catalog.policy.left_out import Calling, Unit
from catalog.policy.provenance import MadeFrom
from catalog.policy.values.inbound import AccessRule, EveryoneInTheMesh
from catalog.policy.values.outbound import OutboundRoute, RequestRule
from catalog.policy.values.terms import Logging
from catalog.store.inventory import holder_of
from catalog.store.objects import workload_object
from catalog.store.osm import retries, settings
from catalog.store.own import upstream_policies
from catalog.store.smi import http_route_groups
from catalog.store.view import View
from meshwright.delivery.quarantine.findings import Rejected, UnitOut
from meshwright.delivery.quarantine.left_out import LeftOut
from meshwright.delivery.snapshots.fitting import Refused
from meshwright.delivery.snapshots.serving import Serving
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.kinds import (
    EGRESS,
    ENDPOINT_SLICE,
    EXTERNAL_AUTHORIZATION,
    HTTP_ROUTE_GROUP,
    INGRESS_BACKEND,
    MESH_CONFIG,
    MUTUAL_TLS,
    NAMESPACE,
    RETRY,
    ROUTE_POLICY,
    SERVICE,
    TCP_ROUTE,
    TELEMETRY,
    TRAFFIC_SPLIT,
    TRAFFIC_TARGET,
    UPSTREAM_POLICY,
    UPSTREAM_TRAFFIC_SETTING,
    WORKLOAD,
    Kind,
)
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import FromSource
from meshwright.mesh.policies.limits import ConnectionLimits, RateLimits
from meshwright.mesh.policies.retries import Retries
from meshwright.mesh.policies.smi import HTTPMatch, PolicyKey
from meshwright.mesh.policies.upstreams import Ejecting, HashKey, HealthCheck
from meshwright.mesh.problems.problem import Problem, Problems, Severity
from meshwright.sidecars.type_words import short_type
from xds.cache import NodeKey
from xds.protocol.resources.resource import ENDPOINT, LISTENER, ResourceName, TypeUrl, Version

REJECTED: Final = "resource-rejected"
LEFT_OUT: Final = "policy-left-out"

PROBLEMS: Final = 50
"""Rejected resources that are told; if there are more, their number is."""

_WORDS: Final = 200
_OTHERS: Final = 3
"""Objects that are named of those behind what the machine does not let a proxy have."""

_POLICIES: Final = (
    HTTP_ROUTE_GROUP,
    EGRESS,
    TRAFFIC_SPLIT,
    UPSTREAM_TRAFFIC_SETTING,
    UPSTREAM_POLICY,
    RETRY,
    ROUTE_POLICY,
    TCP_ROUTE,
    TRAFFIC_TARGET,
    INGRESS_BACKEND,
    MUTUAL_TLS,
    TELEMETRY,
    EXTERNAL_AUTHORIZATION,
)
_PLACES: Final = (WORKLOAD, ENDPOINT_SLICE, SERVICE)

_UNTIL: Final = "until it is edited or accepted; it is offered again from time to time, or by proxy retry"


class Rejections:
    """Puts rejections into words; remembers what was behind those that stand."""

    def __init__(self) -> None:
        self._behind: dict[tuple[NodeKey, TypeUrl, ResourceName, Version], tuple[MadeFrom, ...]] = {}

    def problems(self, serving: Serving, rejected: Iterable[Rejected]) -> Problems:
        """Return a problem for each thing rejected, and one for all of them that are too many to tell.

        What is left out before any proxy was asked comes first.
        """
        everything = tuple(rejected)
        told = everything[:PROBLEMS]
        before, self._behind = self._behind, {}
        found = [*_left_out(serving)]
        for each in told:
            place = (each.proxy, each.type_url, each.name, each.version)
            behind = before.get(place)
            self._behind[place] = _behind(serving, each) if behind is None else behind
            found.append(problem(serving.view, each, self._behind[place]))
        if len(everything) > len(told):
            found.append(_more(len(everything) - len(told)))
        return tuple(found)


def clause(serving: Serving, rejected: Rejected) -> str:
    """Return a proxy's words, and the one object that is at fault."""
    found = problem(serving.view, rejected, _behind(serving, rejected))
    said = found.value.removeprefix("rejected: ")
    return said if found.key is None else f"{said}: {found.key} ({found.origin})"


def problem(view: View, rejected: Rejected, behind: tuple[MadeFrom, ...]) -> Problem:
    """Return what is said of something rejected: it is held against the one object that is at fault.

    That of a unit of policy is known. Of a resource it is the likeliest of those `behind` it: of those that
    had changed, if any had; and the workload itself, where the reason is of the moment.
    """
    place = f"{short_type(rejected.type_url)} {rejected.name}"
    if rejected.unit is not None:
        key, field = _edited(rejected, behind) or at_fault(view, rejected.unit, behind)
        says = _unit_says(rejected, rejected.unit)
        return _problem(view, REJECTED, key, behind, field or place, f"rejected: {rejected.said}", says)
    key = _workload(view, rejected.proxy) if rejected.reason.of_the_moment else None
    if key is None:
        changed = [each for each in behind if each.key in rejected.changed] or [*behind]
        likeliest = min(
            changed, key=lambda each: (_unlikelihood(rejected.type_url, each), each.key), default=None
        )
        key = None if likeliest is None else likeliest.key
    says = _resource_says(rejected, behind, key)
    return _problem(view, REJECTED, key, behind, place, f"rejected: {rejected.said}", says)


def parts_left_out(serving: Serving, out: Iterable[UnitOut]) -> tuple[LeftOut, ...]:
    """Return the parts of policy that proxies are served without, by object and match."""
    view = serving.view
    found = [
        LeftOut(
            key,
            each.unit if isinstance(each.unit, HTTPMatch) else None,
            tuple(map(ProxyName.parse, each.proxies)),
            each.accusation.said,
            each.certain,
        )
        for each in out
        if (key := at_fault(view, each.unit, serving.behind(each.proxies[0], *each.accusation.key))[0])
    ]
    for unit, (refused, nodes) in _refused_units(serving).items():
        key = at_fault(view, unit, serving.behind(nodes[0], *refused.key))[0]
        if key is not None:
            match = unit if isinstance(unit, HTTPMatch) else None
            found.append(LeftOut(key, match, tuple(map(ProxyName.parse, nodes)), refused.said, certain=True))
    return tuple(sorted(found, key=lambda each: (each.object, repr(each.match))))


def at_fault(view: View, unit: Unit, behind: Iterable[MadeFrom]) -> tuple[ObjectKey | None, str]:
    """Return the object that a unit of policy is of, and its field, empty where it is the whole object."""
    match unit:
        case AccessRule(by):
            return by, ""
        case OutboundRoute(split=key) if key is not None:
            return ObjectKey.of(TRAFFIC_SPLIT, key), ""
        case RequestRule(by):
            return ObjectKey.of(ROUTE_POLICY, by), ""
        case Retries() | RateLimits() | ConnectionLimits() | Ejecting() | HealthCheck() | HashKey():
            return _saying(view, unit, behind), ""
        case Logging(by) if by is not None:
            return ObjectKey.of(TELEMETRY, by), ""
        case HTTPMatch():
            return _route_group(view, unit, behind)
        case EveryoneInTheMesh():
            kinds = (NAMESPACE, MESH_CONFIG)
            found = (each.key for kind in kinds for each in behind if each.key.kind == kind)
            return next(found, None), ""
        case _:
            return None, ""


def _edited(rejected: Rejected, behind: Iterable[MadeFrom]) -> tuple[ObjectKey, str] | None:
    """Return the target or split by whose edit a match came to be refused that nobody had touched.

    None where the proxy's words quote the match, or its group was edited itself: then that is at fault.
    """
    unit, changed = rejected.unit, rejected.changed
    if not isinstance(unit, HTTPMatch) or any(each.kind == HTTP_ROUTE_GROUP for each in changed):
        return None
    texts = (unit.path_regex, *(each.regex for each in unit.headers))
    if any(text and text in rejected.said for text in texts):
        return None
    kinds = (EGRESS, TRAFFIC_TARGET, TRAFFIC_SPLIT, ROUTE_POLICY, INGRESS_BACKEND, MUTUAL_TLS)
    edited = (each.key for each in behind if each.key in changed and each.key.kind in kinds)
    return next(((key, "") for key in sorted(edited)), None)


def _route_group(view: View, match: HTTPMatch, behind: Iterable[MadeFrom]) -> tuple[ObjectKey | None, str]:
    there = {each.key for each in behind}
    found = [
        (ObjectKey.of(HTTP_ROUTE_GROUP, key), group.matches.index(match))
        for key, group in http_route_groups(view).held().items()
        if match in group.matches
    ]
    first = min(found, key=lambda each: (each[0] not in there, each[0]), default=None)
    return (None, "") if first is None else (first[0], f"spec.matches[{first[1]}]")


def _saying(view: View, unit: Calling, behind: Iterable[MadeFrom]) -> ObjectKey | None:
    """Return the object that says this; of several that say the same one of those that are behind it.

    Of rates and health checks a resource may be made from less than is said: then it is the one behind it.
    """
    there = {each.key for each in behind}
    kind, said = _sayings(view, unit)
    found = [ObjectKey.of(kind, key) for key, parts in said if unit in parts]
    if not found and isinstance(unit, RateLimits | HealthCheck):
        found = [key for key in there if key.kind == kind]
    return min(found, key=lambda each: (each not in there, each), default=None)


def _sayings(view: View, unit: Calling) -> tuple[Kind, list[tuple[PolicyKey, tuple[object, ...]]]]:
    """Return the kind that says such a thing, and what each object of it says."""
    match unit:
        case RateLimits() | ConnectionLimits():
            limiting = settings(view).held().items()
            return UPSTREAM_TRAFFIC_SETTING, [(key, (each.rates, each.connections)) for key, each in limiting]
        case Ejecting() | HealthCheck() | HashKey():
            reaching = upstream_policies(view).held().items()
            parts = [(key, (each.ejecting, each.checking, each.load.key)) for key, each in reaching]
            return UPSTREAM_POLICY, [*parts]
        case _:
            return RETRY, [(key, (each.retries,)) for key, each in retries(view).held().items()]


def _left_out(serving: Serving) -> Iterable[Problem]:
    for unit, (refused, nodes) in _refused_units(serving).items():
        behind = serving.behind(nodes[0], *refused.key)
        key, field = at_fault(serving.view, unit, behind)
        place = f"{short_type(refused.key[0])} {refused.key[1]}"
        says = f"it is left out of {place} before it is sent, {_outcome(unit)}, {_UNTIL}"
        said = f"refused: {refused.said}"
        yield _problem(serving.view, LEFT_OUT, key, behind, field or place, said, says)


def _refused_units(serving: Serving) -> dict[Unit, tuple[Refused, list[NodeKey]]]:
    """Return the units that are left out before they are sent, why, and for whom."""
    found: dict[Unit, tuple[Refused, list[NodeKey]]] = {}
    for group, refused in sorted(serving.refused.items(), key=lambda each: repr(each[0])):
        for each in refused:
            if each.unit is not None:
                found.setdefault(each.unit, (each, []))[1].extend(serving.nodes(group))
    return {unit: (refused, sorted({*nodes})) for unit, (refused, nodes) in found.items() if nodes}


def _problem(
    view: View,
    code: str,
    key: ObjectKey | None,
    behind: Iterable[MadeFrom],
    field: str,
    value: str,
    says: str,
) -> Problem:
    """Return a problem at the place where its object stands now: a line that moved changes no resource."""
    sourced = None if key is None else view.sourced.held().get(key)
    elsewhere = next((each.origin for each in behind if each.key == key), FromSource("proxies"))
    origin = elsewhere if sourced is None else sourced.origin
    said = " ".join(value.split())
    short = said if len(said) <= _WORDS else f"{said[: _WORDS - 3]}..."
    return Problem(
        code=code, severity=Severity.ERROR, origin=origin, key=key, field=field, value=short, expected=says
    )


def _outcome(unit: Unit) -> str:
    """Return what becomes of traffic without a unit."""
    if isinstance(unit, Calling):
        return "calls are made as without it"
    return "what it alone would allow is denied"


def _unit_says(rejected: Rejected, unit: Unit) -> str:
    where = f"{short_type(rejected.type_url)} {rejected.name}"
    return f"{rejected.proxy} or others reject {where} with it: it is left out, {_outcome(unit)}, {_UNTIL}"


def _resource_says(rejected: Rejected, behind: Iterable[MadeFrom], held: ObjectKey | None) -> str:
    if rejected.reason.of_the_moment:
        says = f"{rejected.proxy} or others of its group reject it for now ({rejected.reason}), {_UNTIL}"
        by_likelihood = sorted(behind, key=lambda each: (_unlikelihood(rejected.type_url, each), each.key))
        others = [str(each.key) for each in by_likelihood if each.key != held][:_OTHERS]
        return (
            f"{says}; nothing need be wrong with what it is made from: {', '.join(others)}"
            if others
            else says
        )
    kept = "its last good version" if rejected.replaced else "its last good version where there is one"
    return f"{rejected.proxy} or others of its group reject it and are served {kept} until it changes"


def _workload(view: View, proxy: NodeKey) -> ObjectKey | None:
    workload = holder_of(view, ProxyName.parse(proxy))
    return None if workload is None else workload_object(view, workload.key)


def _behind(serving: Serving, rejected: Rejected) -> tuple[MadeFrom, ...]:
    return serving.behind(rejected.proxy, rejected.type_url, rejected.name)


def _unlikelihood(type_url: TypeUrl, made_from: MadeFrom) -> int:
    """Return how unlikely a kind of object is to be at fault: first what proxies get nearly as it is written.

    Listeners and endpoints hold addresses and ports above all, anything else what policies say.
    """
    places_first = type_url in (LISTENER, ENDPOINT)
    kinds = (*_PLACES, *_POLICIES) if places_first else (*_POLICIES, *reversed(_PLACES))
    kind = made_from.key.claim.kind
    return kinds.index(kind) if kind in kinds else len(kinds)


def _more(count: int) -> Problem:
    return Problem(
        code=REJECTED,
        severity=Severity.ERROR,
        origin=FromSource("proxies"),
        expected=f"{count} more resources are rejected",
    )
