"""Tests against features that differ in early releases of Python 3.11: Debian 12 has 3.11.2."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"][
    "wheel"
]["packages"]


EXCEPT_STAR = re.compile(r"except[\s\\]*\*")
"""What every `except*` looks like; only files that have it are parsed, because parsing all takes 2 s."""


def raised_in_a_star(source: str) -> Iterator[int]:
    """Yield the lines where an `except*` raises another exception, which 3.11.4 wraps differently."""
    if not EXCEPT_STAR.search(source):
        return
    for item in ast.walk(ast.parse(source)):
        if isinstance(item, ast.TryStar):
            for handler in item.handlers:
                for inner in ast.walk(handler):
                    if isinstance(inner, ast.Raise) and inner.exc is not None:
                        yield inner.lineno


@pytest.mark.parametrize("package", PACKAGES)
def test_package_raises_no_new_exception_in_except_star(package: str) -> None:
    """The result is an exception group only in some releases, so a handler would catch it only there."""
    result = [
        f"{path}:{line}"
        for path in sorted((ROOT / package).rglob("*.py"))
        if "protos" not in path.parts
        for line in raised_in_a_star(path.read_text("utf-8"))
    ]
    assert result == []


def test_new_exception_in_except_star_is_found() -> None:
    """Raising the same exception again is allowed, because it is equal in all releases."""
    source = "try:\n    f()\nexcept* E as e:\n    if e:\n        raise X from e\n    raise\n"
    assert list(raised_in_a_star(source)) == [5]
    for each in ("except *", "except \\\n  *", "except\t*"):
        assert list(raised_in_a_star(source.replace("except* E", f"{each} E"))) == [5 + each.count("\n")]
