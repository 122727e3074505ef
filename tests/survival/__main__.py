"""`python -m tests.survival`: an endpoint fails under load; prints lost requests and durations as a table."""

import argparse
import asyncio
import itertools
import json
import logging
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import structlog

from benchmarks.figures import results
from tests.survival.failing_endpoint import Defaults, Fault, Outcome, measured
from tests.tools.envoy import program

_INSIDE = "MESHWRIGHT_SURVIVAL_NETWORK"


def main() -> int:
    """Measure all chosen cases in a separate network namespace."""
    parser = argparse.ArgumentParser(prog="python -m tests.survival", description=__doc__)
    parser.add_argument("--endpoints", type=int, nargs="+", default=[2, 3, 10])
    parser.add_argument("--fault", nargs="+", choices=[*Fault], default=[*Fault])
    parser.add_argument("--defaults", nargs="+", choices=[*Defaults], default=[*Defaults])
    parser.add_argument("--seconds", type=float, default=15, help="looked on after the fault [15]")
    parser.add_argument("--output", type=Path, default=None, help="JSON [benchmarks/results/survives.json]")
    given = parser.parse_args()
    if _INSIDE not in os.environ:
        inside = 'ip link set lo up; exec "$@"'
        command = ["unshare", "--net", "sh", "-c", inside, "sh", sys.executable, "-m", "tests.survival"]
        return subprocess.run(
            [*command, *sys.argv[1:]], check=False, env=os.environ | {_INSIDE: "1"}
        ).returncode
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    envoy = program()
    assert envoy is not None, "there is no Envoy"
    os.environ["MESHWRIGHT_ENVOY"] = envoy
    result: dict[str, dict[str, object]] = {}
    for fault, endpoints, defaults in itertools.product(given.fault, given.endpoints, given.defaults):
        outcome = asyncio.run(measured(Defaults(defaults), Fault(fault), endpoints, given.seconds))
        result[results.name(fault, endpoints, defaults)] = asdict(outcome)
        _say(fault, endpoints, defaults, outcome, given.seconds)
    path = results.place("survives", given.output, quick=given.output is None and given.seconds < 15)
    results.write(path, results.machine(), _values(result), outcomes=result)
    return 0


def _say(fault: str, endpoints: int, defaults: str, found: Outcome, seconds: float) -> None:
    healed = "never failed" if found.last is None else f"last failed after {found.last} s of {seconds:.0f}"
    sys.stdout.write(
        f"{fault:20} {endpoints:3} endpoints  {defaults:10} {found.failed:5} of {found.requests:5} failed, "
        f"{found.slow:4} slow; {healed}\n"
    )
    sys.stdout.flush()


def _values(result: dict[str, dict[str, object]]) -> results.Values:
    return {f"{name}/failed": json.loads(json.dumps(item["failed"])) for name, item in result.items()}


if __name__ == "__main__":
    sys.exit(main())
