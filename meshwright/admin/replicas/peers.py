"""Interface to the other servers of a mesh: questions with a time limit, and their answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from meshwright.admin.replicas.view import Query

FACTS: Final = "/peer/v1/facts"
"""Path of the facts of a server about its own proxies."""
TRAFFIC: Final = "/peer/v1/traffic"
"""Path of the traffic statistics of a server; `seconds` is the length of the window."""
PULSE: Final = "/peer/v1/pulse"
"""Path of the few values by which a server notices changes at another one."""
PROGRESS: Final = "/peer/v1/progress"
"""Path of the progress of changed objects at the proxies of a server, for the status of the objects."""
SERVER: Final = "/peer/v1/server"
"""Path of the facts of a server about itself."""
REVOCATIONS: Final = "/peer/v1/revocations"
"""Path of the act that brings a revocation in force."""
RETRY: Final = "/peer/v1/retry"
"""Path of the act that offers a proxy the rejected resources again."""


@dataclass(frozen=True, slots=True)
class PeerAnswer:
    """Answer of another server: the HTTP status, and the content."""

    status: int
    content: bytes = field(repr=False)

    @property
    def is_fine(self) -> bool:
        """Return whether the server has answered the question."""
        return 200 <= self.status < 300


@dataclass(frozen=True, slots=True)
class PeerAnswers:
    """Answers of the other servers by name, and the reason of each server that did not answer in time."""

    answers: Mapping[str, PeerAnswer] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)


class Peers(Protocol):
    """The other servers of the mesh. No question raises an error, or takes longer than its time limit."""

    @property
    def replica(self) -> str:
        """Return the name of this server."""

    def names(self) -> Sequence[str]:
        """Return the names of all servers that are here, this one included, sorted."""

    async def ask(self, path: str, query: Query = (), only: str | None = None) -> PeerAnswers:
        """Send a question to all other servers at once, or to one of them."""
