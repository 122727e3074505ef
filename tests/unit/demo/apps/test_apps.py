"""Tests of the bookstore's programs over loopback, without a mesh: their calls and their counters."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from demo.apps import names, outcomes, wire
from demo.apps.__main__ import run
from demo.apps.control import AppClient, Socket
from demo.apps.counters import Counters
from demo.apps.load import LoadRequest
from demo.apps.probe import Outcomes, Probe
from demo.apps.settings import AppSettings
from tools.ports import free_port

HOST = "127.0.0.1"
Shop = dict[str, tuple[AppClient, int]]


@contextlib.asynccontextmanager
async def program(role: str, settings: AppSettings) -> AsyncIterator[AppClient]:
    """Run a program in this process until the context ends."""
    stop = asyncio.Event()
    task = asyncio.create_task(run(role, settings, stop))
    client = AppClient(Socket(settings.control))
    while not settings.control.exists():
        assert not task.done(), task.exception()
        await asyncio.sleep(0.005)
    try:
        yield client
    finally:
        stop.set()
        await task


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    """A store, a warehouse and a database, connected directly."""
    store, warehouse, database = (free_port(HOST) for _ in range(3))
    async with contextlib.AsyncExitStack() as stack:

        async def start(role: str, port: int, **settings: object) -> tuple[AppClient, int]:
            made = AppSettings(role, tmp_path / f"{role}.sock", (HOST, port), **settings)  # type: ignore[arg-type] # by name
            return await stack.enter_async_context(program(role, made)), port

        yield {
            "database": await start("database", database),
            "warehouse": await start("warehouse", warehouse, database=(HOST, database)),
            "store": await start("store", store, bookwarehouse=f"http://{HOST}:{warehouse}"),
        }


async def test_sale_restocks_through_warehouse_and_database(shop: Shop) -> None:
    """Each purchase is counted once by the store, the warehouse and the database."""
    store, port = shop["store"]
    headers = tuple(names.client_headers("bookbuyer").items())
    result = await store.probe(Probe(HOST, port, "t1", 3, "GET", names.BUY_A_BOOK, headers))
    assert result == Outcomes(Counter({"200": 3}), Counter({"store": 3}))
    assert await store.status() == Counters(
        calls={"bookwarehouse": Counter({"200": 3})},
        last={"bookwarehouse": "200"},
        tokens=Counter({"t1": 3}),
    )
    warehouse = await shop["warehouse"][0].status()
    assert warehouse == Counters(
        calls={"mysql": Counter(ok=3)}, last={"mysql": "ok"}, served=Counter(store=3)
    )
    assert await shop["database"][0].status() == Counters(served=Counter(restock=3))


async def test_load_runs_until_stopped_and_counts_failures(shop: Shop) -> None:
    """Requests are counted by outcome and by the serving Pod. A second stop returns the same totals."""
    (store, port), (_, nothing) = shop["store"], shop["database"]
    await store.load(LoadRequest(f"http://{HOST}:{port}{names.BOOKS_BOUGHT}", rate=400))
    while (await store.totals()).sent < 20:
        pass
    totals = await store.unload()
    assert totals.sent >= 20
    assert totals.failed == 0
    assert totals.pods.total() == totals.sent
    assert await store.unload() == totals
    await store.load(
        LoadRequest(f"http://{HOST}:{nothing}/", rate=400, timeout=5)
    )  # it greets, and is no HTTP
    while not (await store.totals()).failed:
        await asyncio.sleep(0.01)
    totals = await store.unload()
    assert totals.failed == totals.sent
    assert totals.failures


async def test_stopping_program_serves_during_its_linger_time(tmp_path: Path) -> None:
    """Callers may not know yet that the program ends."""
    port, stop = free_port(HOST), asyncio.Event()
    app_settings = AppSettings(
        "store", tmp_path / "store.sock", (HOST, port), bookwarehouse="http://", linger=60
    )
    task = asyncio.create_task(run("store", app_settings, stop))
    client = AppClient(Socket(app_settings.control))
    while not app_settings.control.exists():
        await asyncio.sleep(0.005)
    stop.set()
    result = await client.probe(Probe(HOST, port, "t", 3, "GET", names.BOOKS_BOUGHT))
    assert result.results == Counter({"200": 3})
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_client_loops_and_counts_its_purchases(shop: Shop, tmp_path: Path) -> None:
    """The buyer's counts and the store's agree, by the name that the buyer sends."""
    _, port = shop["store"]
    settings = AppSettings("bookbuyer", tmp_path / "buyer.sock", bookstore=f"http://{HOST}:{port}", rate=100)
    async with program("client", settings) as client:
        while (await client.status()).calls.get("bookstore", Counter()).total() < 3:
            await asyncio.sleep(0.01)
        before = await client.status()
    store = await shop["store"][0].status()
    assert set(before.calls) == {"books-bought", "bookstore"}
    assert before.calls["bookstore"].keys() == {"200"}
    assert before.identities["store"] == before.calls["bookstore"]["200"]
    assert (
        store.served["bookbuyer"] >= before.calls["bookstore"].total() + before.calls["books-bought"].total()
    )


async def test_inserts_are_counted_by_token(shop: Shop) -> None:
    """A probe's inserts reach the database and are distinguished from others by their token."""
    database, port = shop["database"]
    headers = ((names.CALLER_HEADER, "bookthief"),)
    result = await database.probe(Probe(HOST, port, "t2", 4, headers=headers, concurrency=2))
    assert result.results == Counter({outcomes.OK: 4})
    assert (await database.status()).tokens == Counter({"t2": 4})


