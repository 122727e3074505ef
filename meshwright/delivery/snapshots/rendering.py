"""Rendering of a group's resources: pieces of policy, each made once for all groups with this piece.

All functions marked `@derived` are incremental: the engine records their reads and runs them again only if
one of these has changed. The split into many small functions decides how little is run again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from catalog.policy.destinations import Answering, allowed_answering, endpoints_of
from catalog.policy.edge import edge_authorities, edge_secrets
from catalog.policy.group_policy import outline
from catalog.policy.reachable import derive_open
from catalog.policy.values.edge import EdgeAuthorities
from catalog.policy.values.proxy import ProxyPolicy
from catalog.relations.groups import ProxyGroup
from catalog.store import mesh_wide
from catalog.store.view import View
from certs.keys.material import ServiceCertificate
from meshwright.delivery.snapshots.fitness import FittingResources, RefusedResource, fitting, joined
from meshwright.delivery.snapshots.sets import SetBuilder
from meshwright.engine.derived import derived
from meshwright.engine.table import Table
from meshwright.mesh.config import SidecarSettings
from meshwright.mesh.gateway.secrets import TlsSecret
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.values.cached_hash import CachedHash, hashed_once
from meshwright.sidecars.contract.driver import Piece, Pieces
from xds.protocol.resources.resource import Resource
from xds.protocol.resources.resource_set import ResourceSet

_ROOTS: Final = "roots"


@dataclass(frozen=True, slots=True)
class GroupInput:
    """All inputs of a group's snapshot except endpoints (see `Piece.destinations`).

    Equal inputs with equal endpoints give equal snapshots.
    """

    policy: ProxyPolicy
    certificate: ServiceCertificate | None
    trust_bundle: bytes = field(repr=False)
    driver: str = ""
    """The name of the sidecar driver, from the group's workloads or their namespace."""
    sidecar: SidecarSettings = field(default_factory=SidecarSettings)
    secrets: tuple[TlsSecret, ...] = ()
    """The certificates that a gateway shows to its clients."""
    authorities: tuple[EdgeAuthorities, ...] = ()
    """The CA certificates by which a gateway validates its clients."""


Translate = Callable[[GroupInput], Iterable[Piece | Pieces]]


@hashed_once
@dataclass(frozen=True, slots=True)
class PieceWithoutEndpoints(CachedHash):
    """A piece without endpoints, with the services allowed to answer at each destination.

    The caller is left out.
    """

    piece: Piece
    answering: tuple[Answering, ...]


SortedOut = tuple[FittingResources, tuple[PieceWithoutEndpoints, ...]]
"""Resources that do not depend on endpoints, and pieces that need endpoints."""


class RenderInputs:
    """Inputs of rendering: the view, certificates and CA certificates; `encoded` counts the pieces made."""

    def __init__(self, view: View, translate: Translate) -> None:
        self.view = view
        self.graph = view.graph
        self.translate = translate
        self.certificates: Table[ServiceIdentity, ServiceCertificate] = Table(self.graph, "certificates")
        self.roots: Table[str, bytes] = Table(self.graph, "trust bundle")
        self.encoded = 0
        self.sets = SetBuilder()

    def certify(
        self, changed: Mapping[ServiceIdentity, ServiceCertificate | None], trust_bundle: bytes
    ) -> None:
        """Apply changed service certificates (`None` for a removed one) and the CA certificates."""
        edits = [
            self.certificates.remove(identity) if held is None else self.certificates.set(identity, held)
            for identity, held in changed.items()
        ]
        self.graph.apply([*edits, self.roots.set(_ROOTS, trust_bundle)])


