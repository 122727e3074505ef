"""How long the certificates still live that proxies hold, looked at from time to time."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final, Protocol

from certs.errors import StateError
from certs.ledger.contract import Ledger
from meshwright.delivery.proxies.held_certificates import HeldCertificates
from meshwright.delivery.proxies.participants import participants
from meshwright.delivery.proxies.proxy import Proxy
from meshwright.delivery.proxies.registry import ProxyRegistry
from meshwright.delivery.proxies.shown_certificates import ShownCertificate, ShownCertificates
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
class _CertificateClaim:
    """What a proxy claimed last (None: nothing), and its newest stream then."""

    newest: ShownCertificate | None
    stream: tuple[datetime | None, str]

    def then(self, shown: ShownCertificate, stream: tuple[datetime | None, str]) -> "_CertificateClaim":
        """Return what holds after it has shown something, which may be what it has claimed before."""
        is_older = self.newest is not None and shown.issued_at < self.newest.issued_at
        return _CertificateClaim(self.newest if is_older else shown, stream)


_NOTHING: Final = _CertificateClaim(None, (None, ""))


class Expiry:
    """Knows the first end of each kind, of the proxies that are connected; for one thread at a time.

    A `service` certificate ends as its proxy has acknowledged it, a `proxy` one as it has been claimed. That
    is done by showing it: what has been `shown` here is known without the ledger, which may take a tenth of
    a second to say it of thousands. It is asked of all in turn, since others may have been shown more, and
    of whom nothing was shown. That of the `gateway` ends as it was written.
    """

    def __init__(
        self,
        registry: ProxyRegistry,
        held: HeldCertificates,
        ledger: Ledger,
        shown: ShownCertificates,
        gateway: Callable[[], datetime | None] = lambda: None,
    ) -> None:
        self._registry = registry
        self._held = held
        self._ledger = ledger
        self._shown = shown
        self._gateway = gateway
        self._claimed: dict[NodeKey, _CertificateClaim] = {}  # who was asked of longest ago comes first

    def seconds_left(self, now: datetime) -> dict[str, float]:
        """Return how long the first certificate still lives by kind, of those kinds that there are."""
        here = self._registry.connected()
        self._ask(here, now)
        ends = (each.newest.not_after for each in self._claimed.values() if each.newest is not None)
        first = {
            "service": self._held.first_end(here),
            "proxy": min(ends, default=None),
            "gateway": self._gateway(),
        }
        return {kind: (end - now).total_seconds() for kind, end in first.items() if end is not None}

    def _ask(self, here: Iterable[Proxy], now: datetime) -> None:
        """Ask the ledger of who came unseen since the last look, and of some others; forget who went."""
        streams = {each.node: (each.since, each.address) for each in here}
        for node in self._claimed.keys() - streams.keys():
            del self._claimed[node]
        turn = set(islice(self._claimed, -(-len(self._claimed) // IN_TURN)))
        self._see(streams)
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
            newest = None if entry is None else ShownCertificate(entry.issued_at, entry.not_after)
            self._claimed.pop(node, None)
            self._claimed[node] = _CertificateClaim(newest, streams[node])

    def _see(self, streams: Mapping[NodeKey, tuple[datetime | None, str]]) -> None:
        """Take over what those who are here have shown since the last look."""
        shown = self._shown.take()
        for node, stream in streams.items():
            if (newest := shown.get(node)) is not None:
                self._claimed[node] = self._claimed.get(node, _NOTHING).then(newest, stream)
