"""Lines of native libraries on standard error, read through a pipe and logged as our own.

gRPC's core reports the cause of a failed handshake only there. While a server runs, descriptor 2 leads to a
pipe, and `sys.stderr` to the original target. Lines of other libraries are passed on with control characters
escaped, or become JSON lines if the log is JSON. Python's report of a crash goes to the original target.
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
"""Minimum verbosity at which gRPC reports failed handshakes."""

_LINE: Final = re.compile(r"([IWEF])\d{4} [\d:.]+ +\d+ ([\w./-]+:\d+)\] (.*)")
_LEVELS: Final = {"I": "info", "W": "warning", "E": "error", "F": "critical"}
_MOST_BYTES: Final = 65536
"""Maximum bytes of one read, and of a line; a longer line is split."""

_log = structlog.get_logger("controller.native")


class NativeLines:
    """Reader of native lines; a context manager, to be entered before gRPC is imported.

    Failed handshakes are counted. Other lines of gRPC are only logged if the operator has set
    `GRPC_VERBOSITY`, because strangers cause many such lines. A line before gRPC ends the process is always
    logged.
    """

    def __init__(self) -> None:
        self.handshakes = FailedHandshakes()
        self._wanted = VERBOSITY in os.environ
        self._says_all = False
        self._python: TextIO | None = None
        self._original = -1
        self._reader: threading.Thread | None = None

    def log_all(self) -> None:
        """Log lines of other libraries too, for a log in JSON, in which every line must be JSON."""
        self._says_all = True

    def __enter__(self) -> Self:
        os.environ.setdefault(VERBOSITY, NEEDED)
        sys.stderr.flush()
        self._python, self._original = sys.stderr, os.dup(2)
        reading, writing = os.pipe()
        # A full pipe must not block a native thread; its line is lost instead.
        os.set_blocking(writing, False)
        os.dup2(writing, 2)
        os.close(writing)
        written = io.BufferedWriter(io.FileIO(self._original, "w", closefd=False))
        sys.stderr = ScreenedStream(written, encoding="utf-8", errors="backslashreplace", line_buffering=True)
        # Directly to the original target, because the pipe's reader does not run during a crash.
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
        os.dup2(self._original, 2)  # closes the last writing end, so the reader finishes
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
        match = _LINE.match(text)
        if match is None:
            if not self._says_all:
                with contextlib.suppress(OSError):  # the disk is full, or the reader has ended
                    os.write(self._original, f"{on_one_line(text)}\n".encode(errors="backslashreplace"))
            elif text.strip():
                _log.warning("standard error message", source="stderr", said=text)
            return
        level, place, answer = match.groups()
        if failed := failed_handshake(answer):
            self.handshakes.note(failed)
        elif self._wanted or level == "F":
            getattr(_log, _LEVELS[level])("gRPC message", source="grpc", place=place, said=answer)
