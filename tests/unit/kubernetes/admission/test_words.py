"""Tests of the text of refusals and warnings, as kubectl prints them."""

from meshwright.kubernetes.admission.words import LONGEST, MOST, refusal, shortened, warnings
from meshwright.mesh.kinds import TCP_ROUTE, TRAFFIC_TARGET
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import InCluster
from meshwright.mesh.problems.problem import Problem, Severity

KEY = ObjectKey(TRAFFIC_TARGET, Namespace("shop"), "buy")


def problem(
    field: str = "spec", value: str = "", expected: str = "must be there", key: ObjectKey = KEY
) -> Problem:
    """Return a problem."""
    origin = InCluster("here", "")
    return Problem(
        code="MW1",
        severity=Severity.ERROR,
        origin=origin,
        key=key,
        field=field,
        value=value,
        expected=expected,
    )


def test_refusal_has_a_line_for_each_error() -> None:
    """Each line has field, value, remedy and the code of the documentation."""
    text = refusal(KEY, [problem("spec.rules[0].kind", '"X"', "must be one of A, B"), problem()])
    assert text.splitlines() == [
        "TrafficTarget shop/buy is invalid:",
        '  - spec.rules[0].kind is "X": must be one of A, B (MW1)',
        "  - spec: must be there (MW1)",
    ]


def test_refusal_lists_a_limited_number_of_errors() -> None:
    """The last line counts the omitted errors."""
    lines = refusal(None, [problem(f"spec.rules[{number}]") for number in range(50)]).splitlines()
    assert len(lines) == 22
    assert (lines[0], lines[-1]) == ("the object is invalid:", "  - and 30 more")


def test_warning_names_the_object_if_it_is_another_one() -> None:
    """A warning is one line, even if its text has line breaks."""
    other = ObjectKey(TCP_ROUTE, Namespace("shop"), "any")
    assert warnings(KEY, [problem(), problem(key=other, expected="a\nb")]) == (
        "spec: must be there (MW1)",
        "TCPRoute shop/any: spec: a b (MW1)",
    )


def test_warnings_are_limited_in_length_and_number() -> None:
    """A long warning is shortened with its code, and the omitted ones are counted.

    A further mandatory warning keeps its place.
    """
    many = [problem(f"spec.rules[{number}]") for number in range(40)]
    result = warnings(KEY, many, "further")
    assert len(result) == MOST
    assert result[-2:] == ("and 30 more: `meshwright lint --kubernetes` lists all of them", "further")
    assert len(warnings(KEY, many[:MOST])) == MOST
    (long,) = warnings(KEY, [problem(expected="x" * 1000)])
    assert (len(long), long.endswith("... (MW1)")) == (LONGEST, True)
    assert shortened("y" * 1000) == "y" * (LONGEST - 3) + "..."
