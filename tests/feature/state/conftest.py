"""State directories that a test does something to."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.tools.forked_cli import Typed
from tests.tools.program import PROXIES, Program


@dataclass(frozen=True)
class Used:
    """What a program leaves that has issued certificates and served for a while: its files, their serials."""

    files: Path
    serials: tuple[str, ...]


@pytest.fixture(scope="session")
def used_once(tmp_path_factory: pytest.TempPathFactory, typed: Typed) -> Used:
    """Have a state directory used once, for all tests that begin with one."""
    files = tmp_path_factory.mktemp("used")
    program = Program(files / "state", files, typed)
    try:
        serials = program.issued(*PROXIES)
        program.serve().stop()
    finally:
        program.end()
    return Used(files, tuple(serials))


@pytest.fixture
def used(program: Program, used_once: Used) -> Program:
    """Return the program with a state directory that a server has used, and its proxies' certificates."""
    for name in ("state", *PROXIES):
        shutil.copytree(used_once.files / name, program.files / name)
    program.serials = used_once.serials
    return program


@pytest.fixture
def program(tmp_path: Path, typed: Typed) -> Iterator[Program]:
    """Return the program with a state directory that is not there yet."""
    made = Program(tmp_path / "state", tmp_path, typed)
    yield made
    made.end()
