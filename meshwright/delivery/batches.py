"""A step of what is served, in parts that can be published one after the other."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from meshwright.delivery.snapshots.published_snapshots import PublishedSnapshots, Step
from xds.cache import GroupKey, NodeKey

GROUPS: Final = 64
"""How many groups of proxies get another snapshot at once; more of them follow one after the other."""


def parts(step: Step, before: PublishedSnapshots, size: int = GROUPS) -> Iterator[Step]:
    """Yield a step in parts of up to `size` groups, whole if it is no larger; together they are the step.

    A group that a proxy leaves and the one it comes to are in one part, with all that follows from it, so
    that a part may be larger. Between two parts each proxy has all of what it had, or all of what it is to
    have, and no group is gone that has proxies.
    """
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
    yield replace(part, failed=step.failed)


def _together(step: Step, before: PublishedSnapshots) -> Iterator[tuple[list[GroupKey], list[NodeKey]]]:
    """Yield the groups between which proxies move, and these; a group by itself where none comes or goes."""
    moving: dict[GroupKey, list[NodeKey]] = {}
    for node, after in step.members.items():
        for group in (before.members.get(node), after):
            if group is not None:
                moving.setdefault(group, []).append(node)
    seen: set[GroupKey] = set()
    # Groups are joined by the proxies that move between them; what is joined goes together (connected
    # components), or a proxy would stand for a while in a group that is gone, or not there yet.
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
