"""Tests of the comparison of answers: what is wrong is named, and what is right is not."""

from collections import Counter
from typing import Any

import pytest

from tests.gateway.case_files import Call
from tests.gateway.client import Answer, Outcome
from tests.gateway.echo import Arrival
from tests.gateway.judgement import differences

_ARRIVALS = [
    Arrival("v2", "/xyz", "new.example", (("x-set", "a"), ("x-add", "b"), ("x-add", "c, d")), 8080),
    Arrival("v3", "/xyz", "new.example", (("x-set", "a"),), 8080),
]
_RIGHT: dict[str, Any] = {
    "by": "v2",
    "status": [200, 204],
    "path": "/xyz",
    "paths": {"v2": "/xyz"},
    "host": "new.example",
    "headers": {"X-Set": "a", "x-add": "b,c,d", "x-none": None},
    "response": {"x-out": ["o", "p"], "x-none": None},
    "location": "http://h/",
    "shares": {"v2": 1},
    "tries": 2,
    "copies": {"v3": {"share": 1, "path": "/xyz", "host": "new.example", "headers": {"x-set": "a"}}},
    "port": 8080,
    "closed": False,
    "length": 0,
}
_WRONG: dict[str, Any] = {
    "by": "v1",
    "status": 404,
    "path": "/foo",
    "paths": {"v1": "/xyz"},
    "host": "old.example",
    "headers": {"x-add": "b"},
    "response": {"x-out": None},
    "location": "https://h/",
    "shares": {"v1": 1},
    "tries": 1,
    "copies": {"v3": {"share": 1, "headers": {"x-set": "b"}}},
    "port": 8081,
    "closed": True,
    "length": 5,
}


def _differences(expected: dict[str, Any]) -> tuple[str, ...]:
    call = Call("client", "echo.shop", 80, expected=expected)
    headers = (("x-out", "o"), ("location", "http://h/"))
    outcome = Outcome("tag", Answer(200, "v2", headers, 8080), Counter({"v2": 1}))
    return differences(call, outcome, _ARRIVALS)


def test_right_expectations_have_no_difference() -> None:
    """All fields of an expectation can hold together."""
    assert _differences(_RIGHT) == ()


@pytest.mark.parametrize("field", _WRONG)
def test_a_wrong_expectation_is_named_with_both_values(field: str) -> None:
    """Each field by itself finds a difference, and says what was expected."""
    (difference,) = _differences({field: _WRONG[field]})
    assert difference.startswith(f"{field} {_WRONG[field]!r} expected, ")


@pytest.mark.parametrize(("seen", "is_right"), [(150, True), (120, True), (100, False), (200, False)])
def test_a_share_may_differ_by_five_standard_deviations(seen: int, is_right: bool) -> None:
    """Of 300 requests with a share of a half, 150 ± 43 are right."""
    call = Call("client", "echo.shop", 80, count=300, expected={"shares": {"v2": 0.5, 500: 0.5}})
    outcome = Outcome("tag", Answer(200, "v2"), Counter({"v2": seen, "500": 300 - seen}))
    assert (differences(call, outcome, []) == ()) is is_right


def test_an_unexpected_answer_is_a_wrong_share() -> None:
    """A single answer of another kind is no deviation."""
    call = Call("client", "echo.shop", 80, count=3, expected={"shares": {"v2": 1}})
    outcome = Outcome("tag", Answer(503), Counter({"v2": 3, "503": 1}))
    assert differences(call, outcome, []) == ("shares {'v2': 1} expected, {'v2': 3, '503': 1} seen",)
