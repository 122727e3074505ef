"""Standard input, output and error of a command, also where they are closed, full, or lack a character.

What cannot be printed ends the command in a sentence. What cannot be said on standard error ends nothing:
there is nobody who could be told. Whatever a command prints is text of others in part: on both streams
characters that a terminal would take for commands are escaped.
"""

import errno
import io
import os
import sys
from typing import Any, Final, TextIO

from meshwright.cli.errors import CommandFailed
from meshwright.mesh.terminal.screened_stream import ScreenedStream

READER_GONE: Final = 141
"""How a program ends whose reader has gone, as a shell has it: 128 and SIGPIPE."""


class StreamError(CommandFailed):
    """Standard output cannot be written, or standard input not be read; the message is one sentence."""


class _Output(io.FileIO):
    """Where answers go. The first that cannot be written raises StreamError; no other is tried then.

    A reader that has gone has had enough: the program ends without a word.
    """

    _failed = False

    def write(self, data: Any, /) -> int:  # noqa: ANN401 - whatever has bytes
        """Write bytes."""
        if self._failed:  # as the interpreter does for what is left when it ends
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
    """Where sentences and remarks go; `lost` says that there was no room for one."""

    lost = False

    def write(self, data: Any, /) -> int:  # noqa: ANN401 - whatever has bytes
        """Write bytes, as far as that can be done."""
        try:
            return super().write(data)
        except OSError as error:
            self.lost = self.lost or not isinstance(error, BrokenPipeError)
            return len(memoryview(data))


def stand_open() -> None:
    """Have all three streams be there, and take any text; those that somebody has replaced stay.

    A descriptor that is closed would be taken by the next file that is opened. Instead nothing can be read
    from it, or written to it; what is said on a standard error that somebody has closed goes nowhere.
    """
    if sys.stdin is None:
        sys.stdin = open(_held(os.O_WRONLY), encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is sys.__stdout__:
        there = _held(os.O_RDONLY) if sys.stdout is None else sys.stdout.fileno()
        sys.stdout = _text(_Output(there, "w", closefd=False), sys.__stdout__)
    if sys.stderr is sys.__stderr__:
        there = _held(os.O_RDWR) if sys.stderr is None else sys.stderr.fileno()
        sys.stderr = _text(_Words(there, "w", closefd=False), sys.__stderr__, line_buffering=True)


def words_were_lost() -> bool:
    """Say whether something that was said on standard error could not be written there."""
    raw = getattr(getattr(sys.stderr, "buffer", None), "raw", None)
    return isinstance(raw, _Words) and raw.lost


def read_bytes(most: int = -1) -> bytes:
    """Return what stands in standard input, `most` bytes of it; raise StreamError."""
    try:
        return sys.stdin.buffer.read(most)
    except OSError as error:
        raise StreamError(f"standard input cannot be read: {_reason(error, 'reading')}") from error


def read_text() -> str:
    """Return the text in standard input, in UTF-8 whatever the terminal's encoding; raise StreamError."""
    try:
        return read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise StreamError(f"standard input is not UTF-8 (byte {error.start}): convert it to UTF-8") from error


def print_text(text: str) -> None:
    """Print what programs read, such as YAML: in UTF-8 whatever the terminal's encoding.

    Bytes of the command line that are no UTF-8 are printed as they were typed. On a terminal people read it,
    and control characters are escaped.
    """
    print_bytes(text.encode("utf-8", "surrogateescape"))


def print_bytes(content: bytes) -> None:
    """Print what somebody else has said, byte for byte, but on a terminal without control characters."""
    if sys.stdout.isatty():
        sys.stdout.write(content.decode("utf-8", "backslashreplace"))
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(content)


def _held(flags: int) -> int:
    """Return a descriptor of nothing: the lowest that is closed, for programs that we run as well."""
    descriptor = os.open(os.devnull, flags)
    os.set_inheritable(descriptor, True)
    return descriptor


def _text(raw: io.FileIO, like: TextIO | None, *, line_buffering: bool = False) -> TextIO:
    """Return a stream of text, buffered as another is; a character that it lacks is written as its escape."""
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
