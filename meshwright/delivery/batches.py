"""Splitting of a step (changed snapshots and group memberships) into parts published one after the other."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from meshwright.delivery.snapshots.published_snapshots import PublishedSnapshots, Step
from xds.cache import GroupKey, NodeKey

GROUPS: Final = 64
"""Number of groups that get a new snapshot in one part; further groups follow in further parts.

For example, a change for 200 groups is published in four parts.
"""


def parts(step: Step, before: PublishedSnapshots, size: int = GROUPS) -> Iterator[Step]:
    """Yield a step in parts of up to `size` groups each, or whole if the step is no larger.

    A group that a proxy leaves and the group that the proxy joins are in the same part, transitively, so a
    part can be larger than `size`. Between two parts each proxy therefore has either all old or all new
    resources, and a group with proxies always has a snapshot.
    """
    # The usual case: without it every small step would pay for the connected components.
    if len(step.snapshots) <= size and len(step.members) <= size:
        yield step
        return
    groups: list[GroupKey] = []
    nodes: list[NodeKey] = []
    for together, moving in _together(step, before):
        if groups and len(groups) + len(together) > size:
            yield _part(step, groups, nodes)
            groups, nodes = [], []
        groups += together
        nodes += moving
    part = _part(step, groups, nodes)
    # Failures are reported once, with the last part.
    yield replace(part, failed=step.failed)


def _together(step: Step, before: PublishedSnapshots) -> Iterator[tuple[list[GroupKey], list[NodeKey]]]:
    """Yield the groups between which proxies move, with these proxies; other groups are yielded alone."""
    moving: dict[GroupKey, list[NodeKey]] = {}
    for node, after in step.members.items():
        for group in (before.members.get(node), after):
            if group is not None:
                moving.setdefault(group, []).append(node)
    seen: set[GroupKey] = set()
    # Connected components: if the groups of a moving proxy were published apart, the proxy would for a while
    # be in a group without a snapshot.
    for first in (*step.snapshots, *moving):
        groups: list[GroupKey] = []
        nodes: dict[NodeKey, None] = {}
        waiting: list[GroupKey | None] = [first]
        while waiting:
            if (group := waiting.pop()) is None or group in seen:
                continue
            seen.add(group)
            groups.append(group)
            for node in moving.get(group, ()):
                nodes[node] = None
                waiting += (before.members.get(node), step.members[node])
        if groups:
            yield groups, list(nodes)


def _part(step: Step, groups: list[GroupKey], nodes: list[NodeKey]) -> Step:
    return Step(
        {group: step.snapshots[group] for group in groups if group in step.snapshots},
        {node: step.members[node] for node in nodes},
        absent=step.absent.intersection(nodes),
    )
