"""Fixture that runs the command in this process, in the directory of the test."""

from collections.abc import Callable
from pathlib import Path

import pytest

from meshwright.cli.main import app
from tests.tools.command_runner import CliRunner
from tests.tools.forked_cli import Done


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Return a runner of the command in the test's directory; keywords are environment variables.

    Commands that replace their process (`serve`, `agent`) cannot run here. See tests/feature/cli.
    """

    def run(*arguments: str, **environment: str) -> Done:
        with monkeypatch.context() as patch:
            patch.chdir(tmp_path)
            for name, value in environment.items():
                patch.setenv(name, value)
            done = CliRunner().invoke(app, arguments)
        return Done(done.exit_code, done.stdout, done.stderr)

    return run
