"""Selection of the suspects when a rejection does not name the resource at fault: new parts come first."""

from collections.abc import Callable, Collection, Iterable

from meshwright.delivery.quarantine.record import Accusation, Record, Suspect
from meshwright.delivery.quarantine.reduced_snapshot import concerns, holds, units_of
from meshwright.sidecars.contract.reasons import Reason
from xds.protocol.resources.resource import Reference, Resource, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot


def likeliest(
    resources: list[Resource],
    own: Snapshot | None,
    accepts: Callable[[Resource], bool],
    tried: Collection[Suspect],
) -> list[Resource]:
    """Return the resources that a proxy most likely rejected, if its message names none.

    Excluded are resources accepted before, and fallbacks served instead of the group's own version, unless a
    fallback contains units of policy or a suspect on trial. If the rule excludes all, the result is all new
    resources, else all `resources`.
    """
    fresh = [resource for resource in resources if not accepts(resource)]
    named = [
        resource
        for resource in fresh
        if concerns(resource, tried) or units_of(resource) or (own is not None and holds(own, resource))
    ]
    return named or fresh or resources


def versions(resource: Resource, own: Snapshot | None) -> frozenset[Version]:
    """Return the rejected version, and the version of the group, which may contain more units of policy."""
    full = None if own is None else own.resources(resource.type_url).get(resource.name)
    return frozenset({resource.version} | ({full.version} if full is not None else set()))


def suspected(
    resource: Resource,
    reason: Reason,
    accused: Callable[[Suspect], Accusation | None],
    good: Iterable[Resource | None],
) -> list[Suspect]:
    """Return the suspects in a rejected resource: units of policy, else the resource itself.

    Units found guilty before are guilty again. Otherwise the suspects are the units missing in a `good`
    version, taken from the first version with any missing unit. For example, a route rejected after a
    TrafficSplit was added accuses this TrafficSplit alone.
    """
    itself: Suspect = (resource.type_url, resource.name)
    there = units_of(resource)
    if reason.of_the_moment or not there:
        return [itself]
    if before := [unit_id for unit_id in there if (known := accused(unit_id)) is not None and known.times]:
        return [*before]
    fresh = (sorted(there.keys() - units_of(item).keys()) for item in good)
    return [*next(filter(None, fresh), [itself])]


def goes_on(record: Record, served: Snapshot, accepted: Collection[Reference], type_url: TypeUrl) -> bool:
    """Offer the next suspects, if the present trial is accepted; return whether the search goes on."""
    trials = record.trials.get(type_url)
    if trials is None:
        return False
    concerned = [resource for resource in served.ordered(type_url) if concerns(resource, trials.trying)]
    # The ACK is for a response without the suspects on trial, so it proves nothing about them.
    if concerned and not any((type_url, resource.name) in accepted for resource in concerned):
        return False
    return record.tried(type_url) or bool(trials.trying)
