"""Walk through the acceptance matrix: change manifests as a user would, and check each cell with requests."""

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import aiohttp

from demo.apps import outcomes
from demo.apps.control import AppClient
from demo.apps.probe import Outcomes, Probe
from demo.display.verdicts import CellResult, Verdict, controls, wrong
from demo.matrix import (
    CELLS,
    LOOP_ROUNDS,
    MTLS_PHASE,
    PHASES,
    REQUESTS,
    Phase,
    Request,
    is_served,
    sample_of,
    split_fits,
)
from demo.supervisor import DemoError
from demo.topology import (
    BOOKBUYER,
    BOOKSTORE,
    BOOKSTORE_V1,
    BOOKSTORE_V2,
    BOOKTHIEF,
    BOOKWAREHOUSE,
    DATABASE,
    MYSQL,
    STORE_V1,
    STORE_V2,
    WAREHOUSE,
    Place,
)
from meshwright.mesh.service import ServiceKey

SETTLE_SECONDS: Final = 60.0
"""Maximum seconds until real requests show the effect of a change."""
_PAUSE: Final = 0.1
_SPLIT_CONCURRENCY: Final = 8
_LOOPS: Final = (BOOKBUYER, BOOKTHIEF)
"""Clients with an endless loop of purchases."""
_SERVERS: Final[dict[ServiceKey, tuple[Place, ...]]] = {
    BOOKSTORE: (STORE_V1, STORE_V2),
    BOOKSTORE_V1: (STORE_V1,),
    BOOKSTORE_V2: (STORE_V2,),
    BOOKWAREHOUSE: (WAREHOUSE,),
    MYSQL: (DATABASE,),
}
"""Workloads that may serve a request to a service; a TrafficSplit can send bookstore's requests to both."""


class Store(Protocol):
    """A running bookstore on this machine or in a cluster: its programs, and its changing manifests."""

    @property
    def programs(self) -> Mapping[str, AppClient]:
        """Return the clients of the programs' sockets, by workload name."""

    def target(self, place: Place, service: ServiceKey) -> tuple[str, int]:
        """Return host and port that the program of a workload uses to call a service."""

    async def change(self, wanted: Mapping[str, str]) -> None:
        """Apply these manifests (file → variant), and remove the other changing manifests."""

    def check(self) -> None:
        """Raise DemoError if an expected process has ended."""


