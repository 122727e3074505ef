"""Errors that end a command, each with its exit status and its text for the user.

    CommandFailed
    ├── ServerNotRunning      no server answers
    ├── ServerRefused   the server refused the request
    │   └── UnexpectedResponse   the answer has the form of another version
    ├── OfflineError    a directory of manifests cannot be read
    ├── StreamError     standard output cannot be written, or standard input cannot be read
    ├── IssuingError    a certificate was not issued, revoked or written
    └── NegativeAnswer      the command has its answer, and the answer is no

Every message is one sentence for the person at the terminal.
"""

import contextlib
import enum
from collections.abc import Iterator
from typing import Self

from meshwright.mesh.terminal.printable import on_one_line


class Status(enum.IntEnum):
    """Exit status of a command; docs/debug/cli.md has the meaning for each command.

    NO: the command has an answer, which is no, a difference, or a problem. UNKNOWN: the command failed, so
    there is only an error.
    """

    YES = 0
    NO = 1
    UNKNOWN = 2


class CommandFailed(Exception):
    """Error of a command that failed; `status` is the exit status of the process.

    The message is one line, and one more line for each of `others`.
    """

    status = Status.UNKNOWN

    def __init__(self, sentence: object, *others: object) -> None:
        self.lines = tuple(on_one_line(str(item)) for item in (sentence, *others))
        super().__init__("\n".join(self.lines))

    def in_words(self) -> str:
        """Return the text for standard error, with a line feed at its end."""
        return f"meshwright: {self}\n"


class ServerNotRunning(CommandFailed):
    """Error: the socket of a state directory does not answer; `do` is the next step for the user."""

    do = "start `meshwright serve`, or give another directory with --state"

    def in_words(self) -> str:
        """Return the message with the next step."""
        return f"meshwright: {self}: {self.do}\n"


class ServerRefused(CommandFailed):
    """Error: the server refused a request; the message is the server's reason."""


class UnexpectedResponse(ServerRefused):
    """Error: the server's answer lacks a field, or has another type; `do` is the next step for the user."""

    do = "use the `meshwright` of the server's version; `meshwright version` prints the version of this one"

    @classmethod
    def without(cls, field: str) -> Self:
        """Return the error for an answer that lacks a field, as an older or newer server's does."""
        return cls(
            f"the server's answer has no {field!r}, because the server has another version than this command"
        )

    def in_words(self) -> str:
        """Return the message with the next step."""
        return f"meshwright: {self}: {self.do}\n"


def lines_of(error: Exception) -> tuple[str, ...]:
    """Return the lines of an error for CommandFailed: `lines`, one for each fault, or else the text."""
    result: tuple[str, ...] = getattr(error, "lines", (str(error),))
    return result


@contextlib.contextmanager
def understood() -> Iterator[None]:
    """Raise UnexpectedResponse for a KeyError in the block, because an older server's answer lacks fields."""
    try:
        yield
    except KeyError as error:
        raise UnexpectedResponse.without(str(error.args[0])) from error


class OfflineError(CommandFailed):
    """Error: a directory cannot be read; the message is one sentence."""


class IssuingError(CommandFailed):
    """Error: a certificate could not be issued, revoked or written; the message is one sentence."""


class NegativeAnswer(CommandFailed):
    """Error with status 1: the command has its answer, and the answer is no; the message has the reason."""

    status = Status.NO
