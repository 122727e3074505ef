"""From what the catalog wants to snapshots: what one wave computes, as pure functions.

A group whose computation fails leaves its proxies with what they had; the others go on.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import catalog.groups
from catalog.proxy import ProxyPolicy
from catalog.view import View
from certs.material import ServiceCertificate
from mesh.identity import ServiceIdentity
from xds.cache import GroupKey, NodeKey
from xds.resource import Resource
from xds.snapshot import Snapshot


class InconsistentSnapshot(Exception):
    """A group's resources refer to resources that are not there; the message names the first of them."""


@dataclass(frozen=True, slots=True)
class Need:
    """All that a group's snapshot is made from; equal needs make equal snapshots."""

    policy: ProxyPolicy
    certificate: ServiceCertificate | None
    trust_bundle: bytes = field(repr=False)


PolicyOf = Callable[[View, catalog.groups.GroupKey], ProxyPolicy]
Translate = Callable[[Need], Iterable[Resource]]


@dataclass(frozen=True, slots=True)
class Failure:
    """A group that could not be computed, why, and how many of its proxies go on with what they had."""

    group: str
    error: str
    proxies: int
    kept: int


@dataclass(frozen=True, slots=True)
class Published:
    """What is served: snapshots by group, the group of each proxy, what they were made from, what failed."""

    snapshots: Mapping[GroupKey, Snapshot] = field(default_factory=lambda: MappingProxyType({}))
    members: Mapping[NodeKey, GroupKey] = field(default_factory=lambda: MappingProxyType({}))
    needs: Mapping[GroupKey, Need] = field(default_factory=lambda: MappingProxyType({}))
    failures: tuple[Failure, ...] = ()

    def snapshot(self, node: NodeKey) -> Snapshot | None:
        """Return a proxy's snapshot, or None while it has none."""
        group = self.members.get(node)
        return None if group is None else self.snapshots[group]


@dataclass(frozen=True, slots=True)
class Material:
    """The certificates a wave works with."""

    certificates: Mapping[ServiceIdentity, ServiceCertificate]
    trust_bundle: bytes = field(repr=False)


def group_name(group: catalog.groups.GroupKey) -> GroupKey:
    """Return a short name of a group for caches and pages: equal for equal keys, in every process."""
    digest = hashlib.sha256(repr(group).encode()).hexdigest()[:8]
    where = f"|{group.workload.name}" if group.workload is not None else ""
    return GroupKey(f"{group.primary}|{group.identity.service_account}{where}|{digest}")


def nodes_by_group(view: View) -> Mapping[catalog.groups.GroupKey, tuple[NodeKey, ...]]:
    """Return the groups of a view, with the common names of their proxies."""
    found = {}
    for group, uuids in catalog.groups.groups(view).items():
        names = (view.workloads_by_uuid[uuid].proxy_name for uuid in uuids)
        found[group] = tuple(NodeKey(str(name)) for name in names if name is not None)
    return found


def consistent(resources: Iterable[Resource]) -> Snapshot:
    """Make a snapshot and return it; raise InconsistentSnapshot if a reference leads nowhere."""
    snapshot = Snapshot.of(resources)
    missing = snapshot.missing()
    if missing:
        source, type_url, name = missing[0]
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise InconsistentSnapshot(
            f"{source.name} refers to {type_url.rpartition('.')[2]} {name}, which is not there{more}"
        )
    return snapshot


def compute(
    view: View, material: Material, before: Published, policy_of: PolicyOf, translate: Translate
) -> Published:
    """Compute every group's snapshot, those whose needs are as before not again.

    A proxy in no group is not listed: the cache leaves its streams with what they have.
    """
    result = _Result(before)
    for group, nodes in nodes_by_group(view).items():
        name = group_name(group)
        try:
            need = Need(
                policy_of(view, group), material.certificates.get(group.identity), material.trust_bundle
            )
            unchanged = name in before.snapshots and before.needs.get(name) == need
            snapshot = before.snapshots[name] if unchanged else consistent(translate(need))
        except Exception as error:  # noqa: BLE001 - whatever one group's objects do, the others go on
            result.fail(name, nodes, error)
        else:
            result.add(name, nodes, need, snapshot)
    return result.published()


class _Result:
    """Collects the groups of one wave."""

    def __init__(self, before: Published) -> None:
        self._before = before
        self._snapshots: dict[GroupKey, Snapshot] = {}
        self._members: dict[NodeKey, GroupKey] = {}
        self._needs: dict[GroupKey, Need] = {}
        self._failures: list[Failure] = []

    def add(self, name: GroupKey, nodes: Iterable[NodeKey], need: Need, snapshot: Snapshot) -> None:
        self._snapshots[name], self._needs[name] = snapshot, need
        self._members.update(dict.fromkeys(nodes, name))

    def fail(self, name: GroupKey, nodes: tuple[NodeKey, ...], error: Exception) -> None:
        """Leave each proxy with its last snapshot, under a name of its own: groups may have changed."""
        kept = 0
        for node in nodes:
            if (last := self._before.snapshot(node)) is not None:
                self._members[node] = own = GroupKey(f"kept:{node}")
                self._snapshots[own] = last
                kept += 1
        self._failures.append(Failure(name, f"{type(error).__name__}: {error}", len(nodes), kept))

    def published(self) -> Published:
        return Published(
            MappingProxyType(dict(sorted(self._snapshots.items()))),
            MappingProxyType(dict(sorted(self._members.items()))),
            MappingProxyType(self._needs),
            tuple(sorted(self._failures, key=lambda failure: failure.group)),
        )
