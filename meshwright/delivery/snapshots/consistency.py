"""Assembly of a group's snapshot: references are checked, and unchanged parts are shared."""

import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Final

from xds.protocol.resources.resource import Resource
from xds.protocol.resources.resource_set import ResourceSet
from xds.protocol.resources.snapshot import Snapshot


class InconsistentSnapshot(Exception):
    """Error for a snapshot with references to missing resources; names the first such reference."""


@dataclass(frozen=True, slots=True)
class LastSnapshot:
    """The own resources of a group, in order, and their set in the last snapshot.

    The next resources are mostly the same, in the same order, with one changed, so a comparison by position
    is cheap.
    """

    resources: tuple[Resource, ...] = ()
    made: weakref.ref[ResourceSet] | None = None

    def own_resources(self, resource_set: ResourceSet) -> tuple[Resource, ...] | None:
        """Return the group's own resources in order if `resource_set` is the last set of them, or `None`."""
        return self.resources if self.made is not None and self.made() is resource_set else None


NOTHING: Final = LastSnapshot()


def consistent(
    own: Iterable[Resource],
    before: Snapshot | None = None,
    shared: Sequence[ResourceSet] = (),
    last: LastSnapshot = NOTHING,
) -> Snapshot:
    """Return the snapshot of a group's own resources and the resources shared with other groups.

    Unchanged types are shared with the snapshot before, and without any change the result is the snapshot
    before. The cost depends on the group's own resources only, and is small for resources unchanged since
    `last`. Raises InconsistentSnapshot if a referenced resource is missing, and SnapshotError for two
    resources of one name.
    """
    resources = tuple(own)
    mine = ResourceSet.of(resources) if before is None else after(before.parts[-1], resources, last)
    return _snapshot_of((*shared, mine), before)


def beside(shared: Sequence[ResourceSet], before: Snapshot) -> Snapshot:
    """Return a group's snapshot if only the shared resources have changed; raises like `consistent`."""
    return _snapshot_of((*shared, before.parts[-1]), before)


def _snapshot_of(parts: tuple[ResourceSet, ...], before: Snapshot | None) -> Snapshot:
    if before is not None and len(parts) == len(before.parts) and all(map(is_, parts, before.parts)):
        return before
    snapshot = Snapshot.joined(parts, before)
    missing = snapshot.missing()
    if missing:
        source, type_url, name = missing[0]
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise InconsistentSnapshot(
            f"{source.name} refers to {type_url.rpartition('.')[2]} {name}, which does not exist{more}"
        )
    return snapshot


def after(before: ResourceSet, resources: tuple[Resource, ...], last: LastSnapshot = NOTHING) -> ResourceSet:
    """Return the set of these resources, derived from the set before; the same set without any change."""
    # The fast path: compare by position, and look only at the changed resources.
    known = last.own_resources(before)
    if known is not None and len(known) == len(resources):
        others = [(old, new) for old, new in zip(known, resources, strict=True) if old is not new]
        if all((old.type_url, old.name) == (new.type_url, new.name) for old, new in others):
            put = [new for old, new in others if old != new]
            return before.changed(put) if put else before
    if sum(map(len, before.tables.values())) == len(resources) and all(
        before.resources(resource.type_url).get(resource.name) is resource for resource in resources
    ):
        return before  # only shared resources have changed
    names = {(resource.type_url, resource.name) for resource in resources}
    if len(names) != len(resources):
        return ResourceSet.of(resources)  # raises an error that names the duplicate
    put = [
        resource
        for resource in resources
        if (old := before.resources(resource.type_url).get(resource.name)) is not resource and old != resource
    ]
    removed = [
        (type_url, name)
        for type_url, table in before.tables.items()
        for name in table
        if (type_url, name) not in names
    ]
    return before.changed(put, removed) if put or removed else before
