"""From a group's resources to its snapshot: references lead somewhere, and what stays the same is shared."""

from collections.abc import Iterable

from xds.protocol.resource import Resource
from xds.protocol.snapshot import Snapshot


class InconsistentSnapshot(Exception):
    """A group's resources refer to resources that are not there; the message names the first of them."""


def consistent(found: Iterable[Resource], before: Snapshot | None = None) -> Snapshot:
    """Return the snapshot of these resources; raise InconsistentSnapshot if a reference leads nowhere.

    It shares with the one before all types that have not changed, and is the one before if nothing has.
    """
    snapshot = _after(before, tuple(found)) if before is not None else Snapshot.of(found)
    if snapshot is before:
        return snapshot
    missing = snapshot.missing()
    if missing:
        source, type_url, name = missing[0]
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise InconsistentSnapshot(
            f"{source.name} refers to {type_url.rpartition('.')[2]} {name}, which is not there{more}"
        )
    return snapshot


def _after(before: Snapshot, found: tuple[Resource, ...]) -> Snapshot:
    names = {(each.type_url, each.name) for each in found}
    if len(names) != len(found):
        return Snapshot.of(found)  # which names the one that is there twice
    put = [
        each
        for each in found
        if (old := before.resources(each.type_url).get(each.name)) is not each and old != each
    ]
    removed = [
        (type_url, name)
        for type_url in before.types()
        for name in before.resources(type_url)
        if (type_url, name) not in names
    ]
    return before.changed(put, removed) if put or removed else before
