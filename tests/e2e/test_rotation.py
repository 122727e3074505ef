"""Test of service certificates valid for ten seconds, which are replaced under load without a lost call.

`make test` runs the short form; MESHWRIGHT_SOAK=long is the full form (`make soak-rotation`).
"""

import asyncio
import itertools
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.policy.calls import load
from tests.e2e.ring import ANSWERED, Link, Ring
from tests.tools.deadline import slowness, until
from tests.tools.forked_cli import Executed
from tests.tools.program import Program

LONG: Final = os.environ.get("MESHWRIGHT_SOAK") == "long"
IDENTITIES: Final = 8 if LONG else 4
ROTATIONS: Final = int(os.environ.get("ROTATIONS") or 1000) if LONG else 12
LIFE: Final = timedelta(seconds=10)
MOST_LIFE: Final = timedelta(seconds=30)
SEEN_SHARE: Final = 0.8
"""So many of the certificates, at least, must have been seen: one serves for four seconds."""

pytestmark = [pytest.mark.envoy, pytest.mark.timeout(1200 if LONG else 300)]


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """The control plane's program, which is ended after the test."""
    made = Program(tmp_path / "state", tmp_path, Executed())
    yield made
    made.end()


async def test_certificate_rotation_under_load_loses_no_call(program: Program, envoy: str) -> None:
    """Every call succeeds while the certificates of all identities are replaced many times.

    Each call is a new handshake between two sidecars, and TLS clients record the serials that sidecars
    present. On a busy machine certificates live longer in the short form, because the control plane has half
    of a life to replace one.
    """
    life = LIFE if LONG else min(timedelta(seconds=round(LIFE.total_seconds() * slowness())), MOST_LIFE)
    async with AsyncExitStack() as ends:
        config = f"certificate: {{serviceCertValidityDuration: {life.seconds}s}}"
        ring = await Ring.start(IDENTITIES, config, program, envoy, ends)
        await until(ring.all_answer, 120)
        rotations, began = Rotations(ring), time.monotonic()
        stats = "ssl.handshake", "upstream_cx_connect_fail"
        first = [await ring.count(stat) for stat in stats]
        async with (
            load(in_turn(ring.links, ring.call, 0.05), concurrency=8) as calls,
            load(in_turn(ring.links, ring.look, 0.05), concurrency=1) as looks,
        ):
            await until(rotations.enough, 1080 if LONG else 120)
            made = rotations.made()
            await until(lambda: rotations.last_seen(made))
        seconds = time.monotonic() - began
        handshakes, not_connected = [
            await ring.count(stat) - then for stat, then in zip(stats, first, strict=True)
        ]
    every = calls.every + looks.every
    sent, seen = every.total(), sum(len(ring.seen[who].intersection(made[who])) for who in made)
    issued = sum(map(len, made.values()))
    sys.stdout.write(
        f"{IDENTITIES} identities, {seconds:.0f} s: {sent} sent ({sent / seconds:.0f} a second), "
        f"{sent - every[ANSWERED]} failed {dict(every)}; {handshakes} handshakes between sidecars; "
        f"{issued} rotations, {seen} of their serials seen\n"
    )
    assert set(every) == {ANSWERED}, every
    assert not_connected == 0  # nor was a second try what answered
    assert handshakes >= calls.every.total()
    assert issued >= seen >= SEEN_SHARE * issued
    for who, ended in ring.issued().items():
        assert set(ring.seen[who]) <= set(ended)
        spent = max(ended.values()) - min(ended.values())
        assert spent > (len(ended) - 1) * life / 4, f"{who} was renewed sooner than near the half of a life"


class Rotations:
    """Certificates issued after the start, by identity."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._before = ring.issued()

    def made(self) -> dict[str, list[str]]:
        """Return the serials of the new certificates, in order."""
        issued = self._ring.issued()
        return {who: [item for item in issued[who] if item not in self._before[who]] for who in issued}

    async def enough(self) -> bool:
        """Return whether the required number of certificates was issued."""
        await asyncio.sleep(0.5)  # a log is read for each look
        return sum(map(len, self.made().values())) >= ROTATIONS

    async def last_seen(self, made: dict[str, list[str]]) -> bool:
        """Return whether each identity has presented the last of these certificates or a later one."""
        now = self.made()
        return all(self._ring.seen[who].intersection(now[who][len(made[who]) - 1 :]) for who in made)


def in_turn(
    links: tuple[Link, ...], call: Callable[[Link], Awaitable[str]], pause: float
) -> Callable[[], Awaitable[str]]:
    """Return a function that calls for one member after the other, with a pause before each call."""
    turns = itertools.cycle(links)

    async def called() -> str:
        await asyncio.sleep(pause)
        return await call(next(turns))

    return called
