"""Envoys that the agent's keeper starts and ends, here on a bootstrap that never changes."""

import asyncio
import contextlib
import os
import shlex
import socket
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from meshwright.agent.envoy.command import EnvoyOptions
from meshwright.agent.envoy.lifecycle import EnvoyEnd, Lifecycle, RestartSettings
from meshwright.agent.envoy.runtime import RuntimeDirectory
from meshwright.agent.envoy.supervisor import Supervisor
from tests.golden.beacon import BEACON_PORT


@dataclass(frozen=True)
class Place:
    """The place of an Envoy: a command prefix, a factory of sockets, and a user."""

    enter: tuple[str, ...] = ()
    open_socket: Callable[[], socket.socket] = lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    uid: int | None = None

    def session(self) -> aiohttp.ClientSession:
        """Return a client at this place, with a new connection for each request."""
        connector = aiohttp.TCPConnector(socket_factory=lambda _: self._quiet(), force_close=True)
        return aiohttp.ClientSession(connector=connector)

    def _quiet(self) -> socket.socket:
        made = self.open_socket()
        made.setblocking(False)
        return made


HERE = Place()


@dataclass(frozen=True)
class RunningEnvoy:
    """A started Envoy: its files, its admin interface, and the address of its beacon."""

    folder: Path
    beacon: str
    session: aiohttp.ClientSession

    @property
    def log(self) -> Path:
        """Return the path of its log, which begins with warnings."""
        return self.folder / "envoy.log"

    @property
    def admin(self) -> str:
        """Return HOST:PORT of its admin interface, or an empty string until it is known."""
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / "admin").read_text()
        return ""

    async def text(self, path: str) -> str:
        """Return a response of its admin interface, or an empty string without a 200."""
        return await self._get(f"http://{self.admin}{path}") if self.admin else ""

    async def round(self) -> str:
        """Return the number at its beacon."""
        return await self._get(f"http://{self.beacon}:{BEACON_PORT}/")

    async def live_epoch(self) -> int | None:
        """Return 0 when the Envoy is live, for the agent's keeper."""
        return 0 if await self.text("/ready") else None

    async def _get(self, url: str) -> str:
        try:
            async with self.session.get(url) as answer:
                return await answer.text() if answer.status == 200 else ""
        except (aiohttp.ClientError, OSError):
            return ""


async def keep(
    program: str,
    running: RunningEnvoy,
    place: Place,
    drain_seconds: int,
    ends: AsyncExitStack,
    environment: Mapping[str, str] | None = None,
) -> "asyncio.Task[EnvoyEnd]":
    """Start an Envoy on the bootstrap in its folder; it ends with the exit stack, or earlier by a fault."""
    folder = running.folder
    options = EnvoyOptions(
        _command(program, folder, place),
        concurrency=1,
        drain_seconds=drain_seconds,
        hot_restart=False,
        extra=(
            *("--log-path", str(running.log), "--admin-address-path", str(folder / "admin")),
            # Else a line may stay in a buffer for ten seconds, and a test see an empty log.
            *("--file-flush-interval-msec", "20"),
        ),
    )
    if place.uid is not None:
        for path in (folder, *folder.iterdir()):
            os.chown(path, place.uid, -1)
    lifecycle = Lifecycle(RestartSettings(tries=0, hot_restart=False))
    keeper = Supervisor(options, RuntimeDirectory(folder), lifecycle, running)
    keeping = asyncio.create_task(keeper.run(), name=f"keeper of {folder.name}")
    ends.push_async_callback(_end, keeper, keeping)
    await keeper.configured("only", environment)
    return keeping


def _command(program: str, folder: Path, place: Place) -> str:
    """Return a script that starts Envoy in its place and stores its access log."""
    script = folder / "envoy"
    command = shlex.join([*place.enter, program])
    script.write_text(f'#!/bin/sh\nexec {command} "$@" >{shlex.quote(str(folder))}/access.log 2>&1\n')
    script.chmod(0o755)
    return str(script)


async def _end(keeper: Supervisor, keeping: "asyncio.Task[EnvoyEnd]") -> None:
    await keeper.stop()
    await keeping
