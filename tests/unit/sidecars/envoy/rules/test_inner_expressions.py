"""Tests of expressions in the middle of larger ones: both forms fit the same texts, as RE2 itself judges."""

import random

import pytest
import re2

from meshwright.sidecars.envoy.rules.inner_expressions import inner_expression
from tests.tools.hypothesis_profiles import examples

TEXTS = ("", "a", "b", "A", "ab", "ba", "aa", "aab", "$", "a$", "^a", "(", "a.b", "axb", "]")


def fits(regex: str) -> list[str]:
    """Return the texts that an expression fits as a whole."""
    return [text for text in TEXTS if re2.fullmatch(regex, text)]


def fits_inside(regex: str) -> list[str]:
    """Return the texts that the inner form fits between other text."""
    inside = f"<(?:{inner_expression(regex)})>"
    return [text for text in TEXTS if re2.fullmatch(inside, f"<{text}>")]


@pytest.mark.parametrize(
    "regex",
    [
        "^a$",
        "^a$|^b$",
        "(?i)^a$",
        "(?i:^a|b$)",
        "(^a$|^(?:b$))",
        r"\Aa\z",
        r"^\Qa.b",
        r"\Qa$\E$",
        r"\\Q|a\$$",
        r"[$^\]]$",
        "[]$]$",
        "[^]^]$",
        "[[:alpha:]$]+$",
        "(?P<one>^a)(?P<two>b$)?",
        "a?$|^$",
        "(?:^a)?b",
        "a^b",
        "a$b",
    ],
)
def test_inner_form_fits_the_same_texts(regex: str) -> None:
    """Anchors count where the text begins and ends, and nowhere else."""
    assert fits_inside(regex) == fits(regex)


def test_groups_of_two_expressions_may_have_one_name() -> None:
    """RE2 refuses an expression with a name twice."""
    service, method = map(inner_expression, ("(?P<name>a+)", "(?P<name>b+)"))
    assert re2.fullmatch(f"/(?:{service})/(?:{method})", "/aa/b")


@pytest.mark.fuzzed
def test_inner_form_never_fits_more() -> None:
    """An expression admits requests, so a wider one would be dangerous."""
    draw = random.Random(7)  # noqa: S311 - reproducible cases
    for _ in range(examples(800, fresh=2000)):
        regex = _random(draw, 0)
        assert set(fits_inside(regex)) <= set(fits(regex)), regex


def _random(draw: random.Random, depth: int) -> str:
    choice = draw.random()
    if depth > 3 or choice < 0.35:
        return draw.choice(["a", "b", "^", "$", r"\A", r"\z", ".", "[ab$]", "[^a]", r"\Qa\E", ""])
    inner = _random(draw, depth + 1)
    if choice < 0.6:
        return inner + _random(draw, depth + 1)
    if choice < 0.75:
        return f"{inner}|{_random(draw, depth + 1)}"
    opened = draw.choice(["(", "(?:", "(?i:", "(?i)("])
    return f"{opened}{inner}){draw.choice(['', '', '*', '?', '+', '{2}'])}"
