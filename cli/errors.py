"""What ends a command, by what went wrong; `cli.program` makes a sentence and a status of it.

    CommandFailed
    ├── NotRunning      no server answers
    ├── ServerRefused   the server answered, and said no
    ├── OfflineError    a directory of manifests cannot be read
    └── IssuingError    a certificate was not issued, revoked or written

Every message is one sentence for whoever typed the command.
"""


class CommandFailed(Exception):
    """A command could not do what it was told; `status` is what the process ends with."""

    def __init__(self, sentence: object, status: int = 1) -> None:
        super().__init__(str(sentence))
        self.status = status


class NotRunning(CommandFailed):
    """No server answers at the socket of a state directory."""


class ServerRefused(CommandFailed):
    """The server answered, and said no; the message is its reason."""


class OfflineError(CommandFailed):
    """A directory cannot be read; the message is one sentence."""


class IssuingError(CommandFailed):
    """A certificate could not be issued, revoked or written; the message is one sentence."""
