"""What sources bring, until a wave takes it up: counted as it comes, and gathered at its pace."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from catalog.store.settings import Admission
from meshwright.delivery.meters import WaveMeter
from meshwright.delivery.timing.debounce import Debounce, Matter, Pace
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.kinds import ADMISSION, ENDPOINT_SLICE, READ_AS, TAP, WORKLOAD
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.tap import Tapped
from meshwright.mesh.values.picture import Picture
from meshwright.providers.sources import Counts, Sources

ADMISSIONS: Final = "admissions"
TAPS: Final = "taps"
ENDPOINT_KINDS: Final = frozenset({WORKLOAD, ENDPOINT_SLICE, *READ_AS, ADMISSION})
"""Kinds of objects that say where something runs, not what it may do."""


@dataclass(frozen=True, slots=True)
class Paces:
    """How changes are gathered: those of endpoints alone, and any others."""

    policy: Pace
    endpoints: Pace


class MeshSources:
    """The sources of a mesh, and what they brought since the last wave; used on the event loop.

    `admitted` says which proxies' workloads get traffic, `admissions` what it said when it was last asked.
    `watched` and `taps` are the same of which requests to a service are watched.
    """

    def __init__(
        self,
        sources: Sources,
        paces: Paces,
        meter: WaveMeter,
        admitted: Callable[[], Mapping[ProxyName, Admission]] = Picture,
        watched: Callable[[], Mapping[ServiceKey, Tapped]] = Picture,
    ) -> None:
        self.sources = sources
        self.admissions: Picture[ProxyName, Admission] = Picture()
        self.taps: Picture[ServiceKey, Tapped] = Picture()
        self._admitted = admitted
        self._watched = watched
        self._meter = meter
        self._changes = Debounce(_by_matter(paces))

    def pace(self, paces: Paces) -> None:
        """Gather at other paces from now on."""
        self._changes.pace(_by_matter(paces))

    def changed(self) -> None:
        """Note that some source changed, and when a wave is to begin for it."""
        self._changes.note(matter(self.look()))

    def look(self) -> Counts:
        """Look at what there is now; return what has changed since the last time, which is counted."""
        before, self.admissions = self.admissions, Picture.of(self._admitted())
        tapped, self.taps = self.taps, Picture.of(self._watched())
        found = dict(self.sources.take())
        if come_or_gone := len(self.admissions.since(before)):
            found[ADMISSIONS, ADMISSION] = come_or_gone
        if begun_or_ended := len(self.taps.since(tapped)):
            found[TAPS, TAP] = begun_or_ended
        for (source, kind), count in found.items():
            self._meter.event(source, str(kind), count)
        return found

    async def due(self) -> None:
        """Return when the next wave should begin, with what follows from its objects if that comes soon."""
        await self._changes.due()
        await self.sources.settled()

    def take(self, now: float) -> float:
        """Begin a wave with all that came; return when the first of it did, `now` without any."""
        return self._changes.take(now)

    def concerned(self, proxies: int) -> None:
        """Note how many connected proxies the last wave concerned."""
        self._changes.concerned(proxies)


def _by_matter(paces: Paces) -> Mapping[Matter, Pace]:
    endpoints = dict.fromkeys((Matter.ENDPOINTS, Matter.ADMISSIONS), paces.endpoints)
    return {Matter.POLICY: paces.policy, **endpoints}


def matter(events: Counts) -> Matter:
    """Say what changes are about: admissions alone, endpoints, or anything else, as what brought no event."""
    if events and all(kind is ADMISSION for _, kind in events):
        return Matter.ADMISSIONS
    if events and all(kind in ENDPOINT_KINDS for _, kind in events):
        return Matter.ENDPOINTS
    return Matter.POLICY
