"""Programs on loopback: started, waited for, killed and started again, and ended with their block."""

import contextlib
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from tools.ending import end
from tools.real_parts.building import PartError

PATIENCE: Final = 90.0
"""Seconds that a program may take until it is ready."""
_ENDING: Final = 15.0


@dataclass(frozen=True, slots=True)
class Program:
    """What is started: its flags, the folder of its log, and where it answers 200 once it is ready."""

    path: Path
    words: Sequence[str]
    log: Path
    ready: str
    tls: ssl.SSLContext | None = None
    environment: Mapping[str, str] | None = None

    @property
    def log_file(self) -> Path:
        """Return where its output goes."""
        return self.log / f"{self.path.name}.log"


class Service(contextlib.AbstractContextManager["Service"]):
    """A program that runs while its block does; in the meantime it may be killed, and started again."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.process = self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        end(self.process, _ENDING)

    def until_ready(self) -> Self:
        """Wait until it answers 200; raise PartError, with its last words, if it does not."""
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                text = self.program.log_file.read_text("utf-8", errors="replace")
                said = " / ".join(text.splitlines()[-5:])
                raise PartError(f"{self.program.path.name} is not ready at {self.program.ready}: {said}")
            time.sleep(0.02)
        return self

    def kill(self) -> None:
        """End it as the kernel does: it writes nothing, and closes nothing."""
        self.process.kill()
        self.process.wait()

    def again(self) -> None:
        """Start it as it was started first, and wait until it is ready."""
        self.process = self._start()
        self.until_ready()

    def _start(self) -> subprocess.Popen[bytes]:
        told = self.program
        with told.log_file.open("ab") as output:
            return subprocess.Popen(
                [told.path, *told.words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=None if told.environment is None else dict(told.environment),
            )

    def _answers(self) -> bool:
        url, tls = self.program.ready, self.program.tls
        try:
            with urllib.request.urlopen(url, context=tls, timeout=5):  # noqa: S310 - loopback
                return True
        except OSError:  # not yet: an error's answer is one too
            return False


@contextlib.contextmanager
def running(program: Program) -> Iterator[Service]:
    """Start a program, wait until it is ready, and end it, and nothing else, with the block."""
    with Service(program) as started:
        yield started.until_ready()