@dataclass(frozen=True, slots=True)
class SharedResources:
    """Resources of pieces shared by several groups, each made once; equal resources are one set."""

    set: ResourceSet
    refused: tuple[RefusedResource, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupResources:
    """Resources of a group alone, and the pieces shared with other groups; see `together`."""

    fits: FittingResources
    shared: tuple[Pieces, ...] = ()


@dataclass(frozen=True, slots=True)
class RenderedResources:
    """All resources of a group of proxies, and the excluded units of policy."""

    resources: tuple[Resource, ...]
    refused: tuple[RefusedResource, ...] = ()


@derived
def resources(rendering: RenderInputs, group: ProxyGroup) -> RenderedResources:
    """Return all resources of a group of proxies, and the units of policy excluded from them."""
    mine = own(rendering, group)
    shared = [together(rendering, pieces) for pieces in mine.shared]
    every = (
        resource
        for shared_resources in shared
        for table in shared_resources.set.tables.values()
        for resource in table.values()
    )
    refused = (one for shared_resources in shared for one in shared_resources.refused)
    return RenderedResources((*every, *mine.fits.resources), (*refused, *mine.fits.refused))


@derived
def own(rendering: RenderInputs, group: ProxyGroup) -> GroupResources:
    """Return the resources of a group alone, and the pieces shared with other groups.

    The shared resources are not read here, so their change does not run this function for every group.
    """
    (lasting, wants), shared = translated(rendering, group)
    return GroupResources(joined((lasting, *(_completed(rendering, want) for want in wants))), shared)


@derived
def together(rendering: RenderInputs, pieces: Pieces) -> SharedResources:
    """Return the resources made from pieces that several groups of proxies share."""
    every = [_fits(rendering, item) for item in _once(rendering, pieces)]
    refused = tuple(one for fitting_resources in every for one in fitting_resources.refused)
    return SharedResources(
        rendering.sets.build_set(fitting_resources.resources for fitting_resources in every), refused
    )


def in_common(rendering: RenderInputs, group: ProxyGroup) -> Iterator[None]:
    """Make the shared resources of a group, unless they are made already; yield after each part.

    Otherwise the first group would make thousands of pieces in one step, and hold the event loop. An error is
    raised again by `together`.
    """
    yield from derive_open(rendering.view, group)
    for pieces in translated(rendering, group)[1]:
        yield None
        if not together.is_known(rendering, pieces):
            yield from _one_by_one(rendering, _once(rendering, pieces))
            together(rendering, pieces).set.needs()
            yield None


def _one_by_one(rendering: RenderInputs, result: Iterable[Piece | Pieces]) -> Iterator[None]:
    for item in result:
        if isinstance(item, Piece):
            if not made.is_known(rendering, item):
                yield from item.ahead(*item.arguments)
        elif not _part.is_known(rendering, item):
            for part in item.pieces():
                _fits(rendering, part)
                yield None
        _fits(rendering, item)
        yield None


def _fits(rendering: RenderInputs, result: Piece | Pieces) -> FittingResources:
    if isinstance(result, Pieces):
        return _part(rendering, result)
    if result.destinations:
        return _completed(rendering, wanting(rendering, result))
    return made(rendering, result)


@derived
def _completed(rendering: RenderInputs, wants: PieceWithoutEndpoints) -> FittingResources:
    """Return the resources of a piece with the present endpoints.

    A value of its own for two reasons: when one endpoint changes, the other pieces of a group are not read
    again, and groups that need the same piece share one value.
    """
    return made(rendering, _with_endpoints(rendering, wants))


@derived
def _part(rendering: RenderInputs, pieces: Pieces) -> FittingResources:
    """Return the resources of a nested group of pieces."""
    return joined(_fits(rendering, piece) for piece in pieces.pieces())


@derived
def translated(rendering: RenderInputs, group: ProxyGroup) -> tuple[SortedOut, tuple[Pieces, ...]]:
    """Return the resources of a group without endpoints and shared pieces, and the pieces to be completed.

    Reads no endpoints, so a group is not translated again after a change of endpoints alone.
    """
    result = tuple(rendering.translate(group_input(rendering, group)))
    own = [item for item in result if isinstance(item, Piece)]
    return _sorted_out(rendering, own), tuple(item for item in result if isinstance(item, Pieces))


@derived
def _once(rendering: RenderInputs, pieces: Pieces) -> tuple[Piece | Pieces, ...]:
    """Return the single pieces within a shared set of pieces, stored because they need no endpoints."""
    del rendering
    return pieces.pieces()


def _sorted_out(rendering: RenderInputs, pieces: Iterable[Piece]) -> SortedOut:
    """Return the resources without need of endpoints, and the pieces with such a need."""
    every = tuple(pieces)
    lasting = (made(rendering, piece) for piece in every if not piece.destinations)
    return joined(lasting), tuple(wanting(rendering, piece) for piece in every if piece.destinations)


def wanting(rendering: RenderInputs, piece: Piece) -> PieceWithoutEndpoints:
    """Return a piece without endpoints; the same object for all groups with the same endpoints.

    The caller of a destination only matters for which services may answer, so `answering` replaces it.
    """
    destinations = piece.destinations
    anybodys = replace(
        piece, destinations=tuple(replace(destination, caller=None) for destination in destinations)
    )
    return _one(
        rendering,
        PieceWithoutEndpoints(
            anybodys, tuple(allowed_answering(rendering.view, destination) for destination in destinations)
        ),
    )


@derived
def _one(rendering: RenderInputs, wants: PieceWithoutEndpoints) -> PieceWithoutEndpoints:
    del rendering
    return wants


def complete(rendering: RenderInputs, piece: Piece) -> Piece:
    """Return a piece with the endpoints of its destinations."""
    return _with_endpoints(rendering, wanting(rendering, piece)) if piece.destinations else piece


def _with_endpoints(rendering: RenderInputs, wants: PieceWithoutEndpoints) -> Piece:
    whole = (
        replace(destination, endpoints=endpoints_of(rendering.view, destination.service, answering))
        for destination, answering in zip(wants.piece.destinations, wants.answering, strict=True)
    )
    return replace(wants.piece, destinations=tuple(whole))


def group_input(rendering: RenderInputs, group: ProxyGroup) -> GroupInput:
    """Return all inputs of a group's resources except endpoints."""
    return GroupInput(
        outline(rendering.view, group),
        rendering.certificates.get(group.identity),
        rendering.roots.get(_ROOTS, b""),
        group.driver,
        mesh_wide.sidecar(rendering.view).value(),
        edge_secrets(rendering.view, group),
        edge_authorities(rendering.view, group),
    )


@derived
def made(rendering: RenderInputs, piece: Piece) -> FittingResources:
    """Return a piece's resources, made and judged once for all groups with the piece."""
    rendering.encoded += 1
    return fitting(piece)
