"""Tests of a proxy that requests as much as possible from the real program, beside honest proxies.

`make test` runs the short form; MESHWRIGHT_SOAK=long is the full form (`make soak-budgets`). The bounds on
connections (test_floods.py) are lifted, because they would stop most of the attack. Memory and delays are
printed. The assertions are about memory afterwards, the streams of honest proxies, and the named bounds.
"""

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import pytest

from meshwright.controller.process.memory import TRIM_SECONDS
from tests.soak.program import Honest, program
from tests.soak.requesters import Attacks
from tests.tools.deadline import until

LONG: Final = os.environ.get("MESHWRIGHT_SOAK") == "long"
SECONDS: Final = 20.0 if LONG else 3.0
LONGEST: Final = 60.0
OVER: Final = "client exceeded a limit"
MB: Final = 1024 * 1024
GROWTH: Final = 50 * MB
"""What whatever one proxy sends may leave behind."""
SLACK: Final = 0 if LONG else 25 * MB
"""In the short form, beside other tests, for what the allocator has not given back yet."""
STREAMS: Final = {"health": 100}
"""Streams at once, where it is not 8."""
BOUNDS: Final[Mapping[str, set[str]]] = {
    "too-large": set(),
    "small": set(),
    "health": {"streams"},
    "tiny": {"names", "bytes"},
    "types": {"field-bytes", "bytes"},
    "client-status": set(),
}
"""Which bounds may be named, where it is not those of what is asked for."""
REQUESTERS: Final = Path(__file__).with_name("requesters.py")
OPEN: Final = {
    "received_bytes_per_second": 2**30,
    "calls_at_once": 1_000_000,
    "calls_per_second": 1_000_000,
}
"""Settings without bounds on connections."""
UNBOUNDED: Final = {
    **OPEN,
    "streams_per_certificate": 1000,
    "types_per_certificate": 10_000,
    "names_per_certificate": 10_000_000,
    "bytes_per_certificate": 2**34,
    "loop_share": 1,
    "loop_burst_seconds": 60,
}
"""Settings without a budget either."""
KINDS: Final = sorted(Attacks("").kinds)
SHORT: Final = ("churn", "client-status", "large-sotw", "names")


@pytest.fixture
async def ends() -> AsyncIterator[AsyncExitStack]:
    """End the programs that a test started."""
    async with AsyncExitStack() as stack:
        yield stack


async def attacked(
    folder: Path, ends: AsyncExitStack, kind: str, settings: Mapping[str, object], *, bounded: bool
) -> tuple[int, set[str]]:
    """Attack a program; return its growth in the end and the bounds that it named.

    The attack lasts `SECONDS`, or longer on a slow machine, until a bound is named where one is expected.
    """
    served = await ends.enter_async_context(program(folder, (1024, 4096), **settings))
    honest = await Honest.begin(served, ends)
    before, highest = served.resident, 0
    sys.stderr.write(f"\n{kind}: before: {before / MB:.0f} MB, {honest.take()}")
    enough, end = asyncio.Event(), time.monotonic() + SECONDS
    work = served.attack(kind, STREAMS.get(kind, 8), LONGEST, "bad", program=REQUESTERS, enough=enough)
    attacking = asyncio.create_task(work, name=kind)
    while not attacking.done():
        if time.monotonic() > end and (not bounded or served.said(OVER)):
            enough.set()
        assert await served.get("/healthz/live") == (200, "alive\n")
        honest.check()
        highest = max(highest, served.resident)
        await asyncio.sleep(0.05)
    did = await attacking
    delays = honest.take()
    await honest.served()
    with contextlib.suppress(TimeoutError):  # what is free is given back from time to time
        await until(lambda: served.resident - before < GROWTH, 2 * TRIM_SECONDS)
    grown = served.resident - before
    sys.stderr.write(
        f"\n{kind}: at most {(highest - before) / MB:+.0f} MB, then {grown / MB:+.0f} MB, {delays}; {did}"
    )
    return grown, {item["bound"] for item in served.said(OVER)}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", KINDS if LONG else SHORT)
async def test_greedy_proxy_is_bounded_in_memory_and_harms_no_other_proxy(
    tmp_path: Path, ends: AsyncExitStack, kind: str
) -> None:
    """Memory stays within the bound, all others are served, and each exceeded bound is named."""
    expected = BOUNDS.get(kind, {"bytes", "names", "types"})
    grown, bounds = await attacked(tmp_path, ends, kind, OPEN, bounded=bool(expected))

    assert grown < GROWTH + SLACK
    assert bounds <= expected
    assert bool(bounds) == bool(expected)


@pytest.mark.timeout(120)
async def test_memory_grows_without_a_budget(tmp_path: Path, ends: AsyncExitStack) -> None:
    """Without bounds, the resources that a client claims to hold grow the program far beyond.

    This is the negative control.
    """
    served = await ends.enter_async_context(program(tmp_path, (1024, 4096), **UNBOUNDED))
    before = served.resident
    work = served.attack("held", 8, 60.0, "bad", program=REQUESTERS)
    attacking = asyncio.create_task(work, name="held")
    try:
        await until(lambda: served.resident - before > 2 * GROWTH, 60.0)
        assert not attacking.done()
    finally:
        attacking.cancel()
        await asyncio.gather(attacking, return_exceptions=True)
    assert served.said(OVER) == []
