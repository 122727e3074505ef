"""From a group's resources to its snapshot: references lead somewhere, and what stays the same is shared."""

from collections.abc import Iterable, Sequence
from operator import is_

from xds.protocol.resource import Resource
from xds.protocol.resource_set import ResourceSet
from xds.protocol.snapshot import Snapshot


class InconsistentSnapshot(Exception):
    """A group's resources refer to resources that are not there; the message names the first of them."""


def consistent(
    own: Iterable[Resource], before: Snapshot | None = None, shared: Sequence[ResourceSet] = ()
) -> Snapshot:
    """Return the snapshot of a group's own resources, beside those it shares with other groups.

    It shares with the one before all types that have not changed, and is the one before if nothing has.
    What it costs is what is its own. Raises InconsistentSnapshot if a reference leads nowhere, SnapshotError
    for two resources of one name.
    """
    found = tuple(own)
    mine = ResourceSet.of(found) if before is None else after(before.parts[-1], found)
    parts = (*shared, mine)
    if before is not None and len(parts) == len(before.parts) and all(map(is_, parts, before.parts)):
        return before
    snapshot = Snapshot.joined(parts, before)
    missing = snapshot.missing()
    if missing:
        source, type_url, name = missing[0]
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise InconsistentSnapshot(
            f"{source.name} refers to {type_url.rpartition('.')[2]} {name}, which is not there{more}"
        )
    return snapshot


def after(before: ResourceSet, found: tuple[Resource, ...]) -> ResourceSet:
    """Return the set of these resources, made of the one before; that very one if nothing has changed."""
    if sum(map(len, before.tables.values())) == len(found) and all(
        before.resources(each.type_url).get(each.name) is each for each in found
    ):
        return before  # as where only what it shares with others is another one
    names = {(each.type_url, each.name) for each in found}
    if len(names) != len(found):
        return ResourceSet.of(found)  # which names the one that is there twice
    put = [
        each
        for each in found
        if (old := before.resources(each.type_url).get(each.name)) is not each and old != each
    ]
    removed = [
        (type_url, name)
        for type_url, table in before.tables.items()
        for name in table
        if (type_url, name) not in names
    ]
    return before.changed(put, removed) if put or removed else before
