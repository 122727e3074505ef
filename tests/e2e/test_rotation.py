"""Service certificates of ten seconds are replaced under load, and no call is lost.

The short form is what `make test` runs; MESHWRIGHT_SOAK=long is the whole (`make soak-rotation`).
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
from tests.tools.deadline import until
from tests.tools.forked_cli import Executed
from tests.tools.program import Program

LONG: Final = os.environ.get("MESHWRIGHT_SOAK") == "long"
IDENTITIES: Final = 8 if LONG else 4
ROTATIONS: Final = int(os.environ.get("ROTATIONS") or 1000) if LONG else 12
LIFE: Final = timedelta(seconds=10)
SEEN_SHARE: Final = 0.8
"""So many of the certificates, at least, must have been seen: one serves for four seconds."""

pytestmark = [pytest.mark.envoy, pytest.mark.timeout(1200 if LONG else 300)]


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """The control plane's program; nothing of it runs afterwards."""
    made = Program(tmp_path / "state", tmp_path, Executed())
    yield made
    made.end()


async def test_no_call_is_lost_while_certificates_are_replaced(program: Program, envoy: str) -> None:
    """Each call is a new handshake between two sidecars; TLS clients look at what is shown meanwhile."""
    async with AsyncExitStack() as ends:
        config = f"certificate: {{serviceCertValidityDuration: {LIFE.seconds}s}}"
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
        assert spent > (len(ended) - 1) * LIFE / 4, f"{who} was renewed sooner than near the half of a life"


class Rotations:
    """What took the place of certificates that were there at the beginning, by identity."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._before = ring.issued()

    def made(self) -> dict[str, list[str]]:
        """Return their serials in order."""
        issued = self._ring.issued()
        return {who: [item for item in issued[who] if item not in self._before[who]] for who in issued}

    async def enough(self) -> bool:
        """Say whether there are as many as are asked for."""
        await asyncio.sleep(0.5)  # a log is read for each look
        return sum(map(len, self.made().values())) >= ROTATIONS

    async def last_seen(self, made: dict[str, list[str]]) -> bool:
        """Say whether of each identity the last of these, or a later one, has been seen."""
        now = self.made()
        return all(self._ring.seen[who].intersection(now[who][len(made[who]) - 1 :]) for who in made)


def in_turn(
    links: tuple[Link, ...], call: Callable[[Link], Awaitable[str]], pause: float
) -> Callable[[], Awaitable[str]]:
    """Return what calls for one link after the other, with a pause before each call."""
    turns = itertools.cycle(links)

    async def called() -> str:
        await asyncio.sleep(pause)
        return await call(next(turns))

    return called
