"""From what the catalog wants to snapshots, group by group: only what a change concerns is made again.

A group whose computation fails leaves its proxies with what they had; the others go on.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeVar

import catalog.groups
from catalog.policy import proxy_policy
from catalog.proxy import ProxyPolicy
from catalog.view import View
from certs.material import ServiceCertificate
from incremental.derived import Pins, derived
from incremental.node import Source
from incremental.table import Table
from mesh.identity import ServiceIdentity
from sidecars.driver import Piece
from xds.cache import GroupKey, NodeKey
from xds.resource import Resource
from xds.snapshot import Snapshot

_ROOTS: Final = "roots"
K = TypeVar("K")
V = TypeVar("V")


class InconsistentSnapshot(Exception):
    """A group's resources refer to resources that are not there; the message names the first of them."""


@dataclass(frozen=True, slots=True)
class Need:
    """All that a group's snapshot is made from; equal needs make equal snapshots."""

    policy: ProxyPolicy
    certificate: ServiceCertificate | None
    trust_bundle: bytes = field(repr=False)


Translate = Callable[[Need], Iterable[Piece]]


@dataclass(frozen=True, slots=True)
class Failure:
    """A group that could not be computed, why, and how many of its proxies go on with what they had."""

    group: str
    error: str
    proxies: int
    kept: int


@dataclass(frozen=True, slots=True)
class Published:
    """What is served: snapshots by group, the group of each proxy, and the groups that failed."""

    snapshots: Mapping[GroupKey, Snapshot] = field(default_factory=lambda: MappingProxyType({}))
    members: Mapping[NodeKey, GroupKey] = field(default_factory=lambda: MappingProxyType({}))
    failed: Mapping[GroupKey, Failure] = field(default_factory=lambda: MappingProxyType({}))

    def snapshot(self, node: NodeKey) -> Snapshot | None:
        """Return a proxy's snapshot, or None while it has none."""
        group = self.members.get(node)
        return None if group is None else self.snapshots[group]

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The groups that failed, sorted by name."""
        return tuple(self.failed[name] for name in sorted(self.failed))


@dataclass(frozen=True, slots=True)
class Step:
    """How what is served differs from what was before: new values, None for what is gone.

    `moved`: proxies came, went, or are in another group.
    """

    snapshots: Mapping[GroupKey, Snapshot | None] = field(default_factory=dict)
    members: Mapping[NodeKey, GroupKey | None] = field(default_factory=dict)
    failed: Mapping[GroupKey, Failure | None] = field(default_factory=dict)
    moved: bool = False

    def __bool__(self) -> bool:
        return bool(self.snapshots or self.members)

    def after(self, before: Published) -> Published:
        """Return what is served after this step."""
        return Published(
            _replaced(before.snapshots, self.snapshots),
            _replaced(before.members, self.members),
            _replaced(before.failed, self.failed),
        )


def group_name(group: catalog.groups.GroupKey) -> GroupKey:
    """Return a short name of a group for caches and pages: equal for equal keys, in every process."""
    digest = hashlib.sha256(repr(group).encode()).hexdigest()[:8]
    where = f"|{group.workload.name}" if group.workload is not None else ""
    return GroupKey(f"{group.primary}|{group.identity.service_account}{where}|{digest}")


class Serving:
    """Keeps every group's resources current; `encoded` counts the pieces that were made."""

    def __init__(self, view: View, translate: Translate) -> None:
        self.view = view
        self.graph = view.graph
        self.translate = translate
        self.certificates: Table[ServiceIdentity, ServiceCertificate] = Table(self.graph, "certificates")
        self.roots: Table[str, bytes] = Table(self.graph, "trust bundle")
        self.encoded = 0
        self._fresh = True
        self._pins: Pins[catalog.groups.GroupKey, tuple[Resource, ...]] = Pins(resources, self)
        self._nodes: Pins[catalog.groups.GroupKey, tuple[NodeKey, ...]] = Pins(nodes_of, self)
        self._groups: dict[catalog.groups.GroupKey, _Group] = {}
        view.members.watch()

    def certify(
        self, changed: Mapping[ServiceIdentity, ServiceCertificate | None], trust_bundle: bytes
    ) -> None:
        """Take over certificates that are other ones now (None: gone), and the roots."""
        edits = [
            self.certificates.remove(identity) if held is None else self.certificates.set(identity, held)
            for identity, held in changed.items()
        ]
        self.graph.apply([*edits, self.roots.set(_ROOTS, trust_bundle)])

    def touched(self) -> tuple[catalog.groups.GroupKey, ...]:
        """Return the groups that changes may concern since the last time, and those that come or go."""
        found = dict.fromkeys(self.view.members.take_changed())
        for key in found:
            if key in self.view.members and key not in self._groups:
                self._groups[key] = _Group(group_name(key))
                self._pins.add(key)
                self._nodes.add(key)
        found.update(dict.fromkeys((*self._pins.take_touched(), *self._nodes.take_touched())))
        return tuple(found)

    def behind(self, key: catalog.groups.GroupKey) -> tuple[Source, ...]:
        """Return the inputs that a group's resources were made from."""
        return self._pins.sources(key)

    def steps(self, before: Published, touched: Iterable[catalog.groups.GroupKey]) -> Iterator[Step | None]:
        """Compute the touched groups; yield None after each of them, and in the end the step.

        A proxy in no group is not in it: the cache leaves its streams with what they have.
        """
        result = _Result(before)
        if self._fresh:  # whatever was served before is not known here
            result.left(None, before.members)
            self._fresh = False
        for key in touched:
            self._compute(key, result)
            yield None
        yield result.step()

    def _compute(self, key: catalog.groups.GroupKey, result: "_Result") -> None:
        group = self._groups.get(key)
        if group is None:
            return
        nodes = self._nodes.value(key)
        result.left(group.name, group.nodes)
        if nodes != group.nodes:
            result.moved = True
            group.nodes = nodes
        if not nodes:
            self._pins.discard(key)
            self._nodes.discard(key)
            del self._groups[key]
            return
        try:
            snapshot = consistent(self._pins.value(key), result.before.snapshots.get(group.name))
        except Exception as error:  # noqa: BLE001 - whatever one group's objects do, the others go on
            result.fail(group.name, nodes, error)
        else:
            result.add(group.name, nodes, snapshot)


