"""Tests of the list of logger names, whose levels can be set before their first line."""

import ast
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from meshwright.controller.process.levels import LogLevels
from meshwright.controller.process.logger_names import LOGGER_NAMES, with_parents

ROOT: Final = Path(__file__).parents[4]
PACKAGES: Final = ("catalog", "certs", "meshwright", "xds")
MAKERS: Final = ("get_logger", "getLogger")


def _source() -> Iterator[str]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if any(maker in (text := path.read_text()) for maker in MAKERS):
                yield text


def _constants(module: ast.Module) -> dict[str, str]:
    """Return the text constants that a module defines, by name."""
    return {
        stmt.target.id: stmt.value.value
        for stmt in module.body
        if isinstance(stmt, ast.AnnAssign)
        and isinstance(stmt.target, ast.Name)
        and isinstance(stmt.value, ast.Constant)
        and isinstance(stmt.value.value, str)
    }


def names_in(text: str) -> set[str]:
    """Return the logger names of a module: literals, and constants that the module defines itself."""
    module = ast.parse(text)
    constants, result = _constants(module), set[str]()
    for call in ast.walk(module):
        if not (isinstance(call, ast.Call) and call.args):
            continue
        made_by = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        match call.args[0]:
            case ast.Constant(value=str(name)) if made_by in MAKERS:
                result.add(name)
            case ast.Name(id=constant) if made_by in MAKERS and constant in constants:
                result.add(constants[constant])
            case _:
                pass
    return result


def test_list_has_every_logger_of_the_source() -> None:
    """Every literal name in the packages is listed, sorted, and no other name is."""
    assert sorted(set[str]().union(*map(names_in, _source()))) == list(LOGGER_NAMES)


def test_logger_names_are_found_as_literals_and_constants() -> None:
    """Calls within functions count; a computed name cannot be listed."""
    text = (
        'AUDIT: Final = "admin.audit"\n'
        'log = structlog.get_logger("delivery.loop")\n'
        "def f(name):\n"
        '    getLogger("aiohttp.server"), get_logger(AUDIT), logging.getLogger(name), open("x")\n'
    )
    assert names_in(text) == {"admin.audit", "aiohttp.server", "delivery.loop"}


@pytest.fixture
def no_loggers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove all existing loggers, as in a program that has just started."""
    monkeypatch.setattr(logging.Logger, "manager", logging.Manager(logging.root))
    monkeypatch.setattr(logging.root, "manager", logging.Logger.manager)


@pytest.mark.usefixtures("no_loggers")
@pytest.mark.parametrize("name", ["controller", "controller.root_change", "certs.roots.kept", "envoy"])
def test_level_of_a_logger_can_be_set_before_its_first_line(name: str) -> None:
    """The level can be set although no module has created the logger yet."""
    LogLevels().set_level(name, "debug")
    assert LogLevels().levels() == {"": logging.getLevelName(logging.root.level).lower(), name: "debug"}


def test_parents_of_a_logger_name_are_its_prefixes() -> None:
    """Each prefix up to a dot is a parent, whose level applies to all its loggers."""
    assert with_parents(("a.b.c", "d")) == {"a", "a.b", "a.b.c", "d"}
