"""What is seen of a request, and what Envoy's own words in an answer mean. Pure."""

import enum
import re
from dataclasses import dataclass
from typing import Final

DENIED: Final = "RBAC: access denied"
"""What Envoy answers where its rules deny a request."""


class Outcome(enum.StrEnum):
    """How a request ended. OPEN: of TCP, the connection was still there when the time was over."""

    ANSWERED = "answered"
    SILENT = "no answer"
    CLOSED = "closed"
    REFUSED = "not connected"
    OPEN = "open"
    NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of a request; `status` is 0 without an answer.

    `denied` is the reason of a sidecar that denied it, empty if it did not say. `words` are those of the
    answer if Envoy itself has given it, or of the system, or say why nothing was tried. `milliseconds` is
    the time to the answer, or to its failing. `undelivered`: the called sidecar says that it could not
    connect to its application.
    """

    outcome: Outcome
    where: str = ""
    status: int = 0
    denied: str = ""
    words: str = ""
    milliseconds: float = 0.0
    undelivered: bool = False

    @property
    def is_denied(self) -> bool:
        """Say whether a sidecar's rules have denied it."""
        return self.status == 403 and (bool(self.denied) or self.words == DENIED)

    @property
    def is_between_sidecars(self) -> bool:
        """Say whether the caller's sidecar made no connection, TLS included, to the called sidecar.

        The called sidecar marks its own answer where it could not connect to its application. Envoy 1.39 and
        newer say nothing of TLS in an answer.
        """
        return self.flag == "UF" and not self.undelivered

    @property
    def flag(self) -> str:
        """Return Envoy's response flag for what it says has failed; empty of what it says nothing of."""
        return flag(self.status, self.words)


_FLAGS: Final = (
    ("UH", re.compile("no healthy upstream")),
    ("UF", re.compile("reset reason: (?:remote |local )?connection failure")),
    ("UC", re.compile("reset reason: connection termination")),
    ("UR", re.compile("reset reason: remote reset")),
    ("LR", re.compile("reset reason: local reset")),
    ("UO", re.compile("reset reason: overflow")),
    ("UPE", re.compile("reset reason: protocol error")),
    ("UT", re.compile("upstream request timeout")),
    ("UMSDR", re.compile("upstream max stream duration reached")),
    ("SI", re.compile("^stream timeout$")),
)

_BELOW_500: Final = {
    (400, "Bad Request"): "DPE",
    (408, "request timeout"): "DT",
    (408, "stream timeout"): "SI",
    (429, "local_rate_limited"): "RL",
}
"""Whole answers of Envoy's own that say the request is at fault, and their flags."""


def flag(status: int, words: str) -> str:
    """Return the response flag that Envoy logs with an answer of its own in these words."""
    if status < 500:
        return _BELOW_500.get((status, words), "")
    return next((name for name, found in _FLAGS if found.search(words)), "")


def own_words(status: int, text: str) -> str:
    """Return the text of an answer if it is Envoy's own; nothing of an application's."""
    words = " ".join(text.split())[:300]
    return words if words == DENIED or flag(status, words) else ""
