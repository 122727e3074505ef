"""Outcomes of a request of `meshwright connectivity`, and the meaning of Envoy's own answers. Pure."""

import enum
import re
from dataclasses import dataclass
from typing import Final

from meshwright.sidecars.layout import Side

DENIED: Final = "RBAC: access denied"
"""Envoy's answer to a denied request."""


class Outcome(enum.StrEnum):
    """The end of a request. OPEN: a TCP connection was still open when the time was over."""

    ANSWERED = "answered"
    SILENT = "no answer"
    CLOSED = "closed"
    REFUSED = "not connected"
    OPEN = "open"
    NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True)
class OwnAnswer:
    """A sidecar's own answer: response flags as in Envoy's log, and response code details.

    For example, flags `NR` and details `route_not_found`. `details` is empty for a failed connection, for
    which the sidecar reports only the flag.
    """

    side: Side
    flags: tuple[str, ...] = ()
    details: str = ""


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """The outcome of a request; `status` is 0 without an answer.

    - `denied` is the reason given by a denying sidecar, or "".
    - `words` is the text of Envoy's own answer, or the system's error, or the reason why the request was not
      tried.
    - `milliseconds` is the time until the answer or the failure.
    - `undelivered`: the called sidecar reports a failed connection to its application.
    - `own`: a sidecar reports that the answer is its own.
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
        """Return whether the answer is from a sidecar itself, not from the application."""
        return bool(self.own or self.words or self.denied or self.undelivered)

    @property
    def side(self) -> Side | None:
        """Return the side of the answering sidecar; None if the answer does not show the side."""
        if self.own is not None:
            return self.own.side
        return Side.CALLED if self.denied or self.undelivered else None

    @property
    def details(self) -> str:
        """Return Envoy's response code details of a sidecar's own answer; empty without details."""
        return "" if self.own is None else self.own.details

    @property
    def is_denied(self) -> bool:
        """Return whether a sidecar's rules denied the request."""
        return self.status == 403 and (bool(self.denied) or self.words == DENIED)

    @property
    def is_between_sidecars(self) -> bool:
        """Return whether the caller's sidecar could not connect (including TLS) to the called sidecar.

        A called sidecar marks an answer after a failed connection to the application. Answers of Envoy 1.39
        and newer never mention TLS.
        """
        return self.flag == "UF" and not self.undelivered and self.side is not Side.CALLED

    @property
    def flag(self) -> str:
        """Return Envoy's first response flag for the failure, for example `UF`; empty without a flag."""
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
"""Complete answers of Envoy for faulty requests, with their flags."""


def flag(status: int, words: str) -> str:
    """Return the response flag that Envoy logs with an own answer of this text and status.

    The result is empty for any other answer.
    """
    if status < 500:
        return _BELOW_500.get((status, words), "")
    return next((name for name, result in _FLAGS if result.search(words)), "")


def own_answer(header: str) -> OwnAnswer | None:
    """Parse the header of an own answer, for example `caller NR route_not_found`; None for any other text."""
    side, _, rest = header.partition(" ")
    if side not in tuple(Side):
        return None
    flags, _, details = rest.partition(" ")
    result = tuple(item for item in flags.split(",") if item not in ("", "-"))
    return OwnAnswer(Side(side), result, details[:300])


def own_words(status: int, text: str) -> str:
    """Return an answer's text, shortened, if the answer is Envoy's own; empty for an application's answer."""
    words = " ".join(text.split())[:300]
    return words if words == DENIED or flag(status, words) else ""
