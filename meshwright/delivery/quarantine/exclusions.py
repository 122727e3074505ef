"""Parts of policy excluded from the configuration of proxies, for explanations."""

from collections.abc import Iterable
from dataclasses import dataclass

from catalog.policy.units import Unit
from catalog.policy.values.route_table import AppliedRoute
from meshwright.delivery.quarantine.findings import ExcludedUnit
from meshwright.delivery.quarantine.objects_at_fault import at_fault
from meshwright.delivery.snapshots.fitness import RefusedResource
from meshwright.delivery.snapshots.group_snapshots import GroupSnapshots
from meshwright.mesh.gateway.routes import MatchPlace
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import HTTPMatch
from xds.cache import NodeKey


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A rejected part of policy, excluded from the configuration of proxies.

    Requests allowed only by this part are denied. With a `match`, the part is this match of the
    HTTPRouteGroup `object`, in every rule and TrafficSplit with a reference to the match, or the match at
    this place of a Gateway API route. Without one, the part is a whole TrafficTarget, TrafficSplit or Retry,
    one subject of an UpstreamTrafficSetting or UpstreamPolicy, or the permissive mode of a Namespace or
    MeshConfig. `message` is the error message. Without `certain` the part is only suspected, and is soon
    tried again. `replaced` are those of the proxies that have an earlier version of such parts in its place.
    """

    object: ObjectKey
    match: HTTPMatch | MatchPlace | None
    proxies: tuple[ProxyName, ...]
    message: str
    certain: bool
    replaced: tuple[ProxyName, ...] = ()


def parts_left_out(serving: GroupSnapshots, out: Iterable[ExcludedUnit]) -> tuple[LeftOut, ...]:
    """Return the parts of policy excluded for some proxies, sorted by object and match."""
    view = serving.view
    left_outs = [
        LeftOut(
            key,
            _match(excluded_unit.unit),
            tuple(map(ProxyName.parse, excluded_unit.proxies)),
            excluded_unit.accusation.message,
            excluded_unit.certain,
            tuple(map(ProxyName.parse, sorted(excluded_unit.replaced))),
        )
        for excluded_unit in out
        if (
            key := at_fault(
                view,
                excluded_unit.unit,
                serving.behind(excluded_unit.proxies[0], *excluded_unit.accusation.key),
            )[0]
        )
    ]
    for unit, (refused, nodes) in refused_units(serving).items():
        key = at_fault(view, unit, serving.behind(nodes[0], *refused.key))[0]
        if key is not None:
            left_outs.append(
                LeftOut(key, _match(unit), tuple(map(ProxyName.parse, nodes)), refused.message, certain=True)
            )
    return tuple(sorted(left_outs, key=lambda left_out: (left_out.object, repr(left_out.match))))


def _match(unit: Unit) -> HTTPMatch | MatchPlace | None:
    match unit:
        case HTTPMatch():
            return unit
        case AppliedRoute():
            return unit.place
        case _:
            return None


def refused_units(serving: GroupSnapshots) -> dict[Unit, tuple[RefusedResource, list[NodeKey]]]:
    """Return the units of policy excluded before sending, each with the fault and the proxies."""
    result: dict[Unit, tuple[RefusedResource, list[NodeKey]]] = {}
    for group, refused in sorted(serving.refused.items(), key=lambda item: repr(item[0])):
        for resource in refused:
            if resource.unit is not None:
                result.setdefault(resource.unit, (resource, []))[1].extend(serving.nodes(group))
    return {unit: (refused, sorted({*nodes})) for unit, (refused, nodes) in result.items() if nodes}
