"""Run targets of the Makefile side by side, and print their seconds, their CPU time and the slowest tests.

    python3 tools/steps.py lint,fast+types verified+test-programs

An argument is a stage, and stages run one after the other. `+` separates the lanes of a stage, which run
side by side; `,` separates the targets of a lane, which run one after the other. The example runs `lint` and
then `fast` beside `types`, and when all three have passed `verified` beside `test-programs`.

The output of a target is printed whole when the target ends. A target that fails ends its lane; the other
lanes of the stage go on, and later stages are left out. The exit status is 0 if every target passed,
otherwise 1. With `--keep-going` as the first argument, later stages run after a failure too.

A target finds in the variable MESHWRIGHT_TIMES a folder for JUnit files, from which the slowest tests are
read. This file needs the standard library alone, because it also runs the targets that install everything
else.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final
from xml.etree import ElementTree

TIMES: Final = "MESHWRIGHT_TIMES"
SLOWEST: Final = 30
_OF_THE_CALLER: Final = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")

Lane = tuple[str, ...]
Stage = tuple[Lane, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a Makefile target: the exit status, the seconds, and its processes' seconds of CPU time.

    Processes that nothing waited for, such as orphans, are not in the CPU time.
    """

    target: str
    status: int
    seconds: float
    cpu: float


@dataclass(frozen=True, slots=True)
class SlowTest:
    """A test, and its seconds with setup and teardown."""

    seconds: float
    name: str


Run = Callable[[str], Result]


def parse(stages: Iterable[str]) -> tuple[Stage, ...]:
    """Return the stages of Makefile targets in arguments such as `lint,fast+types`.

    Raises ValueError for an empty name.
    """
    result = tuple(tuple(tuple(lane.split(",")) for lane in stage.split("+")) for stage in stages)
    for stage, text in zip(result, stages, strict=True):
        if not all(target for lane in stage for target in lane):
            raise ValueError(f"stage {text!r} has an empty target: write TARGET,TARGET+TARGET")
    return result


def run_stages(stages: Iterable[Stage], run: Run, *, keep_going: bool = False) -> tuple[Result, ...]:
    """Run stages until one has a target that fails, or all of them; return the results in the order given."""
    results: list[Result] = []
    for stage in stages:
        with ThreadPoolExecutor(len(stage), thread_name_prefix="lane") as pool:
            lanes = list(pool.map(lambda lane: _run_lane(lane, run), stage))
        results += [result for lane in lanes for result in lane]
        if not keep_going and any(result.status for result in results):
            break
    return tuple(results)


def _run_lane(lane: Lane, run: Run) -> tuple[Result, ...]:
    results: list[Result] = []
    for target in lane:
        results.append(run(target))
        if results[-1].status:
            break
    return tuple(results)


def slowest(reports: Iterable[str], count: int = SLOWEST) -> tuple[SlowTest, ...]:
    """Return the slowest tests in JUnit reports, the slowest first."""
    slow_tests = [
        SlowTest(
            float(case.get("time", 0)), f"{case.get('classname', '').replace('.', '/')}::{case.get('name')}"
        )
        for report in reports
        for case in ElementTree.fromstring(report).iter("testcase")  # noqa: S314 - written by our own pytest
    ]
    return tuple(sorted(slow_tests, key=lambda test: (-test.seconds, test.name))[:count])


def table(results: Sequence[Result], tests: Sequence[SlowTest], whole: float) -> str:
    """Return the table of targets and slowest tests that ends a run; `whole` is the run's seconds."""
    lines = ["", "seconds      CPU  step"]
    lines += [
        f"{each.seconds:7.0f}  {each.cpu:7.0f}  {each.target}{' FAILED' if each.status else ''}"
        for each in results
    ]
    lines += [f"{whole:7.0f}  {sum(each.cpu for each in results):7.0f}  from start to end"]
    if tests:
        lines += ["", f"seconds  the {len(tests)} slowest tests"]
        lines += [f"{test.seconds:7.1f}  {test.name}" for test in tests]
    return "\n".join(lines)


class MakeTarget:
    """Runner of one Makefile target, which prints the output when the target ends."""

    def __init__(self, times: Path) -> None:
        self._environment = environment(os.environ, times)
        self._printing = Lock()

    def __call__(self, target: str) -> Result:
        """Run a Makefile target to its end."""
        began = time.monotonic()
        self._print(f"--- {target} begins")
        with tempfile.TemporaryFile() as output:
            command = ["make", "--no-print-directory", target]
            process = subprocess.Popen(
                command, env=self._environment, stdout=output, stderr=output, stdin=subprocess.DEVNULL
            )
            # Popen.wait() discards the CPU time.
            _, ended, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(ended)
            cpu = usage.ru_utime + usage.ru_stime
            result = Result(target, process.returncode, time.monotonic() - began, cpu)
            output.seek(0)
            text = output.read().decode("utf-8", "replace")
        verdict = "passed" if not result.status else f"FAILED with status {result.status}"
        self._print(f"{text.rstrip()}\n--- {target} {verdict} in {result.seconds:.0f} s".lstrip("\n"))
        return result

    def _print(self, text: str) -> None:
        with self._printing:
            print(text, flush=True)


def environment(variables: Mapping[str, str], times: Path) -> dict[str, str]:
    """Return the variables of a target: the caller's without those of make, and the folder of reports."""
    kept = {name: value for name, value in variables.items() if name not in _OF_THE_CALLER}
    return {**kept, TIMES: str(times)}


def main() -> None:
    """Run the stages of Makefile targets in the command line."""
    keep_going = sys.argv[1:2] == ["--keep-going"]
    try:
        stages = parse(sys.argv[2 if keep_going else 1 :])
    except ValueError as error:
        sys.exit(f"steps: {error}")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="meshwright-times-") as folder:
        results = run_stages(stages, MakeTarget(Path(folder)), keep_going=keep_going)
        tests = slowest(report.read_text("utf-8") for report in sorted(Path(folder).glob("*.xml")))
    print(table(results, tests, time.monotonic() - began), flush=True)
    sys.exit(any(result.status for result in results))


if __name__ == "__main__":
    main()
