"""Tests of attacks on the listener of the real program, from outside, beside honest proxies.

`make test` runs the short form; MESHWRIGHT_SOAK=long is the full form (`make soak-floods`). Figures are
printed; the assertions are about counts. tests/feature/xds/test_connection_bounds.py shows that the attacks
are effective without the bounds.
"""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.soak.program import Honest, Program, program

LONG = os.environ.get("MESHWRIGHT_SOAK") == "long"
SECONDS = 20.0 if LONG else 3.0
EVER = 10**9
MB = 1024 * 1024
GROWTH = (200 if LONG else 100) * MB


@dataclass
class Watched:
    """The program and its honest clients, before, during and after an attack."""

    program: Program
    honest: Honest
    resident: int = 0
    lines: int = 0
    descriptors: int = 0
    seconds: float = 0.0
    """How long the attack went on."""

    @property
    def calls(self) -> float:
        """The maximum number of calls that one certificate may begin meanwhile, with a reserve."""
        return 100 + 10 * (self.seconds + 5)

    async def attack(
        self, kind: str, count: int, seconds: float, name: str = "service", port: int = 0
    ) -> dict[str, int]:
        """Attack; health must respond meanwhile, and in the end everyone must still be served."""
        self.resident, self.lines = self.program.resident, self._lines()
        self._print(kind, "before")
        began = time.monotonic()
        attacking = asyncio.create_task(self.program.attack(kind, count, seconds, name, port), name=kind)
        while not attacking.done():
            assert await self.program.get("/healthz/live") == (200, "alive\n")
            self.descriptors = max(self.descriptors, self.program.descriptors)
            self.honest.check()
            await asyncio.sleep(0.05)
        did = await attacking
        self.seconds = time.monotonic() - began
        self._print(kind, f"during {did}, at most {self.descriptors} descriptors")
        await self.honest.served()
        assert self.program.resident - self.resident < GROWTH
        # Two lines for each call; not one for each connection, frame or handshake.
        assert self._lines() - self.lines < 20 + 2 * self.calls
        return did

    def _lines(self) -> int:
        """Return the number of log lines, without those about served streams."""
        served = sum(len(self.program.said(f"stream {what}")) for what in ("opened", "closed"))
        return self.program.lines - served

    def _print(self, kind: str, when: str) -> None:
        resident, lines = self.program.resident / MB, self._lines() - self.lines
        sys.stderr.write(f"\n{kind}: {when}: {resident:.0f} MB, +{lines} lines, {self.honest.take()}")


@pytest.fixture
async def ends() -> AsyncIterator[AsyncExitStack]:
    """End the programs that a test started."""
    async with AsyncExitStack() as stack:
        yield stack


async def watched(folder: Path, ends: AsyncExitStack, descriptors: tuple[int, int] = (256, 4096)) -> Watched:
    """Start the program with a soft and a hard limit of descriptors, and its honest clients."""
    served = await ends.enter_async_context(program(folder, descriptors))
    return Watched(served, await Honest.begin(served, ends))


@pytest.mark.parametrize(
    ("descriptors", "there", "silent"),
    [
        pytest.param((256, 4096), 1100, 480, id="raised"),
        pytest.param((1024, 1024), 768, 96, id="few", marks=pytest.mark.nightly),
    ],
)
async def test_silent_connections_do_not_block_other_clients(
    tmp_path: Path, ends: AsyncExitStack, descriptors: tuple[int, int], there: int, silent: int
) -> None:
    """Of 1100 connections, `there` are accepted and only `silent` may stay, for five seconds.

    Too few descriptors are reported. If the machine stalls, gRPC ends the connections itself, and the attack
    is repeated.
    """
    served = await watched(tmp_path, ends, descriptors)
    ended, before, least = 0.0, 0.0, there - silent - 50
    for _ in range(3):
        did = await served.attack("silent", 1100, 20.0)
        assert did == {"done": 1100, "connections": 1100, "ended": 1100}
        assert served.descriptors <= descriptors[1] * 3 // 4 + 100
        ((cause, whole),) = (await served.program.ended()).items()
        assert cause == "too-many-idle"
        ended, before = whole - before, whole
        if ended >= least:
            break
    assert least <= ended <= 1100
    few = (
        "the limit of file descriptors is 1024, at least 4096 are needed: "
        "raise it (ulimit -n), because proxies beyond the limit are refused"
    )
    answer = [item["detail"] for item in served.program.said("file descriptor limit is low")]
    assert answer == ([few] if descriptors[1] < 4096 else [])
    remarks = "".join(f"but: {item}\n" for item in answer)
    assert await served.program.get("/healthz/ready") == (200, f"ready\n{remarks}")


async def test_silent_connections_to_the_http_pages_do_not_block_new_ones(
    tmp_path: Path, ends: AsyncExitStack
) -> None:
    """For health, metrics and the pages, the oldest connections are ended and the newest is served."""
    served = await watched(tmp_path, ends, (1024, 1024))
    did = await served.attack("silent", 1100, 3.0, port=int(served.program.http.rpartition(":")[2]))

    assert did["ended"] >= 100
    assert served.descriptors < 512


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("resets", "bad"),
        pytest.param("resets", "service", marks=pytest.mark.nightly),
        pytest.param("late-resets", "bad", marks=pytest.mark.nightly),
        ("late-resets", "service"),
    ],
)
async def test_rapid_resets_end_their_connection(
    tmp_path: Path, ends: AsyncExitStack, kind: str, name: str
) -> None:
    """This holds for every certificate and again after a reconnection. No other stream is cancelled."""
    served = await watched(tmp_path, ends)
    did = await served.attack(kind, EVER, SECONDS, name)

    ended = await served.program.ended()
    assert did["ended"] >= 1
    assert ended.keys() <= {"too-many-calls", "too-many-bytes"}
    assert sum(ended.values()) >= did["ended"] - 1
    assert len(served.program.said("stream refused")) <= served.calls


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("garbage", marks=pytest.mark.nightly),
        "handshakes",
        pytest.param("pings", marks=pytest.mark.nightly),
        pytest.param("settings", marks=pytest.mark.nightly),
        "continuations",
        pytest.param("empty-data", marks=pytest.mark.nightly),
    ],
)
async def test_floods_of_tls_and_http2_frames_are_withstood(
    tmp_path: Path, ends: AsyncExitStack, kind: str
) -> None:
    """Honest clients stay served, and the attacker does not cause a log line for each of its actions."""
    served = await watched(tmp_path, ends)
    did = await served.attack(
        kind, 2_000 if kind in ("garbage", "handshakes") and not LONG else EVER, SECONDS
    )

    assert did["done"] >= 200
