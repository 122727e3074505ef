"""What is said of an object reads as a sentence, whatever part of it is known."""

import pytest

from mesh.kinds import TRAFFIC_TARGET
from mesh.names import Namespace
from mesh.objects import ObjectKey
from mesh.origins import InFile
from mesh.problems import Problem, Severity

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
def test_a_problem_is_one_line(key: ObjectKey | None, field: str, value: str, said: str) -> None:
    """Code, place, object, field, value, and what would be right."""
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
