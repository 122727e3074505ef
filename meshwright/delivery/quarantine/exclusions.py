"""Parts of policy excluded from the configuration of proxies, for explanations."""

from collections.abc import Iterable
from dataclasses import dataclass

from catalog.policy.units import Unit
from meshwright.delivery.quarantine.findings import ExcludedUnit
from meshwright.delivery.quarantine.objects_at_fault import at_fault
from meshwright.delivery.snapshots.fitness import RefusedResource
from meshwright.delivery.snapshots.group_snapshots import GroupSnapshots
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import HTTPMatch
from xds.cache import NodeKey


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A rejected part of policy, excluded from the configuration of proxies.

    Requests allowed only by this part are denied. With a `match`, the part is this match of the
    HTTPRouteGroup `object`, in every rule and TrafficSplit with a reference to the match. Without one, the
    part is a whole TrafficTarget, TrafficSplit or Retry, one subject of an UpstreamTrafficSetting or
    UpstreamPolicy, or the permissive mode of a Namespace or MeshConfig. `said` is the error message. Without
    `certain` the part is only suspected, and is soon tried again.
    """

    object: ObjectKey
    match: HTTPMatch | None
    proxies: tuple[ProxyName, ...]
    said: str
    certain: bool


def parts_left_out(serving: GroupSnapshots, out: Iterable[ExcludedUnit]) -> tuple[LeftOut, ...]:
    """Return the excluded parts of policy, sorted by object and match."""
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
    for unit, (refused, nodes) in refused_units(serving).items():
        key = at_fault(view, unit, serving.behind(nodes[0], *refused.key))[0]
        if key is not None:
            match = unit if isinstance(unit, HTTPMatch) else None
            found.append(LeftOut(key, match, tuple(map(ProxyName.parse, nodes)), refused.said, certain=True))
    return tuple(sorted(found, key=lambda each: (each.object, repr(each.match))))


def refused_units(serving: GroupSnapshots) -> dict[Unit, tuple[RefusedResource, list[NodeKey]]]:
    """Return the units excluded before they are sent, each with the reason and the proxies."""
    found: dict[Unit, tuple[RefusedResource, list[NodeKey]]] = {}
    for group, refused in sorted(serving.refused.items(), key=lambda each: repr(each[0])):
        for each in refused:
            if each.unit is not None:
                found.setdefault(each.unit, (each, []))[1].extend(serving.nodes(group))
    return {unit: (refused, sorted({*nodes})) for unit, (refused, nodes) in found.items() if nodes}
