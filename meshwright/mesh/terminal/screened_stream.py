"""Streams of text for a terminal, on which only rich and our logs can move the cursor or change colours."""

import io
import re
from typing import Final, TypeVar

from meshwright.mesh.terminal.printable import printable

_STYLE: Final = re.compile(r"(\x1b\[[?\d;]*[A-Za-z]|\r)")
"""What rich writes besides text: colours, and what moves the cursor for a table that is drawn anew."""

_Stream = TypeVar("_Stream")


class ScreenedStream(io.TextIOWrapper):
    """A stream of text in which control characters but newlines are escaped, whoever has written them."""

    def write(self, text: str, /) -> int:
        """Write text; return how many characters of it that were."""
        super().write(printable(text))
        return len(text)

    def write_styled(self, text: str) -> int:
        """Write text with colours, which pass; other control characters are escaped."""
        parts = _STYLE.split(text)
        super().write("".join(each if _STYLE.fullmatch(each) else printable(each) for each in parts))
        return len(text)

    @property
    def rich_proxied_file(self) -> "_StyledStream":
        """The same stream for rich, which looks for it under this name."""
        return _StyledStream(self)


class _StyledStream:
    """A screened stream as rich writes to it, and a log with colours: their texts are screened before."""

    def __init__(self, stream: ScreenedStream) -> None:
        self._stream = stream
        self.encoding = stream.encoding

    def write(self, text: str) -> int:
        """Write text with colours."""
        return self._stream.write_styled(text)

    def flush(self) -> None:
        """Write what is buffered."""
        self._stream.flush()

    def isatty(self) -> bool:
        """Say whether it is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._stream.fileno()


def styled(stream: _Stream) -> _Stream:
    """Return where colours can be written on a stream that escapes them; any other stream as it is."""
    found: _Stream = getattr(stream, "rich_proxied_file", stream)
    return found
