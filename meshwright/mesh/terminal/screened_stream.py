"""Text streams for a terminal, on which only rich and our logs can move the cursor or change colours."""

import io
import re
from typing import Final, TypeVar

from meshwright.mesh.terminal.printable import printable

_STYLE: Final = re.compile(r"(\x1b\[[?\d;]*[A-Za-z]|\r)")
"""Control sequences written by rich: colours, and cursor movements for redrawing tables."""

_Stream = TypeVar("_Stream")


class ScreenedStream(io.TextIOWrapper):
    """A text stream with all control characters escaped, except newlines."""

    def write(self, text: str, /) -> int:
        """Write text with control characters escaped; return the number of characters in `text`."""
        super().write(printable(text))
        return len(text)

    def write_styled(self, text: str) -> int:
        """Write text, with colours kept and other control characters escaped."""
        parts = _STYLE.split(text)
        super().write("".join(part if _STYLE.fullmatch(part) else printable(part) for part in parts))
        return len(text)

    @property
    def rich_proxied_file(self) -> "_StyledStream":
        """The same stream with colours kept, under the name that rich expects."""
        return _StyledStream(self)


class _StyledStream:
    """A screened stream for rich, and for logs with colours, which have escaped their texts already."""

    def __init__(self, stream: ScreenedStream) -> None:
        self._stream = stream
        self.encoding = stream.encoding

    def write(self, text: str) -> int:
        """Write text with colours to the screened stream."""
        return self._stream.write_styled(text)

    def flush(self) -> None:
        """Write the buffered text."""
        self._stream.flush()

    def isatty(self) -> bool:
        """Return whether the stream is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Return the stream's file descriptor."""
        return self._stream.fileno()


def styled(stream: _Stream) -> _Stream:
    """Return the stream that keeps colours, if the given one escapes them; else the given one."""
    result: _Stream = getattr(stream, "rich_proxied_file", stream)
    return result
