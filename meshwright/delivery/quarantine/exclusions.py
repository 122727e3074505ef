"""The parts of policy that proxies are served without, as whoever explains the mesh reads them."""

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
    """A part of policy that proxies are served without, because it is refused; what it would allow is denied.

    `match` of the HTTPRouteGroup `object`: it is out of every rule and split that names it. Without one it
    is the whole of a TrafficTarget, TrafficSplit or Retry, what an UpstreamTrafficSetting or UpstreamPolicy
    says of one thing, or the permissive mode that a Namespace or MeshConfig says. `said` are the words of who
    refuses it. It is `certain`, or only suspected and soon tried again.
    """

    object: ObjectKey
    match: HTTPMatch | None
    proxies: tuple[ProxyName, ...]
    said: str
    certain: bool


def parts_left_out(serving: GroupSnapshots, out: Iterable[ExcludedUnit]) -> tuple[LeftOut, ...]:
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
    for unit, (refused, nodes) in refused_units(serving).items():
        key = at_fault(view, unit, serving.behind(nodes[0], *refused.key))[0]
        if key is not None:
            match = unit if isinstance(unit, HTTPMatch) else None
            found.append(LeftOut(key, match, tuple(map(ProxyName.parse, nodes)), refused.said, certain=True))
    return tuple(sorted(found, key=lambda each: (each.object, repr(each.match))))


def refused_units(serving: GroupSnapshots) -> dict[Unit, tuple[RefusedResource, list[NodeKey]]]:
    """Return the units that are left out before they are sent, why, and for whom."""
    found: dict[Unit, tuple[RefusedResource, list[NodeKey]]] = {}
    for group, refused in sorted(serving.refused.items(), key=lambda each: repr(each[0])):
        for each in refused:
            if each.unit is not None:
                found.setdefault(each.unit, (each, []))[1].extend(serving.nodes(group))
    return {unit: (refused, sorted({*nodes})) for unit, (refused, nodes) in found.items() if nodes}
