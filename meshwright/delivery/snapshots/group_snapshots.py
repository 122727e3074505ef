"""Snapshots of groups of proxies; a change recomputes only the groups concerned."""

import contextlib
import hashlib
import itertools
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from catalog.policy.provenance import InputObject, made_from
from catalog.policy.values.parts import WholePolicy
from catalog.relations.groups import ProxyGroup, group_of, members
from catalog.store.inventory import holder_of
from catalog.store.view import View
from meshwright.delivery.snapshots.consistency import NOTHING, LastSnapshot, beside, consistent
from meshwright.delivery.snapshots.fitness import RefusedResource
from meshwright.delivery.snapshots.published_snapshots import PublishedSnapshots, Result, Step
from meshwright.delivery.snapshots.rendering import (
    GroupResources,
    RenderInputs,
    SharedResources,
    Translate,
    complete,
    group_input,
    in_common,
    made,
    own,
    resources,
    together,
)
from meshwright.delivery.snapshots.wanted_groups import AllGroups, NewWanted
from meshwright.engine.derived import ObservedValues, derived
from meshwright.mesh.identity import ProxyName
from meshwright.sidecars.contract.driver import Pieces, each_piece
from xds.cache import GroupKey, NodeKey
from xds.protocol.resources.resource import ResourceName, TypeUrl
from xds.protocol.resources.snapshot import Snapshot


def group_name(group: ProxyGroup) -> GroupKey:
    """Return a short name of a group for caches and pages, equal for equal keys in every process.

    For example: `shop/cart|cart|1f3a9c02`.
    """
    digest = hashlib.sha256(repr(group).encode()).hexdigest()[:8]
    where = f"|{group.workload.name}" if group.workload is not None else ""
    return GroupKey(f"{group.primary}|{group.identity.service_account}{where}|{digest}")


