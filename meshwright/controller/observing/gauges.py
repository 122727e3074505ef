"""Current values of all gauges, computed from the server's parts."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from operator import is_not

from meshwright.admin.metrics.gauges import Gauges
from meshwright.delivery.loop import MeshState
from meshwright.delivery.timing.time_slices import Slices
from meshwright.providers.contract import Counts, Source
from meshwright.sidecars.type_words import short_type
from xds.cache import GroupKey
from xds.protocol.resources.layers import Layers
from xds.protocol.resources.resource import ResourceName, TypeUrl, Version
from xds.protocol.resources.resource_set import ResourceSet
from xds.protocol.resources.snapshot import Snapshot


class ResourceCounts:
    """Counts of distinct resources by type; a resource shared by many groups counts once.

    Only changed groups are examined, and of these only the unshared parts. After a replacement of one part by
    another only the difference is counted.
    """

    def __init__(self) -> None:
        self._snapshots: Layers[GroupKey, Snapshot] = Layers()
        self._parts: dict[ResourceSet, int] = {}
        self._uses: dict[tuple[TypeUrl, ResourceName, Version], int] = {}
        self._counts: Counter[str] = Counter()

    def count_by_type(self, snapshots: Layers[GroupKey, Snapshot]) -> dict[str, int]:
        """Return the counts in these snapshots by short type, for example `{"Cluster": 12}`."""
        *_, counts = self.steps(snapshots)
        return counts or {}

    def steps(self, snapshots: Layers[GroupKey, Snapshot]) -> Iterator[dict[str, int] | None]:
        """Yield `None` after each counted group and part, and the counts at the end.

        Always consume the iterator completely; otherwise the state is inconsistent.
        """
        before, self._snapshots = self._snapshots, snapshots
        moves: Counter[ResourceSet] = Counter()
        instead: dict[ResourceSet, ResourceSet] = {}
        for group in snapshots.differing(before, is_not) if snapshots is not before else ():
            old, new = _parts(before.get(group)), _parts(snapshots.get(group))
            moves.update(new)
            moves.subtract(old)
            # Parts that replaced each other in one group are compared, and only their difference is counted.
            instead.update(zip(_less(new, old), _less(old, new), strict=False))
            yield None
        come, gone = self._move(moves)
        for part in come:
            if (other := instead.get(part)) in gone and other is not None:
                del gone[other]
                names = part.changed_since(other)
                self._use(other, names, -1)
                self._use(part, names, 1)
            else:
                self._use(part, part.tables, 1)
            yield None
        for part in gone:
            self._use(part, part.tables, -1)
            yield None
        yield {kind: count for kind, count in self._counts.items() if count}

    def _move(self, moves: Mapping[ResourceSet, int]) -> tuple[list[ResourceSet], dict[ResourceSet, None]]:
        """Add `moves` to the number of snapshots with each part.

        Return the parts with a first use, and the parts without further use.
        """
        come, gone = list[ResourceSet](), dict[ResourceSet, None]()
        for part, by in moves.items():
            before = self._parts.get(part, 0)
            if before + by:
                self._parts[part] = before + by
                if not before:
                    come.append(part)
            elif before:
                del self._parts[part]
                gone[part] = None
        return come, gone

    def _use(self, part: ResourceSet, names: Mapping[TypeUrl, Iterable[ResourceName]], by: int) -> None:
        for type_url, named in names.items():
            kind, there = short_type(type_url), part.resources(type_url)
            for name in named:
                if (resource := there.get(name)) is None:
                    continue
                key = (type_url, name, resource.version)
                uses = self._uses.get(key, 0) + by
                if uses:
                    self._uses[key] = uses
                else:
                    del self._uses[key]
                if uses in (0, by):  # the last use was removed, or the first one added
                    self._counts[kind] += by


def _parts(snapshot: Snapshot | None) -> tuple[ResourceSet, ...]:
    return () if snapshot is None else snapshot.parts


def _less(parts: Iterable[ResourceSet], others: Iterable[ResourceSet]) -> list[ResourceSet]:
    """Return the resource sets in `parts` except the ones in `others`."""
    there = set(others)
    return [part for part in parts if part not in there]


def withheld_counts(counts: Mapping[TypeUrl, int]) -> dict[str, int]:
    """Return the counts of withheld resources by short type; a resource counts once per proxy."""
    return {short_type(type_url): count for type_url, count in counts.items()}


class GaugeBuilder:
    """Builder of Gauges. Counts of objects are cached, so that a measurement counts only changed objects."""

    def __init__(self) -> None:
        self._resources = ResourceCounts()

    async def count(self, snapshots: Layers[GroupKey, Snapshot]) -> None:
        """Count resources in slices, so `gauges` only has to count later changes."""
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
        running_out: int = 0,
        trusted_roots: int = 0,
        root_stage: int = 0,
        shared_identities: int = 0,
        reporting_proxies: int = 0,
        ejected_endpoints: int = 0,
    ) -> Gauges:
        """Return the current values.

        `lateness` is the longest delay of the event loop since the last measurement.
        """
        fresh = {source.name: source.freshness() for source in sources}
        return Gauges(
            streams=dict(streams),
            proxies=proxies,
            resources=self._resources.count_by_type(state.published.snapshots),
            groups=len(state.published.snapshots),
            problems=state.all_problems.counts(),
            source_age=_ages({name: freshness.last_full_read for name, freshness in fresh.items()}, now),
            source_event_age=_ages({name: freshness.last_event for name, freshness in fresh.items()}, now),
            source_failing={name: bool(freshness.error) for name, freshness in fresh.items()},
            source_held={name: len(freshness.held) for name, freshness in fresh.items()},
            source_objects=_objects({source.name: source.counts() for source in sources}),
            withheld=withheld or {},
            state_failing=state_failing,
            ledger_unwritten=ledger_unwritten,
            certificates=certificates,
            certificates_running_out=running_out,
            trusted_roots=trusted_roots,
            root_stage=root_stage,
            shared_identities=shared_identities,
            reporting_proxies=reporting_proxies,
            ejected_endpoints=ejected_endpoints,
            unacked_age=unacked_age,
            loop_lateness=lateness,
        )


def _objects(counts: Mapping[str, Counts]) -> dict[tuple[str, str], int]:
    """Return the number of objects by source and state: good, stale or refused."""
    return {
        (name, state): number
        for name, count in counts.items()
        for state, number in (("good", count.good), ("stale", count.stale), ("refused", count.refused))
    }


def _ages(moments: Mapping[str, datetime | None], now: datetime) -> dict[str, float]:
    return {name: (now - moment).total_seconds() for name, moment in moments.items() if moment is not None}
