"""Common parts of servers with synthetic resources: flags, control port, and life cycle."""

import argparse
import asyncio
import contextlib
import resource
import signal
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from aiohttp import web

from benchmarks.profiles.sampling import sampled


def flags(program: str, description: str | None) -> argparse.ArgumentParser:
    """Return a command line parser with the flags that all synthetic servers have."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=description)
    parser.add_argument("--services", type=int, default=1, help="ClusterLoadAssignments")
    parser.add_argument("--endpoints", type=int, default=10, help="endpoints of each")
    parser.add_argument("--port", type=int, default=18000, help="port of the discovery service")
    parser.add_argument(
        "--control-port", type=int, default=18001, help="control port, for changes and /stats"
    )
    parser.add_argument("--tls-dir", type=Path, required=True, help="directory of ca.pem, s.pem and s.key")
    parser.add_argument("--profile", type=Path, help="file for a profile of the process")
    return parser


def control(
    changes: Mapping[str, Callable[[], None]], stats: Callable[[], Mapping[str, object]]
) -> web.Application:
    """Return the control port's application: `GET /<name>` makes a change, `GET /stats` returns its cost."""

    def route(change: Callable[[], None]) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(_: web.Request) -> web.Response:
            change()
            return web.Response()

        return handle

    async def tell(_: web.Request) -> web.Response:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return web.json_response({**stats(), "cpu_seconds": usage.ru_utime + usage.ru_stime})

    application = web.Application()
    application.add_routes(web.get(f"/{name}", route(change)) for name, change in changes.items())
    application.add_routes([web.get("/stats", tell)])
    return application


async def serve_until_signal(options: argparse.Namespace, application: web.Application) -> None:
    """Serve the control port until SIGTERM or SIGINT."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", options.control_port).start()
    with sampled(options.profile) if options.profile is not None else contextlib.nullcontext():
        await stopping.wait()
    await runner.cleanup()
