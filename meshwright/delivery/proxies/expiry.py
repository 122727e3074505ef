"""Remaining validity of the certificates of connected proxies, checked every 30 seconds for the metrics."""

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
"""Share of the unchanged proxies looked up in the ledger at each check: one in this many.

A check of all proxies took 80 to 120 ms for 2000 sidecars.
"""


class ExpiryMeter(Protocol):
    """Receiver of the remaining validity of the certificates of connected proxies."""

    def expires(self, seconds: dict[str, float]) -> None:
        """Set the seconds until the first certificate of each kind expires.

        For example: `{"service": 3590.0, "proxy": 86000.0}`.
        """


async def looking(expiry: "Expiry", meter: ExpiryMeter, clock: Callable[[], datetime]) -> None:
    """Measure the remaining validity of certificates every LOOK_SECONDS in a thread, until cancelled."""
    while True:
        meter.expires(await asyncio.to_thread(expiry.seconds_left, clock()))
        await asyncio.sleep(LOOK_SECONDS)


@dataclass(frozen=True, slots=True)
class _CertificateClaim:
    """The newest certificate that a proxy has claimed (or `None`), and its newest stream at that time."""

    newest: ShownCertificate | None
    stream: tuple[datetime | None, str]

    def then(self, shown: ShownCertificate, stream: tuple[datetime | None, str]) -> "_CertificateClaim":
        """Return the claim after the proxy has shown a certificate, which may be older than its newest."""
        is_older = self.newest is not None and shown.issued_at < self.newest.issued_at
        return _CertificateClaim(self.newest if is_older else shown, stream)


_NO_CLAIM: Final = _CertificateClaim(None, (None, ""))


class Expiry:
    """Earliest expiry of each kind of certificate of connected proxies; for one thread at a time.

    - `service`: the certificate that the proxy has acknowledged.
    - `proxy`: the certificate that the proxy has claimed by showing it. Certificates shown to this server
      (`shown`) are known without the ledger, where a look-up of thousands takes a tenth of a second. The
      ledger is asked for proxies with a new stream and no shown certificate, and for all others in turn,
      because another server may have seen a newer one.
    - `gateway`: the end of the stored gateway certificate.
    """

    def __init__(
        self,
        registry: ProxyRegistry,
        held_certificates: HeldCertificates,
        ledger: Ledger,
        shown: ShownCertificates,
        gateway: Callable[[], datetime | None] = lambda: None,
    ) -> None:
        self._registry = registry
        self._held_certificates = held_certificates
        self._ledger = ledger
        self._shown = shown
        self._gateway = gateway
        self._claimed: dict[NodeKey, _CertificateClaim] = {}  # ordered by the last look-up, oldest first

    def seconds_left(self, now: datetime) -> dict[str, float]:
        """Return the seconds until the first certificate of each kind expires.

        Kinds without one are missing.
        """
        here = self._registry.connected()
        self._update_claims(here, now)
        ends = (claim.newest.not_after for claim in self._claimed.values() if claim.newest is not None)
        first = {
            "service": self._held_certificates.first_end(here),
            "proxy": min(ends, default=None),
            "gateway": self._gateway(),
        }
        return {kind: (end - now).total_seconds() for kind, end in first.items() if end is not None}

    def _update_claims(self, here: Iterable[Proxy], now: datetime) -> None:
        """Look up newly connected proxies and a share of the others in the ledger; drop disconnected ones."""
        streams = {proxy.node: (proxy.since, proxy.address) for proxy in here}
        for node in self._claimed.keys() - streams.keys():
            del self._claimed[node]
        turn = set(islice(self._claimed, -(-len(self._claimed) // IN_TURN)))
        # Before the selection, because a shown certificate makes the look-up of this proxy unnecessary.
        self._apply_shown(streams)
        asked = {
            proxy.node: proxy.name
            for proxy in here
            if proxy.node in turn
            or (known := self._claimed.get(proxy.node)) is None
            or known.stream != streams[proxy.node]
        }
        names = frozenset(asked.values())
        try:
            used = [
                ledger_entry
                for ledger_entry in self._ledger.entries_of_all(names)
                if ledger_entry.claimed_at is not None
            ]
        except StateError:
            return  # the ledger's errors are reported elsewhere
        entries = {
            participant.name: participant.entry for participant in participants(used, names, names, now)
        }
        for node, name in asked.items():
            entry = entries[name]
            newest = None if entry is None else ShownCertificate(entry.issued_at, entry.not_after)
            self._claimed.pop(node, None)
            self._claimed[node] = _CertificateClaim(newest, streams[node])

    def _apply_shown(self, streams: Mapping[NodeKey, tuple[datetime | None, str]]) -> None:
        """Apply the certificates that connected proxies have shown since the last check."""
        shown = self._shown.take()
        for node, stream in streams.items():
            if (newest := shown.get(node)) is not None:
                self._claimed[node] = self._claimed.get(node, _NO_CLAIM).then(newest, stream)