@dataclass(slots=True)
class Walk:
    """One walk through the phases; `say` gets a line for each finished phase.

    `inbound` makes the attempts at sidecars' inbound ports; its argument is the name of the phase. A
    bookstore with only some of the programs is checked with the rows for these programs.
    """

    bookstore: Store
    say: Callable[[str], None]
    inbound: Callable[[str], Awaitable[list[Verdict]]]
    phases: Sequence[Phase] = PHASES

    @property
    def cells(self) -> tuple[tuple[str, Request], ...]:
        """Return the rows of the matrix with both client and server in this bookstore."""
        return tuple(
            (cell, request)
            for cell, request in CELLS
            if self._has(request.source) and self._has(_SERVERS[request.destination][0])
        )

    def _has(self, place: Place) -> bool:
        return place.name in self.bookstore.programs

    async def run(self) -> tuple[Verdict, ...]:
        """Walk through all phases of the matrix; return all verdicts, with the positive controls last."""
        verdicts: list[Verdict] = []
        for phase in self.phases:
            began = time.monotonic()
            result = await self._phase(phase)
            verdicts += result
            held = sum(verdict.holds for verdict in result)
            took = time.monotonic() - began
            self.say(f"{phase.name}  {phase.title:<26} {held}/{len(result)}  {took:5.1f} s")
            for line in wrong(result):
                self.say(f"   {line}")
        return (*verdicts, *controls(verdicts, self.cells))

    async def _phase(self, phase: Phase) -> list[Verdict]:
        await self.bookstore.change(phase.manifests)
        await self._settle(phase)
        # The rows are independent, and the walk has 153 cells, so they are checked at the same time.
        cells = asyncio.gather(*(self._cell(phase, cell, request) for cell, request in self.cells))
        loops = asyncio.gather(*(self._loop(phase, place) for place in _LOOPS))
        verdicts = [verdict for part in await asyncio.gather(cells, loops) for verdict in part]
        if phase.split:
            verdicts.append(await self._split(phase))
        if phase.name == MTLS_PHASE:
            verdicts += await self.inbound(phase.name)
        self.bookstore.check()
        return verdicts

    async def _settle(self, phase: Phase) -> None:
        """Wait until real requests show every cell of the phase, and the split, at least once.

        After 60 seconds the wait ends without an error, because the checks report the fault with all details.
        """
        waits: list[Awaitable[None]] = [
            self._settle_cell(is_served(cell, phase), req) for cell, req in self.cells
        ]
        waits += [self._settle_loop(is_served(_row(place), phase), place) for place in _LOOPS]
        if phase.split:
            waits.append(self._settle_split(phase))
        await asyncio.gather(*waits)

    async def _settle_cell(self, served: bool, request: Request) -> None:
        async def shown() -> bool:
            result, _ = await self._ask(request, 1)
            (outcome,) = result.results
            return outcomes.is_allowed(outcome) if served else outcomes.is_denied(outcome)

        await self._until(shown)

    async def _settle_loop(self, served: bool, place: Place) -> None:
        """Wait for a round of the client's endless loop.

        New requests prove little here, because the loop's old connections may be handled by another worker of
        Envoy.
        """
        last = await self._standing(place)

        async def shown() -> bool:
            nonlocal last
            before, last = last, await self._standing(place)
            return last[0] > before[0] and (last[1] > before[1]) is served

        await self._until(shown)

    async def _settle_split(self, phase: Phase) -> None:
        # 20 requests show all versions with a weight; the shares are checked later with a large sample.
        wanted = {name for name, percent in phase.split.items() if percent}

        async def shown() -> bool:
            result, _ = await self._ask(self._purchase(), 20)
            return set(result.identities) == wanted

        await self._until(shown)

    async def _until(self, shown: Callable[[], Awaitable[bool]]) -> None:
        limit = time.monotonic() + SETTLE_SECONDS
        while not await shown() and time.monotonic() < limit:
            self.bookstore.check()
            await asyncio.sleep(_PAUSE)

    async def _cell(self, phase: Phase, cell: str, request: Request) -> Verdict:
        """Make 10 new requests, and compare the counts of client and server with the matrix."""
        outcome, token = await self._ask(request, REQUESTS)
        result = CellResult(outcome.results, await self._counted(request.destination, token))
        if is_served(cell, phase):
            return Verdict(phase.name, request.label, "served", str(result), result.is_served(REQUESTS))
        return Verdict(phase.name, request.label, "denied", str(result), result.is_denied(REQUESTS))

    async def _split(self, phase: Phase) -> Verdict:
        """Buy a sample of books and compare the shares with the phase, and both sides' counts."""
        result, token = await self._ask(self._purchase(), sample_of(phase.split), _SPLIT_CONCURRENCY)
        sold = await self._sold(token)
        holds = split_fits(phase.split, result.identities) and +sold == +result.identities
        expected = ", ".join(f"{name} {percent:g} %" for name, percent in phase.split.items())
        observed = ", ".join(f"{name} {result.identities[name]}" for name in phase.split)
        failed = {outcome: number for outcome, number in result.results.items() if outcome != "200"}
        observed += f" of {result.results.total()}" + (f", {failed}" if failed else "")
        if +sold != +result.identities:
            observed += f"; the bookstores counted {dict(sold)}"
        return Verdict(phase.name, "split", expected, observed, holds)

    async def _loop(self, phase: Phase, place: Place) -> Verdict:
        """Watch the endless loop of a client: the count of served purchases must grow, or stay the same."""
        before_tried, before_served = await self._standing(place)
        limit = time.monotonic() + SETTLE_SECONDS
        tried, served = before_tried, before_served
        while tried - before_tried < LOOP_ROUNDS and time.monotonic() < limit:
            await asyncio.sleep(_PAUSE)
            tried, served = await self._standing(place)
        tried, served = tried - before_tried, served - before_served
        what = f"purchase loop of {place.name}"
        observed = f"{tried} purchases tried, the bookstores served {served} requests"
        # The last purchase may still be in progress when the counters are read, so one less is enough.
        if is_served(_row(place), phase):
            return Verdict(phase.name, what, "count grows", observed, served >= LOOP_ROUNDS - 1)
        return Verdict(
            phase.name, what, "count stays the same", observed, tried >= LOOP_ROUNDS and served == 0
        )

    async def _standing(self, place: Place) -> tuple[int, int]:
        """Return the purchases tried by a client, and this client's requests served by the bookstores."""
        tried = (await self.bookstore.programs[place.name].status()).calls.get("bookstore", Counter())
        stores = [
            await self.bookstore.programs[store.name].status()
            for store in (STORE_V1, STORE_V2)
            if self._has(store)
        ]
        return tried.total(), sum(store.served[place.name] for store in stores)

    def _purchase(self) -> Request:
        return next(request for _, request in CELLS if request.source is BOOKBUYER)

    async def _ask(self, request: Request, count: int, concurrency: int = 1) -> tuple[Outcomes, str]:
        """Let the workload make a request `count` times.

        Return the outcomes, and the token of the requests.
        """
        host, port = self.bookstore.target(request.source, request.destination)
        token = secrets.token_hex(8)
        probe = Probe(host, port, token, count, request.method, request.path, request.headers, concurrency)
        try:
            return await self.bookstore.programs[request.source.name].probe(probe), token
        except (aiohttp.ClientError, OSError) as error:
            raise DemoError(f"{request.source.name} does not answer on its socket: {error}") from error

    async def _counted(self, service: ServiceKey, token: str) -> int:
        """Return the number of requests with this token that the workloads behind a service have served."""
        statuses = [
            await self.bookstore.programs[place.name].status()
            for place in _SERVERS[service]
            if self._has(place)
        ]
        return sum(status.tokens[token] for status in statuses)

    async def _sold(self, token: str) -> Counter[str]:
        return Counter(
            {
                place.name: (await self.bookstore.programs[place.name].status()).tokens[token]
                for place in (STORE_V1, STORE_V2)
                if self._has(place)
            }
        )


def _row(place: Place) -> str:
    """Return the row of the matrix for the endless loop of a client."""
    return next(
        cell
        for cell, request in CELLS
        if request.source is place and request.destination == BOOKSTORE and "book/new" in request.path
    )
