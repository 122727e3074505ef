"""The CNI daemon of a node: answers requests before the runtime knows the plug-in, and until its removal."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Final

import structlog
from aiohttp import web

from meshwright.kube.api import Api
from meshwright.kube.connection.connection import Connection
from meshwright.kubernetes.cni import networks, program
from meshwright.kubernetes.cni.cluster import Cluster
from meshwright.kubernetes.cni.daemon_socket import SOCKET, catching_up, served
from meshwright.kubernetes.cni.earlier_pods import looking
from meshwright.kubernetes.cni.keeper import Keeper
from meshwright.kubernetes.cni.responses import Answerer
from meshwright.kubernetes.cni.settings import Settings
from meshwright.kubernetes.cni.status import Figures, application
from meshwright.serving.runners import runner

_API_SECONDS: Final = 10.0
_DRAIN_SECONDS: Final = 60.0
_log = structlog.get_logger("cni.app")


async def run(settings: Settings, connection: Connection, stop: asyncio.Event) -> None:
    """Serve the Pods of the node until `stop` is set. Raises ProgramError or OSError if the start fails."""
    figures = Figures()
    there = program.Program(settings.programs)
    put_in, loop = asyncio.Event(), asyncio.get_running_loop()

    def changed() -> None:
        figures.change()
        put_in.set()

    entry = networks.entry(str(settings.run / SOCKET))
    keeper = Keeper(settings.networks, entry, there, lambda: _soon(loop, changed))
    async with Api(connection, "meshwright-cni", _API_SECONDS) as api:
        cluster = Cluster(api, settings.daemon_set)
        answerer = Answerer(cluster.pod, figures.request)
        version = await asyncio.to_thread(there.put)
        _log.info("plug-in installed", folder=str(settings.programs), version=version)
        # The socket opens before the keeper adds the plug-in to the network, because the runtime uses it at
        # once.
        async with served(settings.run, answerer), _pages(settings, keeper, figures):
            async with asyncio.TaskGroup() as tasks:
                kept = tasks.create_task(keeper.keep(), name="cni-keeper")
                notes = tasks.create_task(catching_up(settings.run, answerer), name="cni-notes")
                late = tasks.create_task(_late(settings, cluster, answerer, put_in), name="cni-late")
                await stop.wait()
                for task in (kept, notes, late):
                    task.cancel()
            await _end(settings, cluster, keeper)


def _soon(loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
    """Call `work` in the event loop, from another thread; do nothing if the loop has ended."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(work)


async def _late(settings: Settings, cluster: Cluster, answerer: Answerer, put_in: asyncio.Event) -> None:
    if settings.node:
        pods = partial(cluster.pods_of, settings.node)
        await looking(pods, answerer, settings.netns, put_in)


async def _end(settings: Settings, cluster: Cluster, keeper: Keeper) -> None:
    """Remove the plug-in, unless another daemon follows.

    The next daemon serves the Pods that start meanwhile.
    """
    if reason := await cluster.successor_reason():
        _log.info("plug-in kept for the next daemon", reason=reason)
        return
    changed = await asyncio.to_thread(keeper.take)
    await asyncio.to_thread(program.remove, settings.programs)
    _log.info("plug-in removed", changed=changed)


def uninstall(settings: Settings) -> tuple[str, ...]:
    """Remove the plug-in from a node without a daemon, and return the changed network files."""
    changed = Keeper(settings.networks, {}, program.Program(settings.programs)).take()
    program.remove(settings.programs)
    return changed


@contextlib.asynccontextmanager
async def _pages(settings: Settings, keeper: Keeper, figures: Figures) -> AsyncIterator[None]:
    at, socket = settings.status, settings.run / SOCKET

    def not_alive() -> str:
        if socket.is_socket():
            return ""
        return f"the socket {socket} does not exist any more, so the plug-in cannot reach the daemon"

    app = application(lambda: keeper.words, not_alive, figures)
    running = runner(app, _log, _DRAIN_SECONDS)
    await running.setup()
    try:
        await web.TCPSite(running, at.host, at.port).start()
        yield
    finally:
        await running.cleanup()
