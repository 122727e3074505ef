"""A group's snapshot, made again without units of policy rejected by a proxy.

Resources that decide about admission never go back to an older version, which may admit more callers: they
have the current policy without the rejected units. Other resources may be served in the good version from
before these units, as long as only the units have changed.
"""

from collections.abc import Callable, Collection, Iterator, Mapping

from catalog.policy.units import Unit, UnitId, unit_id
from meshwright.sidecars.contract.driver import Piece
from xds.protocol.resources.resource import Reference, Resource, is_another_version
from xds.protocol.resources.snapshot import Snapshot


def piece_of(resource: Resource | None) -> Piece | None:
    """Return the piece from which a resource is made, or `None` for a resource without units or admission."""
    recipe = None if resource is None else resource.recipe
    return recipe if isinstance(recipe, Piece) else None


def units_of(resource: Resource | None) -> Mapping[UnitId, Unit]:
    """Return the units of policy of a resource by id; empty for a resource without units."""
    piece = piece_of(resource)
    return {} if piece is None else {unit_id(unit): unit for unit in piece.units}


def concerns(resource: Resource, suspects: Collection[object]) -> bool:
    """Return whether a resource is a suspect, or is made from a suspected unit of policy."""
    if not suspects:
        return False
    return (resource.type_url, resource.name) in suspects or any(e in suspects for e in units_of(resource))


def holds(snapshot: Snapshot, resource: Resource) -> bool:
    """Return whether a snapshot has a resource in exactly this version."""
    return not is_another_version(snapshot.resources(resource.type_url).get(resource.name), resource)


def all_units(snapshot: Snapshot) -> Mapping[UnitId, Unit]:
    """Return all units of policy in a snapshot by id."""
    return {key: unit for resource in _divisible(snapshot) for key, unit in units_of(resource).items()}


def replaced_units(own: Snapshot, served: Snapshot) -> frozenset[UnitId]:
    """Return the units of `own` in place of which `served` has units of an earlier version of a resource.

    For example, the newest form of a route's match, while the good version with its last form is served.
    """
    result: set[UnitId] = set()
    for resource in _divisible(own):
        there = served.resources(resource.type_url).get(resource.name)
        if there is None or there is resource:
            continue
        newest, earlier = units_of(resource).keys(), units_of(there).keys()
        if earlier - newest:
            result |= newest - earlier
    return frozenset(result)


def lessened(
    own: Snapshot, out: Collection[UnitId], good: Callable[[Reference], Resource | None]
) -> Snapshot:
    """Return a snapshot without the units of policy in `out`; `good` finds good versions of resources."""
    if not out:
        return own
    put: list[Resource] = []
    gone: list[Reference] = []
    for resource in _divisible(own):
        piece = piece_of(resource)
        units = frozenset(unit for key, unit in units_of(resource).items() if key in out)
        if piece is None or not units:
            continue
        key = (resource.type_url, resource.name)
        less = _made(piece.without(units), key)
        if not piece.admits:
            less = _before(piece, units, good(key)) or less
        if less is None:
            gone.append(key)
        else:
            put.append(less)
    return own.changed(put, gone) if put or gone else own


def admitted_by_both(good: Resource, own: Resource | None) -> Resource | None:
    """Return a good version of a resource, narrowed to callers admitted by the group's current version too.

    `own` is `None` if the group does not have the resource any more; then all callers are refused.
    """
    piece = piece_of(good)
    if piece is None or not piece.admits:
        return good
    narrowed = piece.narrowed(piece_of(own))
    return good if narrowed == piece else _made(narrowed, (good.type_url, good.name))


def _before(piece: Piece, out: frozenset[Unit], good: Resource | None) -> Resource | None:
    """Return the good version if the current one adds only the units `out` to it, else `None`."""
    earlier = piece_of(good)
    if earlier is None or earlier.units & out or not piece.units - out <= earlier.units:
        return None
    # Both without any unit: what is left is what units have no part in, and that must be the same.
    return good if earlier.without(earlier.units) == piece.without(piece.units) else None


def _made(piece: Piece, key: Reference) -> Resource | None:
    result = (resource for resource in piece.resources() if (resource.type_url, resource.name) == key)
    return next(result, None)


def _divisible(snapshot: Snapshot) -> Iterator[Resource]:
    for type_url in snapshot.types():
        for resource in snapshot.ordered(type_url):
            if resource.recipe is not None:
                yield resource