class GroupSnapshots:
    """Snapshots of the wanted groups, kept current; other groups are computed on request only.

    `refused` are the excluded units by group. Resources on request are made by `preview`, which must work
    without a certificate, because certificates are issued only for connected proxies.
    """

    def __init__(
        self,
        view: View,
        translate: Translate,
        wanted: NewWanted = AllGroups,
        preview: Translate | None = None,
    ) -> None:
        self.view = view
        self.wanted = wanted(view)
        self.rendering = RenderInputs(view, translate)
        self._preview = RenderInputs(view, preview or translate)
        self._fresh = True
        self._new_groups: dict[ProxyGroup, None] = {}
        self._due: dict[ProxyGroup, None] = {}
        self.refused: dict[ProxyGroup, tuple[RefusedResource, ...]] = {}
        self._pins: ObservedValues[ProxyGroup, GroupResources] = ObservedValues(own, self.rendering)
        self._shared: ObservedValues[Pieces, SharedResources] = ObservedValues(together, self.rendering)
        self._sharing: dict[Pieces, dict[ProxyGroup, None]] = {}
        self._nodes: ObservedValues[ProxyGroup, tuple[NodeKey, ...]] = ObservedValues(nodes_of, view)
        self._groups: dict[ProxyGroup, _Group] = {}
        self.wanted.groups.watch()

    def touched(self) -> tuple[ProxyGroup, ...]:
        """Return the groups that changes may concern, and added or removed groups, since the last call.

        Added groups are kept current from now on.
        """
        self._new_groups.update(dict.fromkeys(self.wanted.groups.take_changed()))
        came, self._new_groups = self._new_groups, {}
        self._begin(came)
        taken = tuple({**came, **self._due})
        self._due = {}
        return taken

    def arrivals(self, most: int) -> tuple[ProxyGroup, ...]:
        """Return up to `most` added and removed groups; all other touched groups are left to `touched`."""
        self._new_groups.update(dict.fromkeys(self.wanted.groups.take_changed()))
        taken = tuple(itertools.islice(self._new_groups, most))
        for key in taken:
            del self._new_groups[key]
        self._begin(taken)
        return taken

    @property
    def is_current(self) -> bool:
        """True if every touched group has been computed."""
        return not (self._new_groups or self._due)

    def _begin(self, groups: Iterable[ProxyGroup]) -> None:
        """Start to keep the snapshots of wanted groups current, and record the other touched groups."""
        for key in groups:
            if self.wants(key) and key not in self._groups:
                self._groups[key] = _Group(group_name(key))
                self._pins.add(key)
                self._nodes.add(key)
        for key in (*self._pins.take_changed(), *self._nodes.take_changed(), *groups):
            self._due[key] = None
            if (group := self._groups.get(key)) is not None:
                group.itself = True
        for pieces in self._shared.take_changed():
            self._due.update(self._sharing.get(pieces, {}))
        for key in groups:
            self._due.pop(key, None)

    def is_touched(self, group: ProxyGroup) -> bool:
        """Return whether more than the shared resources may have changed in a group's snapshot."""
        exception_group = self._groups.get(group)
        return exception_group is None or exception_group.itself

    def wants(self, group: ProxyGroup) -> bool:
        """Return whether the snapshot of a group is to be kept current."""
        return group in self.wanted.groups

    def group(self, node: NodeKey) -> ProxyGroup | None:
        """Return the group of a proxy, or `None` if no known workload has the proxy."""
        workload = holder_of(self.view, ProxyName.parse(node))
        return None if workload is None else group_of(self.view, workload)

    def is_known(self, node: NodeKey) -> bool:
        """Return whether a proxy belongs to a workload of the mesh."""
        return holder_of(self.view, ProxyName.parse(node)) is not None

    def nodes(self, group: ProxyGroup) -> tuple[NodeKey, ...]:
        """Return the proxies of a group at the last computation."""
        exception_group = self._groups.get(group)
        return () if exception_group is None else exception_group.nodes

    def objects_behind(
        self, group: ProxyGroup, type_url: TypeUrl, name: ResourceName
    ) -> tuple[InputObject, ...]:
        """Return the inputs of a group's resource, sorted; empty if the group does not have the resource.

        If the group cannot be computed, the inputs of the failure are returned. The method stores no index:
        each call searches the group's pieces.
        """
        rendering = self._rendering_of(group)
        try:
            pieces = rendering.translate(group_input(rendering, group))
            part = next(
                piece.about
                for piece in each_piece(pieces)
                for resource in made(rendering, complete(rendering, piece)).resources
                if (resource.type_url, resource.name) == (type_url, name)
            )
        except StopIteration:
            return ()
        except Exception:  # noqa: BLE001 - whatever it is, published.failed says so
            part = WholePolicy()
        return made_from(self.view, group, part)

    def behind(self, node: NodeKey, type_url: TypeUrl, name: ResourceName) -> tuple[InputObject, ...]:
        """Return the input objects of a proxy's resource; empty for an unknown workload."""
        group = self.group(node)
        return () if group is None else self.objects_behind(group, type_url, name)

    def previewed(self, node: NodeKey) -> Snapshot | None:
        """Return the snapshot for a disconnected proxy, without secrets; dropped soon afterwards.

        For example, for the page of an expected proxy before the first connection. `None` if the workload is
        unknown, the group is kept current, or the computation fails. Proxies of one group get the same
        object.
        """
        group = self.group(node)
        if group is None or group in self._groups:
            return None
        try:
            return preview(self._preview, group)
        except Exception:  # noqa: BLE001 - whatever it is, it would not be served
            return None

    def _rendering_of(self, group: ProxyGroup) -> RenderInputs:
        return self.rendering if group in self._groups else self._preview

    def steps(self, before: PublishedSnapshots, touched: Iterable[ProxyGroup]) -> Iterator[Step | None]:
        """Compute the touched groups; yield `None` after each group or more often, and the step at the end.

        A proxy without a group is missing in the step, so the proxy's streams keep their resources.
        """
        result = Result(before)
        if self._fresh:  # after a restart of the model, the groups served before are unknown here
            result.left(None, before.members)
            self._fresh = False
        for number, key in enumerate(touched):
            group = self._groups.get(key)
            if group is not None and (number == 0 or not group.nodes) and self.wants(key):
                with contextlib.suppress(Exception):  # an error is raised again and reported below
                    yield from in_common(self.rendering, key)
            self._compute(key, result)
            yield None
        yield result.step(self.is_known)

    def _compute(self, key: ProxyGroup, result: Result) -> None:
        group = self._groups.get(key)
        if group is None:
            return
        before = result.before.snapshots.get(group.name)
        # Otherwise only shared resources have changed, and the group's own are reused without a computation.
        if group.itself or before is None or group.name in result.before.failed:
            self._compute_itself(key, group, before, result)
            return
        try:
            shared = [self._shared.value(pieces) for pieces in group.shared]
            snapshot = beside([shared_resources.set for shared_resources in shared], before)
        except Exception as error:  # noqa: BLE001 - whatever one group's objects do, the others go on
            result.left(group.name, group.nodes)
            result.fail(group.name, group.nodes, error)
        else:
            result.add(group.name, (), snapshot)
            self._refuse(key, shared, group.refused)

    def _compute_itself(
        self, key: ProxyGroup, group: "_Group", before: Snapshot | None, result: Result
    ) -> None:
        nodes = self._nodes.value(key) if self.wants(key) else ()
        if before is None or nodes != group.nodes or group.name in result.before.failed:
            # First as if the group were removed; `add` and `fail` below overwrite the entries that stay.
            result.left(group.name, group.nodes)
        group.nodes, group.itself = nodes, False
        if not nodes:
            self._pins.discard(key)
            self._nodes.discard(key)
            self._share(key, group, ())
            del self._groups[key]
            self.refused.pop(key, None)
            return
        try:
            mine = self._pins.value(key)
            self._share(key, group, mine.shared)
            shared = [self._shared.value(pieces) for pieces in mine.shared]
            outcome = mine.fits.resources
            snapshot = consistent(
                outcome, before, [shared_resources.set for shared_resources in shared], group.last
            )
            group.last = LastSnapshot(outcome, weakref.ref(snapshot.parts[-1]))
        except Exception as error:  # noqa: BLE001 - whatever one group's objects do, the others go on
            result.left(group.name, nodes)
            result.fail(group.name, nodes, error)
        else:
            group.refused = mine.fits.refused
            result.add(group.name, nodes, snapshot)
            self._refuse(key, shared, group.refused)

    def _refuse(
        self, key: ProxyGroup, shared: Iterable[SharedResources], own: tuple[RefusedResource, ...]
    ) -> None:
        """Record the units excluded from a group's own and shared resources."""
        if refused := (*(one for shared_resources in shared for one in shared_resources.refused), *own):
            self.refused[key] = refused
        else:
            self.refused.pop(key, None)

    def _share(self, key: ProxyGroup, group: "_Group", shared: tuple[Pieces, ...]) -> None:
        """Record the shared pieces of a group; pieces that no group has any more are not kept current."""
        before, group.shared = group.shared, shared
        # New pieces are added before old ones are removed, so pieces in both are kept current throughout.
        if shared == before:
            return
        for pieces in shared:
            if pieces not in self._sharing:
                self._shared.add(pieces, touched=False)
            self._sharing.setdefault(pieces, {})[key] = None
        for pieces in before:
            if pieces not in shared:
                del self._sharing[pieces][key]
                if not self._sharing[pieces]:
                    del self._sharing[pieces]
                    self._shared.discard(pieces)


@derived
def preview(rendering: RenderInputs, group: ProxyGroup) -> Snapshot:
    """Return a group's snapshot for a debug page; references between resources are not checked."""
    return Snapshot.of(resources(rendering, group).resources)


@derived
def nodes_of(view: View, group: ProxyGroup) -> tuple[NodeKey, ...]:
    """Return the node keys of a group's proxies: the common names of their certificates."""
    names = (view.workloads[member].proxy_name for member in members(view).get(group, ()))
    return tuple(NodeKey(str(name)) for name in names if name is not None)


@dataclass(slots=True)
class _Group:
    """A group kept current: the name, and the state at the last computation.

    `itself` is True if more than the shared resources may have changed since.
    """

    name: GroupKey
    itself: bool = True
    nodes: tuple[NodeKey, ...] = ()
    shared: tuple[Pieces, ...] = ()
    last: LastSnapshot = NOTHING
    refused: tuple[RefusedResource, ...] = ()
