"""Programs of a cluster: started, waited for, killed and started again, and ended with their block.

However this process ends, they end with it.
"""

import contextlib
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from meshwright.agent.envoy.die_with_parent import bound
from tools.process_end import end
from tools.real_parts.building import PartError
from tools.real_parts.namespaces import Namespaces

PATIENCE: Final = 240.0
"""Seconds that a program may take until it is ready, on a machine that is very busy."""
_ENDING: Final = 15.0
_SHARE, _SHORTEST, _LONGEST = 0.05, 0.02, 0.25
"""The pause between two looks as a share of the time waited, and its bounds: a look costs a TLS handshake."""
# The kernel takes the thread that started a program for its parent: this one lives as long as the process.
_STARTER: Final = ThreadPoolExecutor(1, thread_name_prefix="starts programs")


@dataclass(frozen=True, slots=True)
class Program:
    """What is started: its flags, the folder of its log, and where it answers 200 once it is ready.

    `inside` are the namespaces whose network it has; `apart`: its mounts and processes are theirs too.
    """

    path: Path
    words: Sequence[str]
    log: Path
    ready: str
    tls: ssl.SSLContext | None = None
    environment: Mapping[str, str] | None = None
    inside: Namespaces | None = None
    apart: bool = False

    @property
    def command(self) -> list[str]:
        """Return what is run, so that it dies with this process."""
        where: Sequence[str] = ()
        if self.inside is not None:
            where = self.inside.whole if self.apart else self.inside.network
        return bound([*where, str(self.path), *self.words])

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
        began = time.monotonic()
        while not self._answers():
            waited = time.monotonic() - began
            if self.process.poll() is not None or waited > PATIENCE:
                text = self.program.log_file.read_text("utf-8", errors="replace")
                said = " / ".join(text.splitlines()[-5:])
                raise PartError(f"{self.program.path.name} is not ready at {self.program.ready}: {said}")
            time.sleep(min(max(waited * _SHARE, _SHORTEST), _LONGEST))
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
        return _STARTER.submit(_started, self.program).result()

    def _answers(self) -> bool:
        inside = self.program.inside
        return _answers(self.program) if inside is None else inside.do(lambda: _answers(self.program))


def _started(program: Program) -> subprocess.Popen[bytes]:
    with program.log_file.open("ab") as output:
        return subprocess.Popen(
            program.command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=None if program.environment is None else dict(program.environment),
        )


def _answers(program: Program) -> bool:
    try:
        with urllib.request.urlopen(program.ready, context=program.tls, timeout=5):  # noqa: S310 - loopback
            return True
    except OSError:  # not yet: an error's answer is one too
        return False


@contextlib.contextmanager
def running(program: Program) -> Iterator[Service]:
    """Start a program, wait until it is ready, and end it, and nothing else, with the block."""
    with Service(program) as started:
        yield started.until_ready()
