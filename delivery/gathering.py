"""What sources bring, until a wave takes it up: counted as it comes, and gathered at its pace."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from catalog.store.view import MeshSettings
from delivery.debounce import Debounce, Matter, Pace
from delivery.events import Counts, Events, Specification, matter
from delivery.inputs import Inputs, read_inputs
from delivery.meters import WaveMeter
from mesh.identity import ProxyName
from mesh.picture import Picture
from mesh.problems import Problem
from providers.contract import EndpointProvider


@dataclass(frozen=True, slots=True)
class Paces:
    """How changes are gathered: those of endpoints alone, and any others."""

    policy: Pace
    endpoints: Pace


class Gathering:
    """The sources of a mesh, and what they brought since the last wave; used on the event loop.

    `admitted` says which proxies' workloads get traffic.
    """

    def __init__(
        self,
        specification: Specification,
        providers: Iterable[EndpointProvider],
        settings: MeshSettings,
        paces: Paces,
        meter: WaveMeter,
        admitted: Callable[[], Mapping[ProxyName, ProxyName]] = Picture,
    ) -> None:
        self._specification = specification
        self._providers = tuple(providers)
        self._settings = settings
        self._admitted = admitted
        self._meter = meter
        self._events = Events(specification, self._providers)
        self._changes = Debounce({Matter.POLICY: paces.policy, Matter.ENDPOINTS: paces.endpoints})

    def changed(self) -> None:
        """Note that some source changed, and when a wave is to begin for it."""
        self._changes.note(matter(self.counted()))

    def counted(self) -> Counts:
        """Count what sources brought since the last time."""
        events = self._events.take(self._admitted())
        for (source, kind), count in events.items():
            self._meter.event(source, str(kind), count)
        return events

    async def due(self) -> None:
        """Return when the next wave should begin."""
        await self._changes.due()

    def take(self, now: float) -> float:
        """Begin a wave with all that came; return when the first of it did, `now` without any."""
        return self._changes.take(now)

    def read(self) -> Inputs:
        """Take the sources' present answers."""
        return read_inputs(self._specification, self._providers, self._settings, self._admitted())

    def logged(self) -> tuple[Problem, ...]:
        """Return the problems that their source has logged."""
        return self._specification.problems()
