"""From what the catalog wants to snapshots, group by group: only what a change concerns is made again."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from catalog.policy.provenance import MadeFrom, Whole, made_from
from catalog.relations.groups import ProxyGroup, group_of, members
from catalog.store.inventory import holder_of
from catalog.store.view import View
from delivery.snapshots.consistency import consistent
from delivery.snapshots.fitting import Refused
from delivery.snapshots.published import Published, Result, Step
from delivery.snapshots.rendering import (
    Rendered,
    Rendering,
    Translate,
    complete,
    group_input,
    made,
    resources,
)
from engine.derived import Observed, derived
from mesh.identity import ProxyName
from sidecars.contract.driver import each_piece
from xds.cache import GroupKey, NodeKey
from xds.protocol.resource import ResourceName, TypeUrl


def group_name(group: ProxyGroup) -> GroupKey:
    """Return a short name of a group for caches and pages: equal for equal keys, in every process."""
    digest = hashlib.sha256(repr(group).encode()).hexdigest()[:8]
    where = f"|{group.workload.name}" if group.workload is not None else ""
    return GroupKey(f"{group.primary}|{group.identity.service_account}{where}|{digest}")


class Serving:
    """Keeps every group's resources current.

    `refused` is what is left out of them by group, because its proxies would refuse it.
    """

    def __init__(self, view: View, translate: Translate) -> None:
        self.view = view
        self.rendering = Rendering(view, translate)
        self._fresh = True
        self.refused: dict[ProxyGroup, tuple[Refused, ...]] = {}
        self._pins: Observed[ProxyGroup, Rendered] = Observed(resources, self.rendering)
        self._nodes: Observed[ProxyGroup, tuple[NodeKey, ...]] = Observed(nodes_of, view)
        self._groups: dict[ProxyGroup, _Group] = {}
        members(view).watch()

    def touched(self) -> Iterator[ProxyGroup]:
        """Yield the groups that changes may concern since the last time, and those that come or go."""
        seen: set[ProxyGroup] = set()
        for key in members(self.view).take_changed():
            if key in members(self.view) and key not in self._groups:
                self._groups[key] = _Group(group_name(key))
                self._pins.add(key)
                self._nodes.add(key)
            seen.add(key)
            yield key
        for key in (*self._pins.take_changed(), *self._nodes.take_changed()):
            if key not in seen:
                seen.add(key)
                yield key

    def group(self, node: NodeKey) -> ProxyGroup | None:
        """Return the group of a proxy, None where its workload is not known."""
        workload = holder_of(self.view, ProxyName.parse(node).uuid)
        return None if workload is None else group_of(self.view, workload)

    def nodes(self, group: ProxyGroup) -> tuple[NodeKey, ...]:
        """Return the proxies of a group as they were when it was last computed."""
        found = self._groups.get(group)
        return () if found is None else found.nodes

    def objects_behind(
        self, group: ProxyGroup, type_url: TypeUrl, name: ResourceName
    ) -> tuple[MadeFrom, ...]:
        """Return the inputs that a resource of a group was made from, sorted; none if there is no such.

        Where the group cannot be computed they are those that its failure came from. Nothing is kept for
        it: the group's pieces are looked through when somebody asks.
        """
        try:
            pieces = self.rendering.translate(group_input(self.rendering, group))
            part = next(
                each.about
                for each in each_piece(pieces)
                for resource in made(self.rendering, complete(self.rendering, each)).resources
                if (resource.type_url, resource.name) == (type_url, name)
            )
        except StopIteration:
            return ()
        except Exception:  # noqa: BLE001 - whatever it is, published.failed says so
            part = Whole()
        return made_from(self.view, group, part)

    def behind(self, node: NodeKey, type_url: TypeUrl, name: ResourceName) -> tuple[MadeFrom, ...]:
        """Return the inputs that a proxy's resource was made from; none where its workload is not known."""
        group = self.group(node)
        return () if group is None else self.objects_behind(group, type_url, name)

    def steps(self, before: Published, touched: Iterable[ProxyGroup]) -> Iterator[Step | None]:
        """Compute the touched groups; yield None after each of them, and in the end the step.

        A proxy in no group is not in it: the cache leaves its streams with what they have.
        """
        result = Result(before)
        if self._fresh:  # whatever was served before is not known here
            result.left(None, before.members)
            self._fresh = False
        for key in touched:
            self._compute(key, result)
            yield None
        yield result.step()

    def _compute(self, key: ProxyGroup, result: Result) -> None:
        group = self._groups.get(key)
        if group is None:
            return
        nodes = self._nodes.value(key)
        # As if the group were gone: whatever it comes to below takes back what of that is not so.
        result.left(group.name, group.nodes)
        if nodes != group.nodes:
            result.moved = True
            group.nodes = nodes
        if not nodes:
            self._pins.discard(key)
            self._nodes.discard(key)
            del self._groups[key]
            self.refused.pop(key, None)
            return
        try:
            fits = self._pins.value(key)
            snapshot = consistent(
                fits.own.resources,
                result.before.snapshots.get(group.name),
                [each.set for each in fits.shared],
            )
        except Exception as error:  # noqa: BLE001 - whatever one group's objects do, the others go on
            result.fail(group.name, nodes, error)
        else:
            result.add(group.name, nodes, snapshot)
            if refused := fits.refused:
                self.refused[key] = refused
            else:
                self.refused.pop(key, None)


@derived
def nodes_of(view: View, group: ProxyGroup) -> tuple[NodeKey, ...]:
    """Return the proxies of a group by their certificates' common names."""
    names = (view.workloads[each].proxy_name for each in members(view).get(group, ()))
    return tuple(NodeKey(str(name)) for name in names if name is not None)


@dataclass(slots=True)
class _Group:
    """A group that is kept current: its name, and the nodes it had when it was last computed."""

    name: GroupKey
    nodes: tuple[NodeKey, ...] = ()
