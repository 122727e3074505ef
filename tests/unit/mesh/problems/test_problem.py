"""Tests of problems: their text, order and log records."""

import itertools

import pytest
import structlog
from structlog.testing import capture_logs

from meshwright.mesh.kinds import SERVICE, TRAFFIC_TARGET
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import FromSource, InFile, Origin
from meshwright.mesh.problems.problem import Problem, Severity, log_new, ordered

KEY = ObjectKey(TRAFFIC_TARGET, Namespace("shop"), "buy")


@pytest.mark.parametrize(
    ("key", "field", "value", "said"),
    [
        (KEY, "spec.rules", "3", "TrafficTarget shop/buy: spec.rules is 3: a list"),
        (KEY, "spec.rules", "", "TrafficTarget shop/buy: spec.rules: a list"),
        (KEY, "", "", "TrafficTarget shop/buy: a list"),
        (None, "", "'x'", "document: is 'x': a list"),
    ],
)
def test_problem_is_printed_on_one_line(key: ObjectKey | None, field: str, value: str, said: str) -> None:
    """The line has code, place, object, field, value and the expected value, in this order."""
    problem = Problem(
        code="MW1",
        severity=Severity.ERROR,
        origin=InFile("a.yaml", 2, 7),
        key=key,
        field=field,
        value=value,
        expected="a list",
    )

    assert str(problem) == f"MW1 a.yaml:7 (document 2): {said}"


def _problem(
    origin: Origin, code: str = "MW1", key: ObjectKey | None = None, field: str = "", expected: str = "x"
) -> Problem:
    return Problem(code=code, severity=Severity.ERROR, origin=origin, key=key, field=field, expected=expected)


def test_problems_are_sorted_by_place_without_duplicates() -> None:
    """Within a place the order is code, object, field and text; a problem may have no object."""
    place = InFile("a.yaml", 2)
    wanted = (
        _problem(InFile("a.yaml", 1), "MW9"),
        _problem(place, "MW1", ObjectKey(SERVICE, Namespace("shop"), "z"), "spec"),
        _problem(place, "MW1", KEY, "metadata"),
        _problem(place, "MW1", KEY, "spec", "a"),
        _problem(place, "MW1", KEY, "spec", "b"),
        _problem(place, "MW2"),
        _problem(FromSource("dns")),
    )
    for given in itertools.permutations(wanted, len(wanted)):
        assert ordered((*given, wanted[0])) == wanted


def test_new_problem_is_logged_at_its_level() -> None:
    """Known problems are not logged again."""
    problems = tuple(
        Problem(code=f"MW{number}", severity=severity, origin=InFile("a.yaml"), expected="look")
        for number, severity in enumerate(Severity)
    )
    with capture_logs() as logs:
        log_new(structlog.get_logger(), "problem", problems, problems[:1])
        log_new(structlog.get_logger(), "problem", problems, problems)
    assert logs == [
        {
            "event": "problem",
            "log_level": level,
            "code": code,
            "problem": f"{code} a.yaml:1 (document 1): document: look",
        }
        for level, code in (("warning", "MW1"), ("info", "MW2"))
    ]