async def test_database_speaks_first_and_refuses_unknown_commands(shop: Shop) -> None:
    """The greeting is sent before any command, and an unknown command gets an error."""
    reader, writer = await asyncio.open_connection(HOST, shop["database"][1])
    assert await wire.read_packet(reader) == wire.GREETING
    writer.write(wire.packet(0, b"\x03DROP TABLE books"))
    assert (await wire.read_packet(reader)).startswith(b"\xff")
    writer.write(wire.packet(0, bytes([wire.COM_PING])))
    assert await wire.read_packet(reader) == wire.OK_ANSWER
    writer.close()
    await writer.wait_closed()


async def test_warehouse_without_database_answers_502(tmp_path: Path) -> None:
    """A restock that could not be stored counts neither as allowed nor as denied."""
    port = free_port(HOST)
    settings = AppSettings("w", tmp_path / "w.sock", (HOST, port), database=(HOST, free_port(HOST)))
    async with program("warehouse", settings) as warehouse:
        result = await warehouse.probe(Probe(HOST, port, "t3", 1, "POST", names.RESTOCK_BOOKS))
        assert result.results == Counter({"502": 1})
        assert (await warehouse.status()).tokens == Counter()
    assert not outcomes.is_allowed("502")
    assert not outcomes.is_denied("502")


async def test_warehouse_reconnects_to_a_restarted_database(tmp_path: Path) -> None:
    """The next order opens a new connection when the kept one is broken."""
    port, database_port = free_port(HOST), free_port(HOST)
    settings = AppSettings("w", tmp_path / "w.sock", (HOST, port), database=(HOST, database_port))
    restock = Probe(HOST, port, "t4", 1, "POST", names.RESTOCK_BOOKS)
    async with program("warehouse", settings) as warehouse:
        for turn in range(2):
            database = AppSettings("d", tmp_path / f"d{turn}.sock", (HOST, database_port))
            async with program("database", database):
                assert (await warehouse.probe(restock)).results == Counter({"200": 1})


async def test_failures_of_calls_have_distinct_names(tmp_path: Path) -> None:
    """Refused and closed connections, a status and an unknown host name are distinguished."""

    async def slam(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.close()
        await writer.wait_closed()

    async def forbidden(_request: web.Request) -> web.Response:
        return web.Response(status=403)

    server = await asyncio.start_server(slam, HOST, 0)
    closed_port = server.sockets[0].getsockname()[1]
    application = web.Application()
    application.router.add_get("/", forbidden)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, HOST, 0)
    await site.start()
    denied_port = runner.addresses[0][1]
    settings = AppSettings("d", tmp_path / "d.sock", (HOST, free_port(HOST)))
    async with program("database", settings) as asker:

        async def outcome(host: str, port: int) -> str:
            (result,) = (await asker.probe(Probe(host, port, "t", 1, "GET"))).results
            return result

        assert await outcome(HOST, free_port(HOST)) == outcomes.REFUSED
        assert await outcome(HOST, closed_port) in (outcomes.CLOSED, outcomes.RESET)
        assert await outcome(HOST, denied_port) == "403"
        assert await outcome("no-such-name.invalid", 80) == outcomes.UNRESOLVED
    server.close()
    await runner.cleanup()
