"""What native libraries write to standard error, raw: read, and said as lines of ours.

gRPC's core has no other way to say why a handshake failed. So descriptor 2 leads to a pipe for as long as a
server runs, and `sys.stderr` to where it led before. What is no line of gRPC's goes on, with control
characters escaped, unless the log is JSON: then it is a line of that. Python's own report of a crash goes
where descriptor 2 led before.
"""

import contextlib
import faulthandler
import io
import os
import re
import sys
import threading
from types import TracebackType
from typing import Final, Self, TextIO

import structlog

from meshwright.controller.process.handshakes import FailedHandshakes, failed_handshake
from meshwright.mesh.terminal.printable import on_one_line
from meshwright.mesh.terminal.screened_stream import ScreenedStream

VERBOSITY: Final = "GRPC_VERBOSITY"
NEEDED: Final = "INFO"
"""Less, and gRPC does not say that a handshake failed."""

_LINE: Final = re.compile(r"([IWEF])\d{4} [\d:.]+ +\d+ ([\w./-]+:\d+)\] (.*)")
_LEVELS: Final = {"I": "info", "W": "warning", "E": "error", "F": "critical"}
_MOST_BYTES: Final = 65536
"""Of one look, and about of a line: a longer one is more than one."""

_log = structlog.get_logger("controller.native")


class NativeLines:
    """The lines of this process' native libraries; a context manager, to be entered before gRPC is imported.

    Handshakes that failed are counted. Other lines of gRPC's are said only if its environment variable was
    set, by somebody who wants to see them: it has one for much of what a stranger does. What it ends the
    process with is said in any case.
    """

    def __init__(self) -> None:
        self.handshakes = FailedHandshakes()
        self._wanted = VERBOSITY in os.environ
        self._says_all = False
        self._python: TextIO | None = None
        self._original = -1
        self._reader: threading.Thread | None = None

    def say_all(self) -> None:
        """Say what is no line of gRPC's, too: where the log is JSON, every line is."""
        self._says_all = True

    def __enter__(self) -> Self:
        os.environ.setdefault(VERBOSITY, NEEDED)
        sys.stderr.flush()
        self._python, self._original = sys.stderr, os.dup(2)
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        os.dup2(writing, 2)
        os.close(writing)
        written = io.BufferedWriter(io.FileIO(self._original, "w", closefd=False))
        sys.stderr = ScreenedStream(written, encoding="utf-8", errors="backslashreplace", line_buffering=True)
        faulthandler.enable(self._original)
        self._reader = threading.Thread(target=self._read, args=(reading,), name="native lines", daemon=True)
        self._reader.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        faulthandler.disable()
        sys.stderr.flush()
        assert self._python is not None  # noqa: S101 - it was entered
        os.dup2(self._original, 2)  # the pipe's last end: its reader comes to the end of it
        if self._reader is not None:
            self._reader.join(1.0)
        sys.stderr = self._python
        os.close(self._original)

    def _read(self, reading: int) -> None:
        rest = b""
        with open(reading, "rb", buffering=0) as pipe:
            while received := pipe.read(_MOST_BYTES):
                *lines, rest = (rest + received).split(b"\n")
                if len(rest) > _MOST_BYTES:
                    lines, rest = [*lines, rest], b""
                for line in lines:
                    self._take(line)
        if rest:
            self._take(rest)

    def _take(self, line: bytes) -> None:
        text = line.decode(errors="replace")
        found = _LINE.match(text)
        if found is None:
            if not self._says_all:
                with contextlib.suppress(OSError):  # its disk is full, or nobody reads there any more
                    os.write(self._original, f"{on_one_line(text)}\n".encode(errors="backslashreplace"))
            elif text.strip():
                _log.warning("standard error says", source="stderr", said=text)
            return
        level, place, said = found.groups()
        if failed := failed_handshake(said):
            self.handshakes.note(failed)
        elif self._wanted or level == "F":
            getattr(_log, _LEVELS[level])("gRPC says", source="grpc", place=place, said=said)
