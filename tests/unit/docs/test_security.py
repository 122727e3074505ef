"""Tests of SECURITY.md: every promise names tests, and every named test exists."""

import re
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = (ROOT / "SECURITY.md").read_text("utf-8")
_NAMED: Final = re.compile(r"`(tests/[^`:]*)::([^`]*)`")
_FUNCTION: Final = re.compile(r"^(?:async )?def (\w+)", re.MULTILINE)
_PROMISES: Final = PAGE.partition("\n## Promises\n")[2].partition("\n## ")[0]


@cache
def _functions(file: str) -> frozenset[str]:
    """Return the names of the functions that a file defines at its top; none if the file does not exist."""
    path = ROOT / file
    if not path.is_file():
        return frozenset()
    return frozenset(_FUNCTION.findall(path.read_text("utf-8")))


def _missing(text: str) -> list[str]:
    """Return the named tests that do not exist, such as `tests/unit/x/test_y.py::test_z`."""
    named = _NAMED.findall(text)
    return [f"{file}::{name}" for file, name in named if name not in _functions(file)]


def test_every_test_that_is_named_exists() -> None:
    """A renamed or removed test must be renamed on the page, too; otherwise its promise has no test."""
    assert len(_NAMED.findall(PAGE)) > 100
    assert _missing(PAGE) == []


def test_named_test_that_does_not_exist_is_found() -> None:
    """This is the negative control: a wrong file, a wrong function, and an empty name."""
    here = "tests/unit/docs/test_security.py"
    wrong = [f"{here}::test_none", "tests/unit/docs/none.py::test_none", f"{here}::"]
    right = f"`{here}::test_every_test_that_is_named_exists`"
    assert _missing(" ".join([right, *(f"`{item}`" for item in wrong)])) == wrong


def test_every_promise_names_a_test() -> None:
    """Promises without a test are in a separate section."""
    promises = re.split(r"^- ", _PROMISES, flags=re.MULTILINE)[1:]
    assert len(promises) > 40
    assert [promise.splitlines()[0] for promise in promises if not _NAMED.search(promise)] == []
