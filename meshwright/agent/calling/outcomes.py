"""What is seen of a request, and what Envoy's own words in an answer mean. Pure."""

import enum
import re
from dataclasses import dataclass
from typing import Final

from meshwright.sidecars.layout import Side

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
class OwnAnswer:
    """An answer that a sidecar gave by itself: response flags as Envoy logs them, and response code details.

    `details` is empty where a connection failed: the sidecar does not say more than the flag.
    """

    side: Side
    flags: tuple[str, ...] = ()
    details: str = ""


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """What came of a request; `status` is 0 without an answer.

    `denied` is the reason of a sidecar that denied it, empty if it did not say. `words` are those of the
    answer if Envoy itself has given it, or of the system, or say why nothing was tried. `milliseconds` is
    the time to the answer, or to its failing. `undelivered`: the called sidecar says that it could not
    connect to its application. `own`: a sidecar says that the answer is its own.
    """

    outcome: Outcome
    where: str = ""
    status: int = 0
    denied: str = ""
    words: str = ""
    milliseconds: float = 0.0
    undelivered: bool = False
    own: OwnAnswer | None = None

    @property
    def is_own(self) -> bool:
        """Say whether a sidecar gave the answer by itself."""
        return bool(self.own or self.words or self.denied or self.undelivered)

    @property
    def side(self) -> Side | None:
        """Return whose sidecar answered by itself; None where the answer does not say so."""
        if self.own is not None:
            return self.own.side
        return Side.CALLED if self.denied or self.undelivered else None

    @property
    def details(self) -> str:
        """Return Envoy's details of its own answer, empty where it does not say."""
        return "" if self.own is None else self.own.details

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
        return self.flag == "UF" and not self.undelivered and self.side is not Side.CALLED

    @property
    def flag(self) -> str:
        """Return Envoy's first response flag for what has failed; empty where Envoy says nothing."""
        if self.own is not None:
            return self.own.flags[0] if self.own.flags else ""
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
    (431, "Request Header Fields Too Large"): "DPE",
}
"""Whole answers of Envoy's own that say the request is at fault, and their flags."""


def flag(status: int, words: str) -> str:
    """Return the response flag that Envoy logs with an answer of its own in these words."""
    if status < 500:
        return _BELOW_500.get((status, words), "")
    return next((name for name, found in _FLAGS if found.search(words)), "")


def own_answer(header: str) -> OwnAnswer | None:
    """Read the header of an own answer, such as `caller NR route_not_found`; None for another text."""
    side, _, rest = header.partition(" ")
    if side not in tuple(Side):
        return None
    flags, _, details = rest.partition(" ")
    found = tuple(each for each in flags.split(",") if each not in ("", "-"))
    return OwnAnswer(Side(side), found, details[:300])


def own_words(status: int, text: str) -> str:
    """Return the text of an answer if it is Envoy's own; nothing of an application's."""
    words = " ".join(text.split())[:300]
    return words if words == DENIED or flag(status, words) else ""
