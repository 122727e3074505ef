"""What ends a command, by what went wrong; `in_words` makes a sentence of it.

    CommandFailed
    ├── ServerNotRunning      no server answers
    ├── ServerRefused   the server answered, and said no
    │   └── UnexpectedResponse   it answered what another version of it says
    ├── OfflineError    a directory of manifests cannot be read
    ├── StreamError     standard output cannot be written, or standard input not be read
    ├── IssuingError    a certificate was not issued, revoked or written
    └── NegativeAnswer      it was found out, and the answer is no

Every message is one sentence for whoever typed the command.
"""

import contextlib
import enum
from collections.abc import Iterator

from meshwright.mesh.terminal.printable import on_one_line


class Status(enum.IntEnum):
    """How every command ends; docs/cli.md says for each what it means there.

    NO: it was found out, and is a no, a difference, or a problem. UNKNOWN: it could not be found out, or not
    be done.
    """

    YES = 0
    NO = 1
    UNKNOWN = 2


class CommandFailed(Exception):
    """A command could not do what it was told; `status` is what the process ends with.

    The message is one line, and one more for each of `others`.
    """

    status = Status.UNKNOWN

    def __init__(self, sentence: object, *others: object) -> None:
        self.lines = tuple(on_one_line(str(each)) for each in (sentence, *others))
        super().__init__("\n".join(self.lines))

    def in_words(self) -> str:
        """Return the lines that people read."""
        return f"meshwright: {self}\n"


class ServerNotRunning(CommandFailed):
    """No server answers at the socket of a state directory; `do` is the next step."""

    do = "start `meshwright serve`, or give another directory with --state"

    def in_words(self) -> str:
        """Return the message with the next step."""
        return f"meshwright: {self}: {self.do}\n"


class ServerRefused(CommandFailed):
    """The server answered, and said no; the message is its reason."""


class UnexpectedResponse(ServerRefused):
    """The server's answer lacks what it should have, or has something else there; `do` is the next step."""

    do = "use the `meshwright` of the server's version; `meshwright version` prints the version of this one"

    def in_words(self) -> str:
        """Return the message with the next step."""
        return f"meshwright: {self}: {self.do}\n"


def lines_of(error: Exception) -> tuple[str, ...]:
    """Return the lines of an error that has one for each fault in `lines`, for CommandFailed."""
    found: tuple[str, ...] = getattr(error, "lines", (str(error),))
    return found


@contextlib.contextmanager
def understood() -> Iterator[None]:
    """Raise UnexpectedResponse where an answer lacks what is looked for in it, as an older server's may."""
    try:
        yield
    except KeyError as error:
        raise UnexpectedResponse(
            f"the server's answer has no {error}, because the server has another version than this command"
        ) from error


class OfflineError(CommandFailed):
    """A directory cannot be read; the message is one sentence."""


class IssuingError(CommandFailed):
    """A certificate could not be issued, revoked or written; the message is one sentence."""


class NegativeAnswer(CommandFailed):
    """What the command was to find out is a no; the message says why."""

    status = Status.NO
