"""Changes of the mesh's sources, counted when they arrive, and gathered until a wave begins."""

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
"""Kinds of objects that describe where something runs, and not what is allowed."""


@dataclass(frozen=True, slots=True)
class Paces:
    """Paces for gathering changes into a wave: one for changes of endpoints alone, one for all others."""

    policy: Pace
    endpoints: Pace


class MeshSources:
    """The sources of a mesh and their changes since the last wave; use on the event loop.

    `admitted` returns the admissions of proxies' workloads, and `admissions` its latest result. `watched` and
    `taps` are the same for tapped requests.
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
        """Gather changes with other paces from now on, also the changes already pending."""
        self._changes.pace(_by_matter(paces))

    def changed(self) -> None:
        """Record that a source has changed, and schedule a wave."""
        self._changes.note(matter(self.look()))

    def repeat(self) -> None:
        """Schedule a wave although no source has changed. The wave itself looks at the sources."""
        self._changes.note(Matter.POLICY)

    def look(self) -> Counts:
        """Compare the sources with the last call; return the counted changes by (source, kind).

        For example: `{("files", TRAFFIC_SPLIT): 1}`.
        """
        before, self.admissions = self.admissions, Picture.from_mapping(self._admitted())
        tapped, self.taps = self.taps, Picture.from_mapping(self._watched())
        result = dict(self.sources.take())
        if come_or_gone := len(self.admissions.since(before)):
            result[ADMISSIONS, ADMISSION] = come_or_gone
        if begun_or_ended := len(self.taps.since(tapped)):
            result[TAPS, TAP] = begun_or_ended
        for (source, kind), count in result.items():
            self._meter.event(source, str(kind), count)
        return result

    async def due(self) -> None:
        """Return when the next wave should begin.

        Sources that follow other sources, such as DNS, get a short time to finish first.
        """
        await self._changes.due()
        # For example, DNS names in a changed Service are resolved before the wave, and not in a second one.
        await self.sources.settled()

    def take(self, now: float) -> float:
        """Begin a wave with all changes; return the time of the first one, or `now` without any."""
        return self._changes.take(now)

    def concerned(self, proxies: int) -> None:
        """Record the number of connected proxies for which the last wave changed resources."""
        self._changes.concerned(proxies)


def _by_matter(paces: Paces) -> Mapping[Matter, Pace]:
    endpoints = dict.fromkeys((Matter.ENDPOINTS, Matter.ADMISSIONS), paces.endpoints)
    return {Matter.POLICY: paces.policy, **endpoints}


def matter(events: Counts) -> Matter:
    """Return the kind of these changes: admissions alone, endpoints, or policy (also without any change)."""
    if events and all(kind is ADMISSION for _, kind in events):
        return Matter.ADMISSIONS
    if events and all(kind in ENDPOINT_KINDS for _, kind in events):
        return Matter.ENDPOINTS
    return Matter.POLICY
