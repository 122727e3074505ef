"""Load of a Pod in the mesh during an operation: number of sent and failed calls."""

import contextlib
import time
from collections.abc import AsyncIterator
from typing import Final

from demo.apps import names
from demo.apps.control import AppClient
from demo.apps.load import LoadRequest, Totals
from demo.display.verdicts import Verdict
from demo.kubernetes.pods import Program, insist
from demo.kubernetes.store import PodStore
from demo.supervisor import DemoError
from demo.topology import BOOKBUYER, BOOKSTORE

_LEAST: Final = 100
"""Minimum number of calls before and after an operation, because fewer would prove little."""
_SECONDS: Final = 120.0


class LoadObserver:
    """View of the load that bookbuyer makes: its totals, and waits for further calls."""

    def __init__(self, buyer: Program) -> None:
        self._buyer = buyer

    async def totals(self) -> Totals:
        """Return the totals of the load so far."""
        return Totals.from_json(await insist(self._buyer, "GET", "/load"))

    async def more(self, least: int = _LEAST) -> None:
        """Wait until the load has made `least` more calls; raise DemoError after 120 seconds."""
        wanted = (await self.totals()).sent + least
        limit = time.monotonic() + _SECONDS
        while (await self.totals()).sent < wanted:
            if time.monotonic() > limit:
                raise DemoError(f"the buyer sent fewer than {least} calls in {_SECONDS:.0f} s")

    async def served_by(self, pods: set[str]) -> set[str]:
        """Wait at most 120 seconds until each of these Pods has served calls; return the Pods that have."""
        limit = time.monotonic() + _SECONDS
        while not pods <= (served := set((await self.totals()).pods)) and time.monotonic() < limit:
            await self.more(10)
        return served & pods


@contextlib.asynccontextmanager
async def under_load(
    store: PodStore, judged: list[Verdict], name: str, activity: str
) -> AsyncIterator[LoadObserver]:
    """Let bookbuyer buy while the block runs, and add a verdict: none of the calls may fail."""
    buyer = store.kubectl_programs[BOOKBUYER.name]
    host, port = store.target(BOOKBUYER, BOOKSTORE)
    headers = tuple(names.client_headers(BOOKBUYER.name).items())
    await AppClient(buyer).load(LoadRequest(f"http://{host}:{port}{names.BUY_A_BOOK}", headers))
    counting = LoadObserver(buyer)
    try:
        await counting.more()
        yield counting
        await counting.more()
    finally:
        # Also after an error in the block, because a running load would disturb the next scene.
        totals = Totals.from_json(await insist(buyer, "DELETE", "/load"))
    failures = f": {', '.join(totals.failures)}{await _unready(store)}" if totals.failed else ""
    observed = f"{totals.sent} sent, {totals.failed} failed{failures}"
    holds = totals.failed == 0 and totals.sent >= 2 * _LEAST
    judged.append(Verdict(name, f"calls while {activity}", "0 failed", observed, holds))


async def _unready(store: PodStore) -> str:
    """Return the kubelet's Events about failed probes, because a Pod that is not ready gets no calls."""
    events = await store.kubectl.get("events", "-A", "--field-selector=reason=Unhealthy")
    lines = (
        f"{item['involvedObject']['name']} {item['message']} ({item.get('count', 1)} times)"
        for item in events["items"]
    )
    return "".join(f"; {line}" for line in lines)
