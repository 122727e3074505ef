"""`python -m tests.acceptance`: random manifests with fresh seeds, pushed to a real Envoy."""

import argparse
import asyncio
import logging
import secrets
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

import structlog

from tests.acceptance.manifest_pushes import Counts, try_case
from tests.golden.resource_receiver import start_receiver

SHOWN = 10


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(line + "\n")


def main() -> int:
    """Run, print the results, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="meshes [1000]")
    parser.add_argument("--seed", type=int, default=None, help="the first seed [a fresh one]")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    first = secrets.randbits(32) if given.seed is None else given.seed
    began = time.monotonic()
    counts = asyncio.run(_run(first, given.cases))
    for fault in counts.faults[:SHOWN]:
        say(f"FAULT: {fault}")
    say(
        f"{counts.cases} meshes, {counts.pushes} proxies, {counts.resources.total()} resources, "
        f"{len(counts.expressions)} expressions: {len(counts.faults)} faults "
        f"(seeds from {first}, {time.monotonic() - began:.0f} s)"
    )
    say("accepted: " + ", ".join(f"{kind} {counts.share(kind):.0%}" for kind in sorted(counts.written)))
    say("pushed: " + ", ".join(f"{name} {number}" for name, number in sorted(counts.held.items())))
    return int(bool(counts.faults))


async def _run(first: int, cases: int) -> Counts:
    async with AsyncExitStack() as ends:
        state = ends.enter_context(tempfile.TemporaryDirectory(prefix="acceptance-"))
        mesh = await start_receiver(Path(state), ends, drain_seconds=1)
        counts = Counts()
        for seed in range(first, first + cases):
            await try_case(mesh, seed, counts)
        return counts


if __name__ == "__main__":
    raise SystemExit(main())
