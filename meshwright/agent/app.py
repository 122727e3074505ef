"""The agent's main function.

The function starts status server, credentials and Envoy in this order, and ends them in order.
"""

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import structlog
from aiohttp import web

from certs.state import links
from certs.state.files import make_private
from certs.state.privacy import exposure
from meshwright.agent.agent import Agent
from meshwright.agent.envoy.admin import EnvoyAdmin
from meshwright.agent.envoy.lifecycle import EnvoyEnd
from meshwright.agent.envoy.runtime import RuntimeDirectory
from meshwright.agent.errors import AgentError
from meshwright.agent.interception.iptables import ProgramFailed, left_alone
from meshwright.agent.interception.owners import named
from meshwright.agent.service_manager import Manager
from meshwright.agent.settings import AgentSettings
from meshwright.agent.status import server
from meshwright.mesh.listening_sockets import listening
from meshwright.serving.runners import runner

_log = structlog.get_logger("agent")


async def run(
    settings: AgentSettings,
    stop: asyncio.Event,
    again: asyncio.Event | None = None,
    pages: server.Pages = server.no_pages,
    manager: Manager | None = None,
) -> EnvoyEnd:
    """Run a proxy until `stop` is set or Envoy is given up; return why Envoy ended. Raises AgentError.

    The files are read again when `again` is set. `pages` are further local pages of the status server.
    `manager` is notified of the proxy's state.
    """
    await asyncio.to_thread(_require_left_alone)
    with _alone(settings.run):
        async with EnvoyAdmin(settings.admin_at, RuntimeDirectory(settings.run).bootstrap) as admin:
            agent = Agent(settings, admin, stop)
            async with _serving(agent, settings, pages):
                if not await agent.start():
                    return EnvoyEnd.STOPPED
                if stop.is_set():
                    agent.quit()  # no call has been served, so no connection needs draining
                return await _kept(agent, stop, again or asyncio.Event(), manager)


def _require_left_alone() -> None:
    """Raise AgentError if interception rules would redirect Envoy's own traffic to Envoy.

    Only root can read the rules, and the problem only occurs when the agent runs as root.
    """
    uid = os.geteuid()
    if uid != 0:
        return
    try:
        users = left_alone()
    except ProgramFailed as error:
        _log.warning(
            "interception rules cannot be read; the agent starts without this check", reason=str(error)
        )
        return
    if users and uid not in users:
        others = ", ".join(map(named, sorted(users)))
        raise AgentError(
            f"the agent runs as {named(uid)}, but the interception rules of this machine "
            f"exempt only the traffic of {others}, so the traffic of the proxy would be "
            f"redirected to the proxy itself without end; run the agent as {others}, or "
            "remove the rules (`meshwright intercept --clean`)"
        )


async def _kept(agent: Agent, stop: asyncio.Event, again: asyncio.Event, manager: Manager | None) -> EnvoyEnd:
    keeping = asyncio.create_task(agent.keep(), name="envoy")
    watching = asyncio.create_task(agent.watch(), name="watch")
    naming = asyncio.create_task(agent.name(), name="hosts")
    enrolling = asyncio.create_task(agent.enrol(), name="enrolment")
    reaching = asyncio.create_task(agent.watch_control_plane(), name="control plane")
    ejections = asyncio.create_task(agent.report_ejections(), name="ejections")
    figures = asyncio.create_task(agent.report_statistics(), name="figures")
    looking = asyncio.create_task(agent.look_again(again, manager), name="read again")
    stopping = asyncio.create_task(stop.wait(), name="stop")
    telling = [] if manager is None else _reporting_tasks(agent, manager)
    tasks = (keeping, watching, naming, enrolling, reaching, ejections, figures, looking, stopping, *telling)
    try:
        # Every task runs until cancelled, so the first end is a stop, the end of Envoy, or an error, which
        # `result` raises.
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if watching in done:
            watching.result()
            raise AgentError("the watch of the certificate files has ended")
        for helping in (naming, enrolling, reaching, ejections, figures, looking, *telling):
            if helping in done:
                helping.result()
        if manager is not None:
            manager.stopping()
        if keeping not in done:
            await agent.end()
        return await keeping
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _reporting_tasks(agent: Agent, manager: Manager) -> list[asyncio.Task[None]]:
    return [
        asyncio.create_task(manager.followed(agent.not_ready, agent.remarks), name="service manager"),
        asyncio.create_task(manager.fed(agent.alive), name="service manager's watchdog"),
    ]


@contextlib.asynccontextmanager
async def _serving(agent: Agent, settings: AgentSettings, pages: server.Pages) -> AsyncIterator[None]:
    app = server.application(agent, settings.probes, settings.metrics_url, pages)
    running = runner(app, _log, 1.0)
    await running.setup()
    try:
        try:
            await web.SockSite(running, listening(settings.status)).start()
        except OSError as error:
            raise AgentError(f"cannot listen on {settings.status}: {error.strerror}") from error
        yield
    finally:
        await running.cleanup()


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Create the run directory, and lock it against a second agent; the kernel releases the lock at exit."""
    with contextlib.ExitStack() as opened:
        try:
            make_private(directory)
            folder = opened.enter_context(links.directory(directory))
            _require_own(directory, os.fstat(folder))  # checked before any file in it is opened
            file = opened.enter_context(os.fdopen(links.open_file("lock", folder), "r+b", buffering=0))
        except OSError as error:
            raise AgentError(f"cannot use the directory {directory}: {error.strerror}") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise AgentError(
                f"another agent already uses the directory {directory}; stop it, or give this "
                "agent another --run"
            ) from error
        yield


def _require_own(directory: Path, result: os.stat_result) -> None:
    """Raise AgentError for a directory in which another user can create files."""
    if words := exposure(directory, result.st_mode, result.st_uid, os.geteuid(), public=True):
        raise AgentError(words)
