"""Suspects of a rejection whose message does not name them: new parts come first."""

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
    """Return which of these a proxy may have meant that did not say which it was, all if it may be any.

    What it had accepted before is not it, and what is served in the place of another is hardly it, unless
    something is `tried` in it. What is made with less still has units in it that may be new.
    """
    fresh = [each for each in resources if not accepts(each)]
    named = [
        each
        for each in fresh
        if concerns(each, tried) or units_of(each) or (own is not None and holds(own, each))
    ]
    return named or fresh or resources


def versions(resource: Resource, own: Snapshot | None) -> frozenset[Version]:
    """Return the version that was rejected, and the group's own, which is it with more of the policy."""
    full = None if own is None else own.resources(resource.type_url).get(resource.name)
    return frozenset({resource.version} | ({full.version} if full is not None else set()))


def suspected(
    resource: Resource,
    reason: Reason,
    accused: Callable[[Suspect], Accusation | None],
    good: Iterable[Resource | None],
) -> list[Suspect]:
    """Return what of a rejected resource may be at fault: units of policy, or else itself.

    What was found guilty before is so again. Else it is what is new since the first of the versions that
    count as `good` in which it is not all.
    """
    itself: Suspect = (resource.type_url, resource.name)
    there = units_of(resource)
    if reason.of_the_moment or not there:
        return [itself]
    if before := [each for each in there if (known := accused(each)) is not None and known.times]:
        return [*before]
    fresh = (sorted(there.keys() - units_of(each).keys()) for each in good)
    return [*next(filter(None, fresh), [itself])]


def goes_on(record: Record, served: Snapshot, accepted: Collection[Reference], type_url: TypeUrl) -> bool:
    """Let in what is to be tried next, if what is tried is accepted; say whether the search goes on."""
    trials = record.trials.get(type_url)
    if trials is None:
        return False
    concerned = [each for each in served.ordered(type_url) if concerns(each, trials.trying)]
    # What is tried was not in what this answers: nothing is known of it yet.
    if concerned and not any((type_url, each.name) in accepted for each in concerned):
        return False
    return record.tried(type_url) or bool(trials.trying)
