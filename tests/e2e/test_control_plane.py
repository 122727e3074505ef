"""Tests of traffic during a manifest change and a crash of the control plane.

`make nightly` runs the tests in both modes. Other runs use only the transparent one, which starts and checks
more, or without root the explicit one.
"""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

from demo import leftovers, manifests
from demo.apps.names import BUY_A_BOOK, client_headers
from demo.apps.probe import Outcomes, Probe
from demo.bookstore import Bookstore
from demo.interception import missing_for_transparent
from demo.matrix import PHASES
from demo.supervisor import DemoError, Supervisor
from demo.topology import BOOKBUYER, BOOKSTORE, PLACES, STORE_V1, STORE_V2, Mode

# In CI the demo has its own test, and machines and streams show crashes and splits.
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.envoy,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]
TRANSPARENT = pytest.param(
    Mode.TRANSPARENT,
    marks=[
        pytest.mark.root,
        pytest.mark.skipif(bool(missing_for_transparent()), reason=missing_for_transparent() or "it can run"),
    ],
)
IS_LONG = os.environ.get("MESHWRIGHT_SOAK") == "long"
MODES = [Mode.EXPLICIT, TRANSPARENT] if IS_LONG or missing_for_transparent() else [TRANSPARENT]
WANTED = {phase.name: dict(phase.manifests) for phase in PHASES}
CONTROL_PLANE = "meshwright serve"
CONNECTING_SECONDS = 120.0
PAUSE = 0.03
"""Seconds between a few purchases and the next: so many that there is time for everything else."""


@asynccontextmanager
async def running(state: Path, mode: Mode, *, hot_restart: bool = False) -> AsyncIterator[Bookstore]:
    """Run the bookstore with all sales by v1 and every sidecar connected and admitted."""
    try:
        async with Supervisor(state) as supervisor:
            bookstore = await Bookstore.create(
                state, supervisor, mode, hot_restart=hot_restart, usual_ports=False
            )
            await bookstore.start(WANTED["F"])
            await supervisor.until("the first sale", lambda: sold_by(bookstore, STORE_V1.name))
            await until_all_connected(bookstore)
            yield bookstore
    finally:
        leftovers.remove(state)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=MODES)
async def shared(
    request: pytest.FixtureRequest, envoy: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Bookstore]:
    """The bookstore of all tests here, in each mode.

    It is shared because its start takes longer than a test.
    """
    async with running(tmp_path_factory.mktemp("bookstore"), request.param) as bookstore:
        yield bookstore


@pytest_asyncio.fixture(loop_scope="module")
async def bookstore(shared: Bookstore) -> Bookstore:
    """The bookstore in its initial state: all sales by v1, every sidecar connected and admitted."""
    manifests.apply(shared.mesh, WANTED["F"])
    await shared.supervisor.until("sales of v1", _sells(shared, (STORE_V1.name,)))
    await until_all_connected(shared)
    return shared


async def buy(bookstore: Bookstore, count: int, concurrency: int = 4) -> Outcomes:
    """Buy a number of books through the buyer's sidecar."""
    host, port = bookstore.target(BOOKBUYER, BOOKSTORE)
    headers = tuple(client_headers(BOOKBUYER.name).items())
    probe = Probe(host, port, "e2e", count, "GET", BUY_A_BOOK, headers, concurrency)
    return await bookstore.programs[BOOKBUYER.name].probe(probe)


async def sold_by(bookstore: Bookstore, *names: str) -> bool:
    """Return whether ten purchases all succeed, with exactly these sellers."""
    outcomes = await buy(bookstore, 10, 1)
    return set(outcomes.identities) == set(names) and outcomes.results == {"200": 10}


async def until_all_connected(bookstore: Bookstore) -> None:
    """Wait for `all_connected`; on a timeout, report the proxies, the streams and the log.

    Envoy pauses for up to half a minute between two attempts, and on a busy machine the first may fail.
    """
    try:
        connected = partial(all_connected, bookstore)
        await bookstore.supervisor.until("all connected", connected, CONNECTING_SECONDS)
    except DemoError as error:
        proxies, xds = [await bookstore.plane.ask(item) for item in ("/debug/proxy", "/debug/xds")]
        log = (bookstore.state / "logs" / "control-plane.log").read_text().splitlines()[-20:]
        raise AssertionError(f"{error}: {proxies}, {xds}, {log}") from error


