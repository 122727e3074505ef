"""Expressions as RE2 reads them, on bytes: github.com/google/re2/wiki/Syntax, and Envoy's safe_regex."""

import pytest

from catalog.oracle.expressions import fits_in_full, fits_no_path, literal, text_of


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
