"""How long the certificates still live that proxies hold, looked at from time to time."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Final, Protocol

from certs.errors import StateError
from certs.ledger.contract import Ledger
from delivery.assembly import Delivery
from delivery.proxies.participants import of_statuses
from delivery.proxies.status import ProxyState

LOOK_SECONDS: Final = 30.0


class ExpiryMeter(Protocol):
    """Where it is told."""

    def expires(self, seconds: dict[str, float]) -> None:
        """Take over how long the first of each kind still lives, in seconds."""


async def looking(
    delivery: Delivery, ledger: Ledger, meter: ExpiryMeter, clock: Callable[[], datetime]
) -> None:
    """Look every LOOK_SECONDS, until cancelled."""
    while True:
        meter.expires(await asyncio.to_thread(seconds_left, delivery, ledger, clock()))
        await asyncio.sleep(LOOK_SECONDS)


def seconds_left(delivery: Delivery, ledger: Ledger, now: datetime) -> dict[str, float]:
    """Return how long the first certificate still lives by kind, of the proxies that are connected.

    A `service` one as its proxy has acknowledged it, a `proxy` one as it has been claimed. For a thread.
    """
    first = {"service": delivery.held_certificates.first_end(delivery.registry.connected())}
    here = [each for each in delivery.registry.statuses() if each.state is ProxyState.CONNECTED]
    try:
        used = [each for each in ledger.entries() if each.claimed_at is not None]
    except StateError:
        used = []  # what is unwell with the ledger is said elsewhere
    names = {each.name for each in here}
    entries = (each.entry for each in of_statuses(used, here, now) if each.name in names)
    first["proxy"] = min((each.not_after for each in entries if each is not None), default=None)
    return {kind: (end - now).total_seconds() for kind, end in first.items() if end is not None}
