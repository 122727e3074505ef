"""Standard input, output and error of a command, also if they are closed, full, or lack a character.

A failed write to standard output ends the command with one sentence. A failed write to standard error is only
remembered, because there is no other place for the message. Printed text is partly from other people, so both
streams escape control characters of terminals.
"""

import errno
import io
import os
import sys
from typing import Any, Final, TextIO

from meshwright.cli.errors import CommandFailed
from meshwright.mesh.terminal.screened_stream import ScreenedStream

READER_GONE: Final = 141
"""Exit status after the reader of a pipe has gone, as in shells: 128 plus SIGPIPE."""


class StreamError(CommandFailed):
    """Error: standard output cannot be written, or standard input not read; the message is one sentence."""


class _Output(io.FileIO):
    """Standard output. The first failed write raises StreamError; later writes are dropped.

    If the reader of a pipe has gone, the program ends without a message.
    """

    _failed = False

    def write(self, data: Any, /) -> int:  # noqa: ANN401 - any object with bytes
        """Write bytes to standard output; raise StreamError.

        If the reader of a pipe has gone, end the program.
        """
        if self._failed:  # also at exit, when the interpreter writes the rest of its buffer
            return len(memoryview(data))
        try:
            return super().write(data)
        except BrokenPipeError:
            self._failed = True
            sys.exit(READER_GONE)
        except OSError as error:
            self._failed = True
            raise StreamError(f"standard output cannot be written: {_reason(error, 'writing')}") from error


class _Words(io.FileIO):
    """Standard error. `lost` is set after a failed write, except to a pipe without a reader."""

    lost = False

    def write(self, data: Any, /) -> int:  # noqa: ANN401 - any object with bytes
        """Write bytes to standard error; a failed write counts as done."""
        try:
            return super().write(data)
        except OSError as error:
            self.lost = self.lost or not isinstance(error, BrokenPipeError)
            return len(memoryview(data))


def ensure_open() -> None:
    """Open all three standard streams, and make them accept any text; replaced streams stay as they are.

    A closed descriptor is replaced by /dev/null, because the next opened file would get its number. A
    replaced standard input or output fails on use; output to a replaced standard error is dropped.
    """
    if sys.stdin is None:
        # The modes are the wrong ones on purpose: reading this stream, or writing the next one, is an error.
        sys.stdin = open(_open_null(os.O_WRONLY), encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is sys.__stdout__:
        there = _open_null(os.O_RDONLY) if sys.stdout is None else sys.stdout.fileno()
        sys.stdout = _text(_Output(there, "w", closefd=False), sys.__stdout__)
    if sys.stderr is sys.__stderr__:
        there = _open_null(os.O_RDWR) if sys.stderr is None else sys.stderr.fileno()
        sys.stderr = _text(_Words(there, "w", closefd=False), sys.__stderr__, line_buffering=True)


def words_were_lost() -> bool:
    """Return whether output to standard error was lost."""
    raw = getattr(getattr(sys.stderr, "buffer", None), "raw", None)
    return isinstance(raw, _Words) and raw.lost


def read_bytes(most: int = -1) -> bytes:
    """Return standard input, at most `most` bytes (-1: all); raise StreamError."""
    try:
        return sys.stdin.buffer.read(most)
    except OSError as error:
        raise StreamError(f"standard input cannot be read: {_reason(error, 'reading')}") from error


def read_text() -> str:
    """Return standard input as UTF-8 text, whatever the terminal's encoding; raise StreamError."""
    try:
        return read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise StreamError(f"standard input is not UTF-8 (byte {error.start}): convert it to UTF-8") from error


def print_text(text: str) -> None:
    """Print text for programs, such as YAML, in UTF-8 whatever the terminal's encoding.

    Arguments with bytes outside UTF-8 are printed as they were typed. On a terminal, control characters are
    escaped.
    """
    print_bytes(text.encode("utf-8", "surrogateescape"))


def print_bytes(content: bytes) -> None:
    """Print content from elsewhere byte for byte; on a terminal, escape control characters."""
    if sys.stdout.isatty():
        sys.stdout.write(content.decode("utf-8", "backslashreplace"))
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(content)


def _open_null(flags: int) -> int:
    """Open /dev/null as the lowest free descriptor, inheritable by child processes."""
    descriptor = os.open(os.devnull, flags)
    os.set_inheritable(descriptor, True)
    return descriptor


def _text(raw: io.FileIO, like: TextIO | None, *, line_buffering: bool = False) -> TextIO:
    """Return a text stream with the buffering of `like`; unencodable characters are written as escapes."""
    encoding, at_once = "utf-8", False
    if isinstance(like, io.TextIOWrapper):
        encoding, at_once = like.encoding, like.line_buffering or like.write_through
    return ScreenedStream(
        io.BufferedWriter(raw),
        encoding=encoding,
        errors="backslashreplace",
        line_buffering=line_buffering or at_once,
    )


def _reason(error: OSError, purpose: str) -> str:
    if error.errno == errno.EBADF:
        return f"it is closed, or not open for {purpose}"
    return error.strerror or type(error).__name__
