"""Tests of the help of each command: valid examples, and no text lost as markup."""

import re
import shlex
from collections.abc import Iterator
from typing import Any, Final

import pytest
import typer
from rich.text import Text
from typer.core import TyperCommand

from meshwright.cli.main import app

_ENDS_A_COMMAND: Final = re.compile(r" (?:\||>>?|&&) ")


def _commands(command: Any, *names: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield names, command
    for name, below in getattr(command, "commands", {}).items():
        yield from _commands(below, *names, name)


PROGRAM: Final = typer.main.get_command(app)
COMMANDS: Final = dict(_commands(PROGRAM))


def _examples() -> Iterator[tuple[str, ...]]:
    for command in COMMANDS.values():
        for line in (command.help or "").replace("\\\n", " ").splitlines():
            if line.startswith("  "):
                for part in _ENDS_A_COMMAND.split(line):
                    words = shlex.split(part)
                    if "meshwright" in words:
                        yield tuple(words[words.index("meshwright") + 1 :])


@pytest.mark.parametrize("words", sorted(set(_examples())), ids=" ".join)
def test_example_in_the_help_can_be_run(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """The command accepts the example's arguments, given the state directory in the environment."""
    monkeypatch.setenv("MESHWRIGHT_STATE", "state")
    names = max((command for command in COMMANDS if words[: len(command)] == command), key=len)
    assert names
    alone = TyperCommand(" ".join(names), params=COMMANDS[names].params)
    alone.make_context(" ".join(names), list(words[len(names) :]))


@pytest.mark.parametrize("names", list(COMMANDS), ids=" ".join)
def test_help_text_is_not_lost_as_markup(names: tuple[str, ...]) -> None:
    """Typer reads help as Rich markup, which drops words in brackets, for example [all]."""
    command = COMMANDS[names]
    texts = [command.help or "", *(getattr(param, "help", None) or "" for param in command.params)]
    assert [Text.from_markup(text).plain for text in texts] == texts


def test_each_command_and_option_has_help() -> None:
    """The text begins with a capital letter or a bracket, and ends with a full stop."""
    texts = {
        f"{' '.join(names)} {param.name}": (getattr(param, "help", None) or "").strip()
        for names, command in COMMANDS.items()
        for param in command.params
    }
    firsts = {" ".join(names): (item.help or "").partition("\n")[0] for names, item in COMMANDS.items()}
    assert [
        name for name, text in (texts | firsts).items() if not re.fullmatch(r"[A-Z\[].*\.", text, re.DOTALL)
    ] == []
