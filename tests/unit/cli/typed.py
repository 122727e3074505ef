"""The command as it is typed, each time in a process of its own that need not import anything first.

`Typed` starts one Python process with this module; it has imported what commands need and forks for each.
What a command prints goes to files, where no terminal is either.
"""

import gc
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

ROOT: Final = Path(__file__).parents[3]
PATH: Final = "/usr/bin:/bin"


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


class Typed:
    """Runs commands, one at a time, until its block ends."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            cwd=ROOT,
            env={"PATH": PATH, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process as process:
            process.kill()

    def run(self, folder: Path, arguments: tuple[str, ...], environment: Mapping[str, str]) -> Done:
        """Run a command in a folder, with these variables and no others but the path."""
        printed = folder / "stdout", folder / "stderr"
        asked = [str(folder), arguments, {"PATH": PATH, **environment}]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        status = int(self._process.stdout.readline())
        out, err = (each.read_text() for each in printed)
        for each in printed:
            each.unlink()
        return Done(status, out, err)


def _become(folder: str, arguments: list[str], environment: Mapping[str, str]) -> None:
    """Make this process look as if it had been started for one command."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["meshwright", *arguments]
    for number, name in enumerate((os.devnull, "stdout", "stderr")):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)


def _await_command() -> None:
    """Fork for each command that comes, and say its status; return in the child alone."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _become(*json.loads(line))
            return
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()
    raise SystemExit


if __name__ == "__main__":
    for module in (
        "admin.pages.decoding",
        "cli.commands.bootstrap",
        "cli.commands.certs",
        "cli.offline.mesh",
        "cli.commands.serve",
        "cli.printing.table",
    ):
        importlib.import_module(module)
    for package in (
        "listener",
        "route",
        "cluster",
        "endpoint",
    ):  # what admin.pages.decoding imports when it is used
        importlib.import_module(f"envoy_data_plane.envoy.config.{package}.v3")
    from cli.main import main
    from sidecars.registry import DriverRegistry

    DriverRegistry.discover()  # imports the drivers
    gc.freeze()  # what is imported stays shared
    _await_command()
    try:
        main()
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(end.code or 0))  # to take down all that is imported takes longer than the command
