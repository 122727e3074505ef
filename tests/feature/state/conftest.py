"""Fixtures of state directories for tests that damage them."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.tools.forked_cli import Typed
from tests.tools.program import PROXIES, Program


@dataclass(frozen=True)
class UsedState:
    """Files of a program that has issued certificates and served, and the certificates' serials."""

    files: Path
    serials: tuple[str, ...]


@pytest.fixture(scope="session")
def used_once(tmp_path_factory: pytest.TempPathFactory, typed: Typed) -> UsedState:
    """A used state directory, made once for all tests that copy it."""
    files = tmp_path_factory.mktemp("used")
    program = Program(files / "state", files, typed)
    try:
        serials = program.issued(*PROXIES)
        program.serve().stop()
    finally:
        program.end()
    return UsedState(files, tuple(serials))


@pytest.fixture
def used(program: Program, used_once: UsedState) -> Program:
    """The program with a copy of the used state directory and the proxies' certificates."""
    for name in ("state", *PROXIES):
        shutil.copytree(used_once.files / name, program.files / name)
    program.serials = used_once.serials
    return program


@pytest.fixture
def program(tmp_path: Path, typed: Typed) -> Iterator[Program]:
    """The program with a state directory that does not exist yet."""
    made = Program(tmp_path / "state", tmp_path, typed)
    yield made
    made.end()
