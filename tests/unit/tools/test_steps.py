"""Tests of the runner of CI steps: parallel lanes, failures, and the final table."""

import sys
from pathlib import Path
from threading import Barrier

import pytest

from tools.steps import MakeTarget, Result, SlowTest, environment, parse, run_stages, slowest, table

REPORT = """<testsuites><testsuite>
<testcase classname="tests.unit.test_a" name="test_one[x]" time="0.5"/>
<testcase classname="tests.unit.test_a" name="test_two" time="2.25"/>
</testsuite></testsuites>"""
OTHER = '<testsuites><testcase classname="tests.e2e.b" name="test_b" time="1"/></testsuites>'


def passed(target: str) -> Result:
    """Return the result of a target that passes at once."""
    return Result(target, 0, 1.0, 0.5)


def test_stages_lanes_and_targets_are_parsed() -> None:
    """Stages are separate arguments; `+` separates lanes and `,` separates targets."""
    assert parse(["lint,fast+types", "test-node"]) == ((("lint", "fast"), ("types",)), (("test-node",),))


@pytest.mark.parametrize("stage", ["", "a,", "a++b", "+a"])
def test_empty_target_is_refused(stage: str) -> None:
    """A typing error must not leave out a step."""
    with pytest.raises(ValueError, match="has an empty target"):
        parse([stage])


def test_lanes_of_a_stage_run_in_parallel() -> None:
    """Each lane alone would time out at the barrier."""
    barrier = Barrier(2, timeout=30)

    def run(target: str) -> Result:
        barrier.wait()
        return passed(target)

    assert run_stages(parse(["a+b"]), run) == (passed("a"), passed("b"))


def test_failure_ends_its_lane_and_skips_later_stages() -> None:
    """The other lane of the stage continues; with `keep_going` the later stages run too."""

    def run(target: str) -> Result:
        return Result(target, int(target == "bad"), 1.0, 0.5)

    stages = parse(["bad,after+good,last", "later"])
    results = [(run_stage.target, run_stage.status) for run_stage in run_stages(stages, run)]
    assert results == [("bad", 1), ("good", 0), ("last", 0)]
    kept_going = [
        (run_stage.target, run_stage.status) for run_stage in run_stages(stages, run, keep_going=True)
    ]
    assert kept_going == [*results, ("later", 0)]


def test_slowest_tests_of_all_reports_are_listed_first() -> None:
    """The reports of all steps are combined, and only the requested number is listed."""
    assert slowest([REPORT, OTHER], 2) == (
        SlowTest(2.25, "tests/unit/test_a::test_two"),
        SlowTest(1.0, "tests/e2e/b::test_b"),
    )


def test_table_lists_every_step_and_marks_failures() -> None:
    """The seconds are the first column, so that lines can be sorted."""
    results = [Result("lint", 0, 4.4, 8.0), Result("fast", 1, 90.6, 171.4)]
    printed = table(results, [SlowTest(2.25, "a::b")], 95.0)
    assert printed.splitlines() == [
        "",
        "seconds      CPU  step",
        "      4        8  lint",
        "     91      171  fast FAILED",
        "     95      179  from start to end",
        "",
        "seconds  the 1 slowest tests",
        "    2.2  a::b",
    ]


def test_target_gets_a_report_folder_and_no_flags_of_the_calling_make() -> None:
    """With the flags of a parallel make the inner make would wait for its jobs."""
    assert environment({"PATH": "/bin", "MAKEFLAGS": "-j4", "MAKELEVEL": "1"}, Path("/times")) == {
        "PATH": "/bin",
        "MESHWRIGHT_TIMES": "/times",
    }


def test_output_of_a_target_is_printed_with_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The test runs a real make with its own Makefile."""
    (tmp_path / "Makefile").write_text("good: ; @echo well done\nbad: ; @echo badly >&2; exit 3\n")
    monkeypatch.chdir(tmp_path)
    make = MakeTarget(tmp_path)
    assert [make(target).status for target in ("good", "bad")] == [0, 2]
    lines = capfd.readouterr().out.splitlines()
    assert lines[:3] == ["--- good begins", "well done", "--- good passed in 0 s"]
    assert lines[3:5] == ["--- bad begins", "badly"]
    assert lines[-1].startswith("--- bad FAILED with status 2 in ")


def test_cpu_time_of_a_target_has_that_of_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that computes has more than one that sleeps, however busy the machine is."""
    count = f"{sys.executable} -c 'import time; all(time.process_time() < 0.3 for _ in iter(int, 1))'"
    (tmp_path / "Makefile").write_text(f"busy: ; @{count}\nidle: ; @sleep 0.1\n")
    monkeypatch.chdir(tmp_path)
    make = MakeTarget(tmp_path)
    assert make("busy").cpu >= 0.3 > make("idle").cpu
