"""Expressions as RE2 reads them, on bytes: github.com/google/re2/wiki/Syntax, and Envoy's safe_regex."""

import pytest
import re2
from hypothesis import example, given
from hypothesis import strategies as st

from catalog.oracle.request.expressions import fits_in_full, fits_no_path, literal, text_of

EXPRESSIONS = st.text(st.sampled_from("/ab0.*+?()[]{}|^$\\-,:PQEU~é"), max_size=10)
"""Of what expressions are made of; most are some, others RE2 does not take."""


@pytest.mark.parametrize(
    ("expression", "value", "wanted"),
    [
        ("/b{,3}ooks", b"/b{,3}ooks", True),  # no repetition to RE2, which wants a number before the comma
        ("/b{,3}ooks", b"/bbooks", False),
        ("/b{0,3}ooks", b"/bbooks", True),
        (r"/\pL+", b"/abc", True),
        (r"/[[:alpha:]]+", b"/abc", True),
        (r"/\x{62}", b"/b", True),
        (r"/\Qa.b\E", b"/a.b", True),
        (r"/\Qa.b\E", b"/axb", False),
        ("(?U)/b.*", b"/books", True),
        ("/books|/x", b"/books/x", False),
        ("a$", b"a\n", False),
        (r"\d", "٣".encode(), False),
        ("é", "é".encode(), True),
        ("caf.", "café".encode(), False),  # two bytes
        ("caf..", "café".encode(), True),
        ("(?i)É", "é".encode(), False),
        ("(", b"(", False),
        (r"(a)\1", b"aa", False),
    ],
)
def test_what_fits(expression: str, value: bytes, wanted: bool) -> None:
    """In full; what RE2 does not take fits nothing."""
    assert fits_in_full(expression, value) is wanted


@pytest.mark.parametrize("expression", ["books", "(a|b)/x", "[a-z]+", "(?i)BOOKS.*", r"\pL/.*", "0", "-"])
def test_what_fits_no_path(expression: str) -> None:
    """Whatever fits begins with something else."""
    assert fits_no_path(expression)


@pytest.mark.parametrize("expression", [".*", "/x", "^/x", "(?i)/x", "x?/y", "x|/y", "[^a]x", "[/]x", r"\/x"])
def test_what_may_fit_a_path(expression: str) -> None:
    """Or it cannot be told."""
    assert not fits_no_path(expression)


@pytest.mark.parametrize("text", ["/books", "/a.b", r"/a\b", "/a{1,2}[c]^$|(x)*+?", "/é -#&~"])
def test_text_as_an_expression(text: str) -> None:
    """It fits itself, and is found again."""
    assert fits_in_full(literal(text), text.encode())
    assert text_of(literal(text)) == text
    assert literal("/a-b/c~d") == "/a-b/c~d"


@pytest.mark.parametrize("expression", ["/a.b", "/a*", r"/\d", "(/a)", "/[a]"])
def test_what_is_no_text(expression: str) -> None:
    """It fits more, or may."""
    assert text_of(expression) is None


@given(st.text(st.characters(codec="utf-8"), max_size=12), st.binary(max_size=12))
@example("a{2}", b"aa")
@example("/a.b", b"/axb")
def test_an_expression_made_of_a_text_fits_it_alone(text: str, other: bytes) -> None:
    """RE2 itself says so, whatever the text is."""
    made = re2.compile(literal(text).encode(), _bytewise())
    assert made.fullmatch(text.encode()) is not None
    assert (made.fullmatch(other) is None) is (other != text.encode())


@given(EXPRESSIONS, st.binary(max_size=8))
@example(r"a\-b", b"a-b")
@example("a{,2}", b"a{,2}")
def test_a_text_that_an_expression_is_said_to_be_is_what_it_fits(expression: str, other: bytes) -> None:
    """What is found without RE2 is proved with it: it fits the text, and nothing else."""
    text = text_of(expression)
    if text is None:
        return
    made = re2.compile(expression.encode(), _bytewise())
    assert made.fullmatch(text.encode()) is not None
    assert (made.fullmatch(other) is None) is (other != text.encode())


@given(EXPRESSIONS, st.text(st.sampled_from("/ab0.-é"), max_size=6))
def test_what_is_said_to_fit_no_path_fits_none(expression: str, rest: str) -> None:
    """Nothing that begins with a slash; one that RE2 does not take is never in an Envoy."""
    if fits_no_path(expression):
        assert not fits_in_full(expression, f"/{rest}".encode())


def _bytewise() -> re2.Options:
    options = re2.Options()
    options.encoding, options.log_errors = re2.Options.Encoding.LATIN1, False
    return options
