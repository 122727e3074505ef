"""What is wrong, said by several: each once, logged once, and counted as it comes and goes."""

import random

import pytest
from structlog.testing import capture_logs

from meshwright.delivery.problems import AllProblems
from meshwright.mesh.origins import InFile
from meshwright.mesh.problems.problem import Problem, Severity, ordered


def _problem(number: int, severity: Severity = Severity.ERROR) -> Problem:
    return Problem(code=f"MW{number}", severity=severity, origin=InFile("a.yaml"), expected="look")


ONE, TWO, THREE = _problem(1), _problem(2, Severity.WARNING), _problem(3, Severity.INFO)


def _logged(problems: AllProblems) -> tuple[bool, list[str]]:
    with capture_logs() as lines:
        other = problems.log()
    return other, [each["code"] for each in lines if each["event"] == "problem"]


def test_what_several_say_is_one_problem_until_none_says_it() -> None:
    """Sorted, and the very same as long as nothing is other."""
    problems = AllProblems()
    problems.found([("a", (TWO, ONE)), ("b", (ONE,))])
    assert problems.all() == (ONE, TWO)
    assert problems.all() is problems.all()
    problems.found([("a", (TWO,))])
    assert problems.all() == (ONE, TWO)
    problems.found([("b", ())])
    assert problems.all() == (TWO,)
    assert problems.counts() == {"error": 0, "warning": 1, "info": 0}


def test_what_is_new_is_logged_once() -> None:
    """Not what stood before, whoever says it now, and not what went and came back in between."""
    problems = AllProblems()
    problems.say("lint", "a", (TWO, ONE))
    assert _logged(problems) == (True, ["MW1", "MW2"])
    problems.say("lint", "a", ())
    problems.say("proxies", "b", (ONE, TWO))
    assert _logged(problems) == (False, [])
    problems.say("proxies", "b", (ONE,))
    assert _logged(problems) == (True, [])
    problems.say("proxies", "b", (ONE, TWO, THREE))
    problems.say("proxies", "b", (ONE, TWO))
    assert _logged(problems) == (True, ["MW2"])


def test_the_end_of_what_was_logged_is_logged() -> None:
    """In its own words, with its code, once nobody says it any more; sources log theirs themselves."""
    problems = AllProblems()
    problems.of_sources({"directory": (THREE,)})
    problems.say("lint", "a", (TWO, ONE))
    problems.say("proxies", "b", (ONE,))
    problems.log()
    problems.say("lint", "a", ())
    problems.of_sources({"directory": ()})
    with capture_logs() as lines:
        problems.log()
        problems.log()
    assert [(each["event"], each["code"], each["problem"]) for each in lines] == [
        ("problem resolved", "MW2", str(TWO))
    ]
    problems.say("proxies", "b", ())
    with capture_logs() as lines:
        problems.log()
    assert [each["problem"] for each in lines] == [str(ONE)]


def test_what_a_source_has_logged_is_not_logged_again() -> None:
    """As long as it says so, whoever says it as well."""
    problems = AllProblems()
    problems.of_sources({"directory": (ONE,), "dns": ()})
    problems.say("between sources", None, (ONE, TWO))
    assert _logged(problems) == (True, ["MW2"])
    problems.of_sources({"directory": ()})
    problems.say("between sources", None, ())
    assert _logged(problems) == (True, [])
    problems.say("between sources", None, (ONE,))
    assert _logged(problems) == (True, ["MW1"])


def test_what_is_said_again_after_all_was_forgotten_is_not_logged_again() -> None:
    """A wave that failed forgets what was said; the next one says it from nothing."""
    problems = AllProblems()
    problems.found([("a", (ONE,))])
    assert _logged(problems) == (True, ["MW1"])
    problems.forget()
    problems.found([("a", (ONE,))])
    assert _logged(problems) == (False, [])


@pytest.mark.parametrize("seed", range(10))
def test_by_differences_it_is_what_it_is_from_nothing(seed: int) -> None:
    """Random parts say random things: the list, the counts, and what is logged."""
    chance = random.Random(seed)  # noqa: S311 - dice
    problems, said, before = AllProblems(), dict[tuple[str, int], tuple[Problem, ...]](), set[Problem]()
    for _ in range(60):
        for _ in range(chance.randint(0, 3)):
            who, of = chance.choice(("lint", "proxies", "sources")), chance.randint(0, 3)
            said[who, of] = tuple(chance.sample((ONE, TWO, THREE), chance.randint(0, 3)))
            problems.say(who, of, said[who, of])
        now = {each for found in said.values() for each in found}
        silent = {each for (who, _), found in said.items() if who == "sources" for each in found}
        other, logged = _logged(problems)
        assert other is (now != before)
        assert logged == [each.code for each in ordered(now - before - silent)]
        assert problems.all() == ordered(now)
        assert list(problems.counts().values()) == [sum(p.severity is each for p in now) for each in Severity]
        before = now


def test_who_follows_is_told_what_comes_and_goes() -> None:
    """At first all there are; then what is otherwise than at the last look, not what came and went."""
    problems = AllProblems()
    problems.say("wave", None, (ONE,))
    moves = problems.follow()
    assert moves.take() == {ONE: True}
    assert moves.take() == {}
    problems.say("wave", None, (TWO,))
    problems.say("proxies", None, (THREE,))
    problems.say("proxies", None, ())
    problems.say("lint", "a", (TWO,))
    assert moves.take() == {ONE: False, TWO: True}
    problems.forget()
    problems.say("wave", None, (TWO,))
    assert moves.take() == {}
