"""Command `python -m demo.apps client|store|warehouse|database`: run one program of the bookstore."""

import asyncio
import contextlib
import os
import signal
import sys

import aiohttp
from aiohttp import web

from demo.apps import control
from demo.apps.client import Client
from demo.apps.counters import Counters
from demo.apps.database import Database
from demo.apps.settings import AppSettings
from demo.apps.store import Store
from demo.apps.warehouse import Warehouse


async def _serve_web(application: web.Application, settings: AppSettings) -> web.AppRunner:
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
    await runner.setup()
    host, port = settings.listen or ("127.0.0.1", 0)
    await web.TCPSite(runner, host, port).start()
    return runner


async def _serve_control(counters: Counters, settings: AppSettings) -> web.AppRunner:
    runner = web.AppRunner(control.application(counters), access_log=None, shutdown_timeout=1)
    await runner.setup()
    settings.control.unlink(missing_ok=True)
    await web.UnixSite(runner, str(settings.control)).start()
    return runner


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def run(role: str, settings: AppSettings, stop: asyncio.Event) -> None:
    """Run the program with this role until `stop` is set; its control socket appears after it serves."""
    counters = Counters()
    async with contextlib.AsyncExitStack() as stack:
        if role == "store":
            timeout = aiohttp.ClientTimeout(total=10)
            session = await stack.enter_async_context(aiohttp.ClientSession(timeout=timeout))
            runner = await _serve_web(Store(settings, counters, session).application(), settings)
            stack.push_async_callback(runner.cleanup)
        elif role == "warehouse":
            runner = await _serve_web(Warehouse(settings, counters).application(), settings)
            stack.push_async_callback(runner.cleanup)
        elif role == "database":
            database = Database(counters)
            await database.serve(*(settings.listen or ("127.0.0.1", 0)))
            stack.push_async_callback(database.close)
        elif role == "client":
            task = asyncio.create_task(Client(settings, counters).run())
            # Without this callback a failed client would only stop its loop. So the program ends, and prints
            # the error.
            task.add_done_callback(lambda _: stop.set())
            stack.push_async_callback(_end, task)
        else:
            raise SystemExit(f"unknown role {role!r}: expected client, store, warehouse or database")
        # Created last, because an answer on this socket means that the program serves.
        socket = await _serve_control(counters, settings)
        stack.push_async_callback(socket.cleanup)
        await stop.wait()
        await asyncio.sleep(settings.linger)


async def _main(role: str) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await run(role, AppSettings.from_environment(os.environ), stop)


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1]))
