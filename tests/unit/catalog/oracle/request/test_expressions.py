"""Tests of expressions as RE2 reads them, on bytes.

Sources: github.com/google/re2/wiki/Syntax, and Envoy's safe_regex.
"""

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
        ("/b{,3}ooks", b"/b{,3}ooks", True),  # RE2 needs a number before the comma of a repetition
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
def test_expression_fits_a_value_in_full_as_re2_reads_it(expression: str, value: bytes, wanted: bool) -> None:
    """The whole value must fit. An expression that RE2 does not accept fits no value."""
    assert fits_in_full(expression, value) is wanted


@pytest.mark.parametrize("expression", ["books", "(a|b)/x", "[a-z]+", "(?i)BOOKS.*", r"\pL/.*", "0", "-"])
def test_expression_without_a_leading_slash_fits_no_path(expression: str) -> None:
    """Every text that fits such an expression begins with another character than a slash."""
    assert fits_no_path(expression)


@pytest.mark.parametrize("expression", [".*", "/x", "^/x", "(?i)/x", "x?/y", "x|/y", "[^a]x", "[/]x", r"\/x"])
def test_expression_that_may_fit_a_path_is_recognised(expression: str) -> None:
    """The expression fits a leading slash, or its first character is uncertain."""
    assert not fits_no_path(expression)


@pytest.mark.parametrize("text", ["/books", "/a.b", r"/a\b", "/a{1,2}[c]^$|(x)*+?", "/é -#&~"])
def test_literal_expression_of_a_text_fits_the_text_and_is_reversible(text: str) -> None:
    """The expression fits the text, and `text_of` returns the text again."""
    assert fits_in_full(literal(text), text.encode())
    assert text_of(literal(text)) == text
    assert literal("/a-b/c~d") == "/a-b/c~d"


@pytest.mark.parametrize("expression", ["/a.b", "/a*", r"/\d", "(/a)", "/[a]"])
def test_expression_that_fits_more_than_one_text_has_no_text(expression: str) -> None:
    """`text_of` returns None for an expression with an operator, a class or a group."""
    assert text_of(expression) is None


@given(st.text(st.characters(codec="utf-8"), max_size=12), st.binary(max_size=12))
@example("a{2}", b"aa")
@example("/a.b", b"/axb")
def test_literal_expression_fits_its_text_alone(text: str, other: bytes) -> None:
    """RE2 itself confirms this for any text."""
    made = re2.compile(literal(text).encode(), _bytewise())
    assert made.fullmatch(text.encode()) is not None
    assert (made.fullmatch(other) is None) is (other != text.encode())


@given(EXPRESSIONS, st.binary(max_size=8))
@example(r"a\-b", b"a-b")
@example("a{,2}", b"a{,2}")
def test_text_of_an_expression_is_the_only_text_that_fits(expression: str, other: bytes) -> None:
    """`text_of` works without RE2, so RE2 confirms that the expression fits this text and no other."""
    text = text_of(expression)
    if text is None:
        return
    made = re2.compile(expression.encode(), _bytewise())
    assert made.fullmatch(text.encode()) is not None
    assert (made.fullmatch(other) is None) is (other != text.encode())


@given(EXPRESSIONS, st.text(st.sampled_from("/ab0.-é"), max_size=6))
def test_expression_that_fits_no_path_fits_no_text_with_a_leading_slash(expression: str, rest: str) -> None:
    """`fits_no_path` is compared with real matches.

    Envoy never has an expression that RE2 does not accept.
    """
    if fits_no_path(expression):
        assert not fits_in_full(expression, f"/{rest}".encode())


def _bytewise() -> re2.Options:
    options = re2.Options()
    options.encoding, options.log_errors = re2.Options.Encoding.LATIN1, False
    return options
