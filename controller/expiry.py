"""How long the certificates still live that proxies hold, looked at from time to time."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final, Protocol

from certs.errors import StateError
from certs.ledger.contract import Ledger
from delivery.proxies.held_certificates import HeldCertificates
from delivery.proxies.participants import participants
from delivery.proxies.proxy import Proxy
from delivery.proxies.registry import ProxyRegistry
from xds.cache import NodeKey

LOOK_SECONDS: Final = 30.0

IN_TURN: Final = 20
"""Of those who are here as before, the ledger is asked of one in so many each time."""


class ExpiryMeter(Protocol):
    """Where it is told."""

    def expires(self, seconds: dict[str, float]) -> None:
        """Take over how long the first of each kind still lives, in seconds."""


async def looking(expiry: "Expiry", meter: ExpiryMeter, clock: Callable[[], datetime]) -> None:
    """Look every LOOK_SECONDS, until cancelled."""
    while True:
        meter.expires(await asyncio.to_thread(expiry.seconds_left, clock()))
        await asyncio.sleep(LOOK_SECONDS)


@dataclass(frozen=True, slots=True)
class _Claimed:
    """When what a proxy claimed last ends (None: it has claimed nothing), and its newest stream then."""

    end: datetime | None
    stream: tuple[datetime | None, str]


class Expiry:
    """Knows the first end of each kind, of the proxies that are connected; for one thread at a time.

    A `service` certificate ends as its proxy has acknowledged it, a `proxy` one as it has been claimed. That
    is done with a new stream: so the ledger is asked of who has one, and of all others in turn. That of the
    `gateway` ends as it was written.
    """

    def __init__(
        self,
        registry: ProxyRegistry,
        held: HeldCertificates,
        ledger: Ledger,
        gateway: Callable[[], datetime | None] = lambda: None,
    ) -> None:
        self._registry = registry
        self._held = held
        self._ledger = ledger
        self._gateway = gateway
        self._claimed: dict[NodeKey, _Claimed] = {}  # who was asked of longest ago comes first

    def seconds_left(self, now: datetime) -> dict[str, float]:
        """Return how long the first certificate still lives by kind, of those kinds that there are."""
        here = self._registry.connected()
        self._ask(here, now)
        ends = (each.end for each in self._claimed.values() if each.end is not None)
        first = {
            "service": self._held.first_end(here),
            "proxy": min(ends, default=None),
            "gateway": self._gateway(),
        }
        return {kind: (end - now).total_seconds() for kind, end in first.items() if end is not None}

    def _ask(self, here: Iterable[Proxy], now: datetime) -> None:
        """Ask the ledger of who came since the last look, and of some others; forget who went."""
        streams = {each.node: (each.since, each.address) for each in here}
        for node in self._claimed.keys() - streams.keys():
            del self._claimed[node]
        turn = set(islice(self._claimed, -(-len(self._claimed) // IN_TURN)))
        asked = {
            each.node: each.name
            for each in here
            if each.node in turn
            or (known := self._claimed.get(each.node)) is None
            or known.stream != streams[each.node]
        }
        names = frozenset(asked.values())
        try:
            used = [each for each in self._ledger.entries_of_all(names) if each.claimed_at is not None]
        except StateError:
            return  # what is unwell with the ledger is said elsewhere
        entries = {each.name: each.entry for each in participants(used, names, names, now)}
        for node, name in asked.items():
            entry = entries[name]
            self._claimed.pop(node, None)
            self._claimed[node] = _Claimed(None if entry is None else entry.not_after, streams[node])
