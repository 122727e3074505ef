"""Subscriptions to tapped requests, with the reported requests not read yet. All memory is bounded."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from meshwright.mesh.identity import ProxyName
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.tap import TapChoice, Tapped, TappedRequest
from meshwright.mesh.values.picture import Picture

MOST_TAPS: Final = 8
"""Maximum number of subscriptions at once."""
WAITING: Final = 1000
"""Maximum number of unread requests of a subscription; further ones are only counted."""
PER_SECOND: Final = 200
"""Maximum number of requests kept per second and subscription; further ones are only counted."""


class TooManyTaps(Exception):
    """Error for one more subscription to tapped requests than MOST_TAPS."""


@dataclass(frozen=True, slots=True)
class TapSubscription:
    """Selection of requests.

    `proxy` is the answering sidecar, `None` for any. `statuses` are HTTP statuses, empty for any. Sidecars
    only apply `choice` and may report more requests; the rest is filtered here.
    """

    service: ServiceKey
    choice: TapChoice = field(default_factory=TapChoice)
    proxy: ProxyName | None = None
    statuses: range = range(0)

    def fits(self, proxy: ProxyName, request: TappedRequest) -> bool:
        """Return whether this subscription selects a request reported by the given proxy."""
        return (
            self.proxy in (None, proxy)
            and (not self.statuses or request.status in self.statuses)
            and self.choice.fits(request)
        )


@dataclass(slots=True, eq=False)
class Tap:
    """One subscription with its unread requests.

    `noticed` is called for each selected request. The number of dropped requests is counted until `take`.
    """

    watched: TapSubscription
    noticed: Callable[[], None]
    _waiting: deque[tuple[ProxyName, TappedRequest]] = field(default_factory=deque)
    _lost: int = 0
    _second: int = 0
    _kept: int = 0

    def take(self) -> tuple[list[tuple[ProxyName, TappedRequest]], int]:
        """Return the unread requests, and the number of requests dropped since the last call."""
        result, lost = list(self._waiting), self._lost
        self._waiting.clear()
        self._lost = 0
        return result, lost

    def add(self, proxy: ProxyName, request: TappedRequest, now: float) -> None:
        """Keep a request until `take`, or only count the request beyond a limit; then call `noticed`."""
        # A new second has a new allowance.
        if int(now) != self._second:
            self._second, self._kept = int(now), 0
        if self._kept >= PER_SECOND or len(self._waiting) >= WAITING:
            self._lost += 1
        else:
            self._kept += 1
            self._waiting.append((proxy, request))
        self.noticed()


class TapTable:
    """Selections of requests to tap, by service. Written by Taps; delivery configures sidecars from them."""

    def __init__(self) -> None:
        self._tapped: Picture[ServiceKey, Tapped] = Picture()

    def tapped(self) -> Picture[ServiceKey, Tapped]:
        """Return the current selections by service."""
        return self._tapped

    def watch(self, service: ServiceKey, choices: Tapped | None) -> bool:
        """Replace the selections of a service (`None` for none); return True if they have changed."""
        before = self._tapped
        self._tapped = before.changed({service: choices})
        return self._tapped is not before


class Taps:
    """All subscriptions; use from one event loop.

    `changed` is called when the `table` has changed. `served` returns the services that a proxy answers for;
    reports of a proxy about other services are ignored, because a proxy must not invent requests of others.
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
        """Add a subscription to tapped requests; raises TooManyTaps."""
        if len(self._taps) >= MOST_TAPS:
            raise TooManyTaps
        tap = Tap(watched, noticed)
        self._taps.append(tap)
        self._follow(watched.service)
        return tap

    def end(self, tap: Tap) -> None:
        """Remove a subscription to tapped requests."""
        self._taps.remove(tap)
        self._follow(tap.watched.service)

    def handle_report(self, proxy: ProxyName, requests: Iterable[TappedRequest], now: float) -> bool:
        """Handle reported requests; return True if anyone subscribes to a service of the proxy.

        `now` is in seconds that never go back.
        """
        # A proxy is only believed about the services that it answers for.
        services = frozenset(self.served(proxy)) if self._taps else frozenset()
        wanting = [tap for tap in self._taps if tap.watched.service in services]
        for request in requests if wanting else ():
            for item in wanting:
                if item.watched.fits(proxy, request):
                    item.add(proxy, request, now)
        return bool(wanting)

    def _follow(self, service: ServiceKey) -> None:
        choices = {tap.watched.choice for tap in self._taps if tap.watched.service == service}
        if self._table.watch(service, tuple(sorted(choices)) or None):
            self._changed()
