"""Servers that are stopped for a while and continued, and servers whose clock is wrong."""

import asyncio
import shutil
import subprocess
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Final

import pytest

from tests.kubernetes.replicas.engines import Engine
from tests.kubernetes.replicas.meshes import Mesh, running_mesh
from tests.kubernetes.replicas.rows import LONG, Table
from tests.kubernetes.replicas.servers import Replica, until_led
from tests.tools import envoy as envoys
from tests.tools.deadline import until
from tests.tools.forked_cli import Command, Commands, Executed, Process, Typed

pytestmark = [pytest.mark.envoy, LONG, pytest.mark.timeout(600)]

STOPPED_SECONDS: Final = 30.0
AHEAD_SECONDS: Final = 60

_CLOCK: Final = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, at);
    if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) at->tv_sec += AHEAD;
    return result;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
"""
"""A library with another wall clock; durations by the monotonic clock stay as they are."""


async def test_stopped_leader_continues(mesh: Mesh) -> None:
    """Another server leads meanwhile, and the continued one follows it without a second term."""
    leader = await until_led(mesh.replicas)
    async with mesh.row(f"the leader is stopped for {STOPPED_SECONDS:.0f} s, and continued") as row:
        leader.freeze()
        began = time.monotonic()
        await until(lambda: any(item.leads() for item in mesh.others(leader)), 40)
        row.note = f"another leads after {time.monotonic() - began:.0f} s"
        await asyncio.sleep(max(0.0, began + STOPPED_SECONDS - time.monotonic()))
        terms = leader.terms()
        leader.thaw()
        began = time.monotonic()
        await until(lambda: len(leader.terms()) > len(terms))
        assert leader.terms()[: len(terms) + 1] == [*terms, False]
        await until_led(mesh.replicas)
        await mesh.settled()
        row.healed = time.monotonic() - began


async def test_proxies_of_a_stopped_server_get_changes_from_another(mesh: Mesh) -> None:
    """Envoy's keepalive notices a server without answers, so a change reaches all proxies meanwhile."""
    await mesh.settled()
    stopped = await mesh.with_most_envoys()
    async with mesh.row("a server stays stopped") as row:
        stopped.freeze()
        began = time.monotonic()
        up = mesh.others(stopped)

        async def are_elsewhere() -> bool:
            return sum([await mesh.envoys_at(item) for item in up]) == len(mesh.proxies)

        await until(are_elsewhere, 60)
        row.note = f"all Envoys elsewhere after {time.monotonic() - began:.0f} s"
        stopped.thaw()
        began = time.monotonic()
        await mesh.settled()
        row.healed = time.monotonic() - began


async def test_clock_is_ahead_by_a_minute(engine: Engine, typed: Typed, tmp_path: Path, table: Table) -> None:
    """One of three servers signs and leads with a clock that is ahead: proxies accept its certificates."""
    ahead = Ahead(typed, _clock_library(tmp_path))

    def commands(name: str) -> Commands:
        return ahead if name == "a" else typed

    async with running_mesh(engine, commands, tmp_path, str(envoys.program()), table) as mesh:
        first = mesh.replicas[0]
        assert _newest(first) - time.time() > AHEAD_SECONDS / 2, "the clock is not ahead"
        async with mesh.row("the clock of one server is ahead by a minute") as row:
            # Alone, so that this server takes the leadership from one with another clock, and serves all.
            await asyncio.gather(*(replica.kill() for replica in mesh.others(first)))
            began = time.monotonic()
            assert await until_led(mesh.replicas) is first
            row.note = f"leads after {time.monotonic() - began:.0f} s"
            await mesh.settled()
            await asyncio.gather(*(replica.start() for replica in mesh.replicas[1:]))
            began = time.monotonic()
            await mesh.settled()
            row.healed = time.monotonic() - began


def _newest(replica: Replica) -> float:
    """Return the time of the newest line of a log."""
    return datetime.fromisoformat(replica.running.log()[-1]["timestamp"]).timestamp()


@dataclass(frozen=True)
class Ahead(Commands):
    """Commands of which `serve` has a wall clock that is ahead."""

    typed: Typed
    library: Path

    def start(self, command: Command, stdout: IO[str], stderr: IO[str]) -> Process:
        """Start a command."""
        if command.arguments[0] != "serve":
            return self.typed.start(command, stdout, stderr)
        ahead = {**command.environment, "LD_PRELOAD": str(self.library), "GRPC_VERBOSITY": "NONE"}
        return Executed().start(Command(command.folder, command.arguments, ahead), stdout, stderr)


def _clock_library(folder: Path) -> Path:
    """Compile the library; skip the test if there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("a wall clock of its own needs a C compiler (cc)")
    source, library = folder / "clock.c", folder / "clock.so"
    source.write_text(_CLOCK)
    words = (
        compiler,
        "-shared",
        "-fPIC",
        f"-DAHEAD={AHEAD_SECONDS}",
        "-o",
        str(library),
        str(source),
        "-ldl",
    )
    subprocess.run(words, check=True)
    return library