@derived
def nodes_of(serving: Serving, group: catalog.groups.GroupKey) -> tuple[NodeKey, ...]:
    """Return the proxies of a group by their certificates' common names."""
    view = serving.view
    names = (view.workloads[each].proxy_name for each in view.members.get(group, ()))
    return tuple(NodeKey(str(name)) for name in names if name is not None)


@derived
def resources(serving: Serving, group: catalog.groups.GroupKey) -> tuple[Resource, ...]:
    """Return all that the proxies of a group are sent."""
    need = Need(
        proxy_policy(serving.view, group),
        serving.certificates.get(group.identity),
        serving.roots.get(_ROOTS, b""),
    )
    return tuple(each for piece in serving.translate(need) for each in made(serving, piece))


@derived
def made(serving: Serving, piece: Piece) -> tuple[Resource, ...]:
    """Return a piece's resources, made once for all groups that have it."""
    serving.encoded += 1
    return piece.resources()


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
    put = [each for each in found if before.resources(each.type_url).get(each.name) != each]
    removed = [
        (type_url, name)
        for type_url in before.types()
        for name in before.resources(type_url)
        if (type_url, name) not in names
    ]
    return before.changed(put, removed) if put or removed else before


@dataclass(slots=True)
class _Group:
    """A group that is kept current: its name, and the nodes it had when it was last computed."""

    name: GroupKey
    nodes: tuple[NodeKey, ...] = ()


class _Result:
    """Collects how the groups that were touched change."""

    def __init__(self, before: Published) -> None:
        self.before = before
        self._snapshots: dict[GroupKey, Snapshot | None] = {}
        self._members: dict[NodeKey, GroupKey | None] = {}
        self._failed: dict[GroupKey, Failure | None] = {}
        self.moved = False

    def left(self, name: GroupKey | None, nodes: Iterable[NodeKey]) -> None:
        """Take the nodes that a group had out of it, unless another one, or itself, has them now.

        Without a name: take everything away that was served before and is not served again.
        """
        for node in nodes:
            self._members.setdefault(node, None)
            self._snapshots.setdefault(_kept(node), None)
        for each in self.before.snapshots if name is None else (name,):
            self._snapshots.setdefault(each, None)
        for each in self.before.failed if name is None else (name,):
            self._failed.setdefault(each, None)

    def add(self, name: GroupKey, nodes: Iterable[NodeKey], snapshot: Snapshot) -> None:
        """Serve a group's nodes with its snapshot."""
        self._snapshots[name] = snapshot
        self._members.update(dict.fromkeys(nodes, name))

    def fail(self, name: GroupKey, nodes: tuple[NodeKey, ...], error: Exception) -> None:
        """Leave each proxy with its last snapshot, under a name of its own: groups may have changed."""
        self._snapshots[name] = None
        kept = 0
        for node in nodes:
            if (last := self.before.snapshot(node)) is not None:
                self._members[node] = _kept(node)
                self._snapshots[_kept(node)] = last
                kept += 1
        self._failed[name] = Failure(name, f"{type(error).__name__}: {error}", len(nodes), kept)

    def step(self) -> Step:
        """Return what differs from before."""
        return Step(
            {
                name: snapshot
                for name, snapshot in self._snapshots.items()
                if self.before.snapshots.get(name) is not snapshot
            },
            {node: group for node, group in self._members.items() if self.before.members.get(node) != group},
            self._failed,
            self.moved,
        )


def _kept(node: NodeKey) -> GroupKey:
    return GroupKey(f"kept:{node}")


def _replaced(before: Mapping[K, V], changes: Mapping[K, V | None]) -> Mapping[K, V]:
    if not changes:
        return before
    after = dict(before)
    for key, value in changes.items():
        if value is None:
            after.pop(key, None)
        else:
            after[key] = value
    return MappingProxyType(after)
