"""Exclusion of units of policy for which proxies would reject a resource, before the publication.

The driver judges resources made from units. The unit at fault is searched for only after a negative
judgement. Resources without units are not judged, because they have no part to exclude, and judging every
cluster and listener takes half as long as making them.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from catalog.policy.units import Unit
from meshwright.delivery.trials import guilty
from meshwright.sidecars.contract.driver import Piece
from xds.protocol.resources.resource import Reference, Resource


@dataclass(frozen=True, slots=True)
class RefusedResource:
    """Reason why a resource would be rejected, and the excluded unit.

    `unit` is `None` if the fault is outside all units. The resource is then published unchanged, and the
    proxies decide.
    """

    key: Reference
    unit: Unit | None
    message: str


@dataclass(frozen=True, slots=True)
class FittingResources:
    """Resources to be published, and the units of policy excluded from them."""

    resources: tuple[Resource, ...]
    refused: tuple[RefusedResource, ...] = ()


def joined(result: Iterable[FittingResources]) -> FittingResources:
    """Return the resources and the excluded units of several results as one result."""
    every = tuple(result)
    resources = tuple(resource for resources in every for resource in resources.resources)
    return FittingResources(resources, tuple(refused for resources in every for refused in resources.refused))


def fitting(piece: Piece) -> FittingResources:
    """Return the resources made from a piece, without the units of policy at fault."""
    resources = piece.resources()
    units = piece.units
    # Usually without a fault, so the search below is rare.
    if not units or not (faults := _faults(resources, piece)):
        return FittingResources(resources)
    # Faulty even without any unit: excluding units would not help.
    if _made_without(piece, units):
        return FittingResources(resources, tuple(RefusedResource(key, None, text) for key, text in faults))
    bad = guilty(sorted(units, key=repr), lambda some: bool(_made_without(piece, units - some)))
    attempts = ((unit, _made_without(piece, bad - {unit})[0]) for unit in sorted(bad, key=repr))
    return FittingResources(
        piece.without(bad).resources(),
        tuple(RefusedResource(k, unit, words) for unit, (k, words) in attempts),
    )


def _made_without(piece: Piece, left_out: frozenset[Unit]) -> list[tuple[Reference, str]]:
    """Return the faults of the resources made from a piece without these units of policy."""
    return _faults(piece.without(left_out).resources(), piece)


def _faults(resources: Iterable[Resource], piece: Piece) -> list[tuple[Reference, str]]:
    """Return the faults of resources with their keys; secrets are skipped, so that none is reported."""
    return [
        ((resource.type_url, resource.name), fault)
        for resource in resources
        if not resource.secret
        for fault in piece.faults(resource)
    ]
