"""Processes of a cluster: start, wait until ready, kill, restart, and stop at the end of the block.

The programs also end with this process, in whatever way this happens.
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
"""Maximum seconds until a program is ready; long, because the machine may be very busy."""
_ENDING: Final = 15.0
_SHARE, _SHORTEST, _LONGEST = 0.05, 0.02, 0.25
"""Pause between two checks: share of the wait so far, and bounds in seconds.

A check costs a TLS handshake.
"""
# For the kernel the parent of a program is the thread that started it. This thread lives as long as the
# process.
_STARTER: Final = ThreadPoolExecutor(1, thread_name_prefix="starts programs")


@dataclass(frozen=True, slots=True)
class Program:
    """A program to start: flags, log folder, and a URL with status 200 for a ready program.

    With `inside` the program runs in the network of these namespaces, and with `apart` in all of them.
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
        """Return the command line of the program, which dies with this process."""
        where: Sequence[str] = ()
        if self.inside is not None:
            where = self.inside.whole if self.apart else self.inside.network
        return bound([*where, str(self.path), *self.words])

    @property
    def log_file(self) -> Path:
        """Return the file with the program's output."""
        return self.log / f"{self.path.name}.log"


class Service(contextlib.AbstractContextManager["Service"]):
    """A running program, stopped at the end of its block; the program can be killed and restarted."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.process = self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        end(self.process, _ENDING)

    def until_ready(self) -> Self:
        """Wait until the program answers 200; raise PartError with the end of the log after a timeout."""
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
        """Send SIGKILL, so that the program can neither write nor close anything."""
        self.process.kill()
        self.process.wait()

    def again(self) -> None:
        """Start the program again with the same flags, and wait until it is ready."""
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
    except OSError:  # not ready yet; an HTTPError is an OSError too
        return False


@contextlib.contextmanager
def running(program: Program) -> Iterator[Service]:
    """Start a program, wait until it is ready, and stop it at the end of the block."""
    with Service(program) as started:
        yield started.until_ready()
