"""Regular expressions are refused where RE2 would refuse them, and only there."""

import pytest

from smi.regexes import regex_fault


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "/books-bought",
        ".*-http-client/*.*",
        "^(.*?;)?(type=insider)(;.*)?$",
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        r"\d+\.\w*\\1",
        "(?i)abc(?:d|e)(?P<name>f)",
        "[]a]",
        "[^]a(?=]",
        r"\(?=a",
        "a{2,}?b{,3}c{",
        "(a{10}){100}",
        "a{900}b{900}",
    ],
)
def test_what_re2_has_is_accepted(pattern: str) -> None:
    """No fault is found."""
    assert regex_fault(pattern) == ""


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "*",
        "(?=a)",
        "a(?!b)",
        "(?<=a)b",
        "(?<!a)b",
        r"(a)\1",
        "(?P<x>a)(?P=x)",
        "(a)?(?(1)b|c)",
        "(?>a)",
        "(?#comment)",
        "(?x)a b",
        "(?a)x",
        "a++",
        "a*+",
        r"a\Z",
        r"\u0041",
        "a{1001}",
        "(a{11}){100}",
        "((a{10}){10}b){11}",
        "a{900}b{900}c{900}",
        "(abcdefghij){300}",
        "a" * 2001,
        "[[:alpha:]]",
        "a" * 5000,
        "(" * 3000 + ")" * 3000,
    ],
)
def test_what_re2_has_not_is_refused(pattern: str) -> None:
    """A fault is found, and said in words of what would be right."""
    assert regex_fault(pattern).startswith("must ")
