"""`python -m tests.differential`: fresh policies against real Envoys, compared with the oracle."""

import argparse
import asyncio
import logging
import secrets
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import structlog

from tests.differential import first_match
from tests.differential.cases import ROUTED
from tests.differential.comparison import run, shrunk
from tests.differential.counts import Counts
from tests.differential.running_mesh import DifferentialMesh

SHOWN = 3
MOST_ROUTED = 0.5


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(line + "\n")


def main() -> int:
    """Run, print the results, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--cases", type=int, default=200, help="policies [200]")
    parser.add_argument("--requests", type=int, default=12, help="requests for each policy [12]")
    parser.add_argument(
        "--routed", type=float, default=ROUTED, help=f"share of policies with routes [{ROUTED}]"
    )
    parser.add_argument("--seed", type=int, default=None, help="seed [a fresh one]")
    parser.add_argument("--first-match", action="store_true", help="translate wrongly, to see it found")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    seed = secrets.randbits(32) if given.seed is None else given.seed
    began = time.monotonic()
    counts = asyncio.run(_run(seed, given))
    for disagreement in counts.disagreements[:SHOWN]:
        say(f"DISAGREEMENT: {disagreement}\n")
    for disagreement in counts.disagreements[SHOWN:]:
        say(f"DISAGREEMENT: {str(disagreement).partition(', under')[0]}")
    say(
        f"{counts.policies} policies, {counts.requests} requests, "
        f"{len(counts.disagreements)} disagreements (seed {seed}, {time.monotonic() - began:.0f} s)"
    )
    shares = counts.shares
    answers = ", ".join(f"{answer} {number}" for answer, number in sorted(counts.answers.items()))
    say(", ".join(f"{name} {share:.0%}" for name, share in shares.items()))
    say(f"answers: {answers}; {counts.direct} more requests straight to a server's sidecar")
    say(f"decided by routes: {_listed(counts.by_kind)}")
    say(f"of these also compared: {_listed(counts.effects)}")
    # The floors are for policies of all kinds, so they do not hold for routes alone.
    too_few = counts.too_few if given.routed <= MOST_ROUTED else {}
    return int(bool(counts.disagreements or too_few))


def _listed(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in sorted(numbers.items())) or "none"


async def _run(seed: int, given: argparse.Namespace) -> Counts:
    async with AsyncExitStack() as ends:
        state = ends.enter_context(tempfile.TemporaryDirectory(prefix="differential-"))
        mesh = await DifferentialMesh.start(Path(state), ends)
        if given.first_match:
            mesh.translate = first_match.translate
        counts = await run(mesh, seed, given.cases, given.requests, given.routed)
        first = counts.disagreements[:SHOWN]
        counts.disagreements[:SHOWN] = [await shrunk(mesh, disagreement) for disagreement in first]
        if text := await mesh.complaints():
            raise SystemExit(f"an Envoy complains: {text}")
        return counts


if __name__ == "__main__":
    raise SystemExit(main())