async def all_connected(bookstore: Bookstore) -> bool:
    """Return whether every sidecar is connected and admitted, and has accepted its resources."""
    proxies = (await bookstore.plane.ask("/debug/proxy"))["proxies"]
    streams = (await bookstore.plane.ask("/debug/xds"))["streams"]
    assert isinstance(proxies, list)
    assert isinstance(streams, list)
    connected = [proxy for proxy in proxies if proxy["state"] == "connected" and proxy["admitted"]]
    states = {kind["state"] for stream in streams for kind in stream["types"].values()}
    types = min((len(stream["types"]) for stream in streams), default=0)
    return len(connected) == len(PLACES) and types >= 2 and states == {"synced"}


async def resources_sent(bookstore: Bookstore) -> Mapping[str, int]:
    """Return the number of resources that this run of the control plane has sent, by type."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://{bookstore.plane.addresses.http}/metrics") as response,
    ):
        text = await response.text()
    return {
        sample.labels["type"]: int(sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "meshwright_xds_resources_sent_total"
    }


async def _has_sent(bookstore: Bookstore, kind: str, count: int) -> bool:
    return (await resources_sent(bookstore)).get(kind, 0) >= count


async def assignments_held(bookstore: Bookstore) -> int:
    """Return the total number of load assignments of all sidecars."""
    streams = (await bookstore.plane.ask("/debug/xds"))["streams"]
    assert isinstance(streams, list)
    return sum(
        len(stream["types"]["endpoint"]["names"]) for stream in streams if "endpoint" in stream["types"]
    )


@asynccontextmanager
async def under_load(bookstore: Bookstore) -> AsyncIterator[Counter[str]]:
    """Buy books continuously; the outcomes are complete when the block has ended."""
    outcomes: Counter[str] = Counter()
    enough = asyncio.Event()

    async def load() -> None:
        while not enough.is_set():
            outcomes.update((await buy(bookstore, 10, 2)).results)
            await asyncio.sleep(PAUSE)

    task = asyncio.create_task(load(), name="load")
    try:
        yield outcomes
    finally:
        enough.set()
        await task


def until_bought(bookstore: Bookstore, outcomes: Counter[str], more: int) -> Awaitable[None]:
    """Wait until `more` further books were bought."""
    goal = outcomes.total() + more
    return bookstore.supervisor.until(f"{more} more purchases", lambda: outcomes.total() >= goal)


async def test_edited_traffic_split_shifts_traffic_without_a_failed_request(bookstore: Bookstore) -> None:
    """Sales move from v1 to v2, to both, and back. Only the manifest changes, and each purchase succeeds."""
    async with under_load(bookstore) as outcomes:
        for phase, sellers in (
            ("H", (STORE_V2.name,)),
            ("G", (STORE_V1.name, STORE_V2.name)),
            ("F", (STORE_V1.name,)),
        ):
            manifests.apply(bookstore.mesh, WANTED[phase])
            await bookstore.supervisor.until(f"phase {phase}", _sells(bookstore, sellers))
    assert outcomes == {"200": outcomes.total()}


def _sells(bookstore: Bookstore, sellers: tuple[str, ...]) -> Callable[[], Awaitable[bool]]:
    return lambda: sold_by(bookstore, *sellers)


async def test_control_plane_crash_fails_no_request_and_resends_only_endpoints(
    bookstore: Bookstore,
) -> None:
    """No request fails, and delta proxies are sent again only the endpoints, which rule O4 demands.

    A second crash with an edited manifest is the control: the changed routes are sent as well.
    """
    before, held = await resources_sent(bookstore), await assignments_held(bookstore)
    async with under_load(bookstore) as outcomes:
        await _crash_and_return(bookstore, outcomes)
        await bookstore.supervisor.until("all endpoints", lambda: _has_sent(bookstore, "endpoint", held))
        again = await resources_sent(bookstore)
        await _crash_and_return(bookstore, outcomes, edit=WANTED["H"])
        await bookstore.supervisor.until("sales of v2", _sells(bookstore, (STORE_V2.name,)))
        edited = await resources_sent(bookstore)

    assert all(before[kind] for kind in ("cluster", "endpoint", "listener", "route", "secret"))
    assert {kind: sent for kind, sent in again.items() if sent} == {"endpoint": held}
    assert {kind for kind, sent in edited.items() if sent} == {"endpoint", "route"}
    assert outcomes == {"200": outcomes.total()}
    assert outcomes.total() >= 400


async def _crash_and_return(
    bookstore: Bookstore, outcomes: Counter[str], edit: dict[str, str] | None = None
) -> None:
    """Crash the control plane, buy, optionally edit manifests, restart it, wait for all sidecars."""
    await bookstore.supervisor.crash(CONTROL_PLANE)
    await until_bought(bookstore, outcomes, 100)
    if edit is not None:
        manifests.apply(bookstore.mesh, edit)
    await bookstore.plane.start(bookstore.supervisor, bookstore.state / "logs")
    await until_all_connected(bookstore)
    await until_bought(bookstore, outcomes, 100)
