"""Resources as they can be published: without the units of policy for which their proxies would refuse them.

A resource that units are in is judged where it is made, by its driver. Which of them is at fault is looked
for only if any is. What is made of no unit is not judged: nothing could be left out of it, and to judge every
cluster and listener takes half as long as to make it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from catalog.policy.units import Unit
from meshwright.delivery.trials import guilty
from meshwright.sidecars.contract.driver import Piece
from xds.protocol.resources.resource import Reference, Resource


@dataclass(frozen=True, slots=True)
class RefusedResource:
    """Why a resource would be refused, and the unit of policy that is left out of it for that.

    Without a unit none of them is at fault, and the resource is published as it is: its proxies decide.
    """

    key: Reference
    unit: Unit | None
    said: str


@dataclass(frozen=True, slots=True)
class FittingResources:
    """Resources to be published, and what is left out of them."""

    resources: tuple[Resource, ...]
    refused: tuple[RefusedResource, ...] = ()


def joined(found: Iterable[FittingResources]) -> FittingResources:
    """Return several as one."""
    every = tuple(found)
    resources = tuple(resource for each in every for resource in each.resources)
    return FittingResources(resources, tuple(refused for each in every for refused in each.refused))


def fitting(piece: Piece) -> FittingResources:
    """Return a piece's resources, without the units of policy that are at fault."""
    found = piece.resources()
    units = piece.units
    if not units or not (faults := _faults(found, piece)):
        return FittingResources(found)
    if _made_without(piece, units):
        return FittingResources(found, tuple(RefusedResource(key, None, said) for key, said in faults))
    bad = guilty(sorted(units, key=repr), lambda some: bool(_made_without(piece, units - some)))
    said = ((unit, _made_without(piece, bad - {unit})[0]) for unit in sorted(bad, key=repr))
    return FittingResources(
        piece.without(bad).resources(), tuple(RefusedResource(k, unit, words) for unit, (k, words) in said)
    )


def _made_without(piece: Piece, left_out: frozenset[Unit]) -> list[tuple[Reference, str]]:
    """Return what is wrong with what a piece makes without these units."""
    return _faults(piece.without(left_out).resources(), piece)


def _faults(resources: Iterable[Resource], piece: Piece) -> list[tuple[Reference, str]]:
    """Return what is wrong with resources, and with which; what secrets hold is not said."""
    return [
        ((each.type_url, each.name), said)
        for each in resources
        if not each.secret
        for said in piece.faults(each)
    ]
