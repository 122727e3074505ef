"""Who watches which requests, and what was told of them and is not yet read. Bounded in all that it keeps."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from meshwright.mesh.identity import ProxyName
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.tap import TapChoice, Tapped, TappedRequest
from meshwright.mesh.values.picture import Picture

MOST_TAPS: Final = 8
"""At once, of everybody."""
WAITING: Final = 1000
"""So many requests of a tap wait to be read; those that come then are counted, and not kept."""
PER_SECOND: Final = 200
"""So many requests of a second a tap keeps, of the others it counts how many they were."""


class TooManyTaps(Exception):
    """As many are watched as may be."""


@dataclass(frozen=True, slots=True)
class TapSubscription:
    """What one who watches has asked for.

    `proxy` is the sidecar that is to have answered, None for any. `statuses` are those that are wanted, of
    HTTP; empty for any. What it says beyond `choice`, sidecars do not look at: they tell of more.
    """

    service: ServiceKey
    choice: TapChoice = field(default_factory=TapChoice)
    proxy: ProxyName | None = None
    statuses: range = range(0)

    def fits(self, proxy: ProxyName, request: TappedRequest) -> bool:
        """Say whether it is a request that is wanted, by whom it was answered and what it was."""
        return (
            self.proxy in (None, proxy)
            and (not self.statuses or request.status in self.statuses)
            and self.choice.fits(request)
        )


@dataclass(slots=True, eq=False)
class Tap:
    """One who watches: reads what was told, and is told that there is something to read.

    `lost` is how many requests fitted and were not kept since that was last asked.
    """

    watched: TapSubscription
    noticed: Callable[[], None]
    _waiting: deque[tuple[ProxyName, TappedRequest]] = field(default_factory=deque)
    _lost: int = 0
    _second: int = 0
    _kept: int = 0

    def take(self) -> tuple[list[tuple[ProxyName, TappedRequest]], int]:
        """Return what was told since the last time, and how many were lost besides."""
        found, lost = list(self._waiting), self._lost
        self._waiting.clear()
        self._lost = 0
        return found, lost

    def told(self, proxy: ProxyName, request: TappedRequest, now: float) -> None:
        """Keep a request, if there is room for it."""
        if int(now) != self._second:
            self._second, self._kept = int(now), 0
        if self._kept >= PER_SECOND or len(self._waiting) >= WAITING:
            self._lost += 1
        else:
            self._kept += 1
            self._waiting.append((proxy, request))
        self.noticed()


class TapTable:
    """The requests that are watched, by service: Taps write it, and delivery reads it."""

    def __init__(self) -> None:
        self._tapped: Picture[ServiceKey, Tapped] = Picture()

    def tapped(self) -> Picture[ServiceKey, Tapped]:
        """Return what is watched now."""
        return self._tapped

    def watch(self, service: ServiceKey, choices: Tapped | None) -> bool:
        """Replace what is watched of a service, None for nothing; return True if that is a change."""
        before = self._tapped
        self._tapped = before.changed({service: choices})
        return self._tapped is not before


class Taps:
    """All who watch; used from one event loop.

    `changed` is called when something else is watched than before, which is in the `table`. `served` says
    which services a proxy answers for: what it tells is believed of these alone.
    """

    def __init__(
        self,
        table: TapTable,
        served: Callable[[ProxyName], Iterable[ServiceKey]],
        changed: Callable[[], None],
    ) -> None:
        self._table = table
        self._changed = changed
        self.served = served
        self._taps: list[Tap] = []

    def begin(self, watched: TapSubscription, noticed: Callable[[], None]) -> Tap:
        """Begin to watch; raises TooManyTaps."""
        if len(self._taps) >= MOST_TAPS:
            raise TooManyTaps
        tap = Tap(watched, noticed)
        self._taps.append(tap)
        self._follow(watched.service)
        return tap

    def end(self, tap: Tap) -> None:
        """Watch no more."""
        self._taps.remove(tap)
        self._follow(tap.watched.service)

    def told(self, proxy: ProxyName, requests: Iterable[TappedRequest], now: float) -> bool:
        """Take what a proxy tells, in seconds `now` that only go forward; say whether anybody watches it."""
        services = frozenset(self.served(proxy)) if self._taps else frozenset()
        wanting = [each for each in self._taps if each.watched.service in services]
        for request in requests if wanting else ():
            for each in wanting:
                if each.watched.fits(proxy, request):
                    each.told(proxy, request, now)
        return bool(wanting)

    def _follow(self, service: ServiceKey) -> None:
        choices = {each.watched.choice for each in self._taps if each.watched.service == service}
        if self._table.watch(service, tuple(sorted(choices)) or None):
            self._changed()
