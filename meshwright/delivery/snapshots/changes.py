"""Comparison of two configurations of all proxies, by names and versions of resources."""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Resources = Mapping[str, Mapping[str, str]]
"""Versions of one proxy's resources by type and name."""


class Kind(enum.StrEnum):
    """Change of a resource; the value is the mark in printed comparisons."""

    ADDED = "+"
    REMOVED = "-"
    CHANGED = "~"


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """One added, removed or changed resource."""

    type: str
    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class ChangedProxies:
    """Proxies, sorted, for which the same resources change in the same way."""

    proxies: tuple[str, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Result of comparing the configurations of all proxies: changed ones, and ones on one side only."""

    changed: tuple[ChangedProxies, ...]
    unchanged: int
    new: tuple[str, ...]
    gone: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.changed or self.new or self.gone)


def compare(before: Mapping[str, Resources], after: Mapping[str, Resources]) -> Comparison:
    """Compare the present resources of each proxy with the future ones.

    For example, versions `{"a": {"Cluster": {"x": "1"}}}` before and `{"a": {"Cluster": {"x": "2"}}}` after
    are a changed cluster `x` for the proxy a.
    """
    groups: dict[object, tuple[list[str], tuple[Change, ...]]] = {}
    unchanged = 0
    for proxy in sorted(before.keys() & after.keys()):
        result = tuple(changes(before[proxy], after[proxy]))
        if not result:
            unchanged += 1
            continue
        key = tuple(
            (change, _version(before[proxy], change), _version(after[proxy], change)) for change in result
        )
        groups.setdefault(key, ([], result))[0].append(proxy)
    return Comparison(
        changed=tuple(ChangedProxies(tuple(proxies), outcome) for proxies, outcome in groups.values()),
        unchanged=unchanged,
        new=tuple(sorted(after.keys() - before.keys())),
        gone=tuple(sorted(before.keys() - after.keys())),
    )


def changes(before: Resources, after: Resources) -> Iterator[Change]:
    """Yield the resources that differ between two configurations of a proxy, sorted by type and name."""
    for kind in sorted(before.keys() | after.keys()):
        old, new = before.get(kind, {}), after.get(kind, {})
        for name in sorted(old.keys() | new.keys()):
            if name not in old:
                yield Change(kind, name, Kind.ADDED)
            elif name not in new:
                yield Change(kind, name, Kind.REMOVED)
            elif old[name] != new[name]:
                yield Change(kind, name, Kind.CHANGED)


def _version(resources: Resources, change: Change) -> str:
    return resources.get(change.type, {}).get(change.name, "")
