"""The numbers of this moment, from what the server's parts say."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime

from admin.metrics.gauges import Gauges
from delivery.loop import MeshState
from delivery.time_slices import Slices
from providers.contract import Counts, Source
from sidecars.type_words import short_type
from xds.cache import GroupKey
from xds.protocol.resource import ResourceName, TypeUrl, Version
from xds.protocol.snapshot import Snapshot


class ResourceCounts:
    """Counts distinct resources by type: one that many groups share is one. Looks at what changed alone."""

    def __init__(self) -> None:
        self._snapshots: Mapping[GroupKey, Snapshot] = {}
        self._uses: dict[tuple[TypeUrl, ResourceName, Version], int] = {}
        self._counts: Counter[str] = Counter()

    def of(self, snapshots: Mapping[GroupKey, Snapshot]) -> dict[str, int]:
        """Return the counts in these snapshots, by the short names of types."""
        *_, counts = self.steps(snapshots)
        return counts or {}

    def steps(self, snapshots: Mapping[GroupKey, Snapshot]) -> Iterator[dict[str, int] | None]:
        """Yield None after each group that is counted, and in the end the counts; to be gone through."""
        before, self._snapshots = self._snapshots, snapshots
        if snapshots is not before:
            for group, snapshot in snapshots.items():
                if (old := before.get(group)) is not snapshot:
                    self._use(snapshot, 1)
                    if old is not None:
                        self._use(old, -1)
                    yield None
            for group in before.keys() - snapshots.keys():
                self._use(before[group], -1)
                yield None
        yield {kind: count for kind, count in self._counts.items() if count}

    def _use(self, snapshot: Snapshot, by: int) -> None:
        for type_url in snapshot.types():
            kind = short_type(type_url)
            for resource in snapshot.resources(type_url).values():
                key = (type_url, resource.name, resource.version)
                uses = self._uses.get(key, 0) + by
                if uses:
                    self._uses[key] = uses
                else:
                    del self._uses[key]
                if uses in (0, by):  # the last use went, or the first came
                    self._counts[kind] += by


def withheld_counts(counts: Mapping[TypeUrl, int]) -> dict[str, int]:
    """Return by the short names of types what is withheld, each resource as often as from a proxy."""
    return {short_type(type_url): count for type_url, count in counts.items()}


class Gauging:
    """Makes Gauges; remembers what it has counted."""

    def __init__(self) -> None:
        self._resources = ResourceCounts()

    async def count(self, snapshots: Mapping[GroupKey, Snapshot]) -> None:
        """Count resources, in slices: what `gauges` then finds to count is what has changed meanwhile."""
        await Slices().result(self._resources.steps(snapshots))

    def gauges(
        self,
        state: MeshState,
        streams: Mapping[str, int],
        proxies: Mapping[str, int],
        sources: Collection[Source],
        certificates: int,
        lateness: float,
        now: datetime,
        *,
        withheld: Mapping[str, int] | None = None,
        unacked_age: float = 0.0,
        state_failing: bool = False,
        ledger_unwritten: int = 0,
    ) -> Gauges:
        """Return what is measured now; `lateness` is the worst since the measurement before."""
        fresh = {each.name: each.freshness() for each in sources}
        return Gauges(
            streams=dict(streams),
            proxies=proxies,
            resources=self._resources.of(state.published.snapshots),
            groups=len(set(state.published.members.values())),
            problems=state.said.counts(),
            source_age=_ages({name: each.last_full_read for name, each in fresh.items()}, now),
            source_event_age=_ages({name: each.last_event for name, each in fresh.items()}, now),
            source_failing={name: bool(each.error) for name, each in fresh.items()},
            source_held={name: len(each.held) for name, each in fresh.items()},
            source_objects=_objects({each.name: each.counts() for each in sources}),
            withheld=withheld or {},
            state_failing=state_failing,
            ledger_unwritten=ledger_unwritten,
            certificates=certificates,
            unacked_age=unacked_age,
            loop_lateness=lateness,
        )


def _objects(counts: Mapping[str, Counts]) -> dict[tuple[str, str], int]:
    """Return what sources hold, by source and by what became of it."""
    return {
        (name, state): number
        for name, each in counts.items()
        for state, number in (("good", each.good), ("stale", each.stale), ("refused", each.refused))
    }


def _ages(moments: Mapping[str, datetime | None], now: datetime) -> dict[str, float]:
    return {name: (now - moment).total_seconds() for name, moment in moments.items() if moment is not None}
