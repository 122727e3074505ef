"""Tests of problems from several reporters: each is listed, logged and counted once."""

import random
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from catalog.lint.codes import Code
from meshwright.delivery.problems import AllProblems
from meshwright.mesh.kinds import GATEWAY, WORKLOAD
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import InFile
from meshwright.mesh.problems.problem import Problem, Severity, ordered


def _problem(number: int, severity: Severity = Severity.ERROR) -> Problem:
    return Problem(code=f"MW{number}", severity=severity, origin=InFile("a.yaml"), expected="look")


ONE, TWO, THREE = _problem(1), _problem(2, Severity.WARNING), _problem(3, Severity.INFO)


def _logged(problems: AllProblems) -> tuple[bool, list[str]]:
    with capture_logs() as lines:
        other = problems.log()
    return other, [line["code"] for line in lines if line["event"] == "problem"]


def test_problem_of_several_reporters_is_listed_once_until_all_drop_it() -> None:
    """Problems are sorted and counted, and two reads without a change return the same object."""
    problems = AllProblems()
    problems.report_lint([("a", (TWO, ONE)), ("b", (ONE,))])
    assert problems.all() == (ONE, TWO)
    assert problems.all() is problems.all()
    problems.report_lint([("a", (TWO,))])
    assert problems.all() == (ONE, TWO)
    problems.report_lint([("b", ())])
    assert problems.all() == (TWO,)
    assert problems.counts() == {"error": 0, "warning": 1, "info": 0}


def test_new_problem_is_logged_once() -> None:
    """A problem that moves to another reporter, or appears and vanishes between two logs, is not logged."""
    problems = AllProblems()
    problems.report("lint", "a", (TWO, ONE))
    assert _logged(problems) == (True, ["MW1", "MW2"])
    problems.report("lint", "a", ())
    problems.report("proxies", "b", (ONE, TWO))
    assert _logged(problems) == (False, [])
    problems.report("proxies", "b", (ONE,))
    assert _logged(problems) == (True, [])
    problems.report("proxies", "b", (ONE, TWO, THREE))
    problems.report("proxies", "b", (ONE, TWO))
    assert _logged(problems) == (True, ["MW2"])


def test_resolved_problem_is_logged_once_when_its_last_reporter_drops_it() -> None:
    """The line has the problem's text and code. Problems of sources are left out; sources log them."""
    problems = AllProblems()
    problems.of_sources({"directory": (THREE,)})
    problems.report("lint", "a", (TWO, ONE))
    problems.report("proxies", "b", (ONE,))
    problems.log()
    problems.report("lint", "a", ())
    problems.of_sources({"directory": ()})
    with capture_logs() as lines:
        problems.log()
        problems.log()
    assert [(line["event"], line["code"], line["problem"]) for line in lines] == [
        ("problem resolved", "MW2", str(TWO))
    ]
    problems.report("proxies", "b", ())
    with capture_logs() as lines:
        problems.log()
    assert [line["problem"] for line in lines] == [str(ONE)]


def test_problem_of_a_source_is_not_logged_while_the_source_reports_it() -> None:
    """Another reporter's copy is silent as long, because the source logs the problem itself."""
    problems = AllProblems()
    problems.of_sources({"directory": (ONE,), "dns": ()})
    problems.report("between sources", None, (ONE, TWO))
    assert _logged(problems) == (True, ["MW2"])
    problems.of_sources({"directory": ()})
    problems.report("between sources", None, ())
    assert _logged(problems) == (True, [])
    problems.report("between sources", None, (ONE,))
    assert _logged(problems) == (True, ["MW1"])


def test_problem_found_again_after_forget_is_not_logged_again() -> None:
    """A failed wave forgets all problems, and the next one finds them from scratch."""
    problems = AllProblems()
    problems.report_lint([("a", (ONE,))])
    assert _logged(problems) == (True, ["MW1"])
    problems.forget()
    problems.report_lint([("a", (ONE,))])
    assert _logged(problems) == (False, [])


@pytest.mark.parametrize("seed", range(10))
def test_incremental_problems_equal_problems_from_scratch(seed: int) -> None:
    """After random reports the list, the counts and the logged problems equal a recomputation."""
    chance = random.Random(seed)  # noqa: S311 - dice
    problems, answer, before = AllProblems(), dict[tuple[str, int], tuple[Problem, ...]](), set[Problem]()
    for _ in range(60):
        for _ in range(chance.randint(0, 3)):
            who, of = chance.choice(("lint", "proxies", "sources")), chance.randint(0, 3)
            answer[who, of] = tuple(chance.sample((ONE, TWO, THREE), chance.randint(0, 3)))
            problems.report(who, of, answer[who, of])
        now = {problem for result in answer.values() for problem in result}
        silent = {problem for (who, _), result in answer.items() if who == "sources" for problem in result}
        other, logged = _logged(problems)
        assert other is (now != before)
        assert logged == [problem.code for problem in ordered(now - before - silent)]
        assert problems.all() == ordered(now)
        assert list(problems.counts().values()) == [
            sum(p.severity is severity for p in now) for severity in Severity
        ]
        before = now


def test_follower_gets_the_net_changes_since_its_last_take() -> None:
    """The first `take` returns all problems; later ones omit problems that appeared and vanished."""
    problems = AllProblems()
    problems.report("wave", None, (ONE,))
    moves = problems.follow()
    assert moves.take() == {ONE: True}
    assert moves.take() == {}
    problems.report("wave", None, (TWO,))
    problems.report("proxies", None, (THREE,))
    problems.report("proxies", None, ())
    problems.report("lint", "a", (TWO,))
    assert moves.take() == {ONE: False, TWO: True}
    problems.forget()
    problems.report("wave", None, (TWO,))
    assert moves.take() == {}


def test_refused_gateway_is_not_listed_as_a_missing_one() -> None:
    """The problem of the workload names the problem of the Gateway, while there is one."""
    all_problems = AllProblems()
    gateway, workload = (ObjectKey(kind, Namespace("shop"), "front") for kind in (GATEWAY, WORKLOAD))
    error = replace(ONE, code="MW1013", key=gateway, field="spec.f", expected="must be y")
    lint = replace(
        ONE,
        code=Code.UNKNOWN_GATEWAY,
        key=workload,
        field="spec.gateway",
        value="front",
        expected="Gateway shop/front does not exist, so this workload serves nothing. Create it.",
    )
    all_problems.report("lint", workload, (lint,))
    assert all_problems.all() == (lint,)
    all_problems.of_sources({"files": (error,)})
    refused = "Gateway shop/front exists, but is refused, so this workload serves nothing."
    corrected = replace(lint, expected=f"{refused} Correct the Gateway: MW1013 spec.f: must be y")
    assert set(all_problems.all()) == {error, corrected}
    all_problems.of_sources({"files": ()})
    assert all_problems.all() == (lint,)
