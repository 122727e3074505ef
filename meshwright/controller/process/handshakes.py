"""Handshakes that failed: why, by what gRPC's core says of one, and how many are to be said together."""

import enum
import re
import threading
from collections import Counter
from dataclasses import dataclass
from typing import Final

SAID_SECONDS: Final = 10.0
"""The least time between two lines about one reason: a flood of connections must not be one of lines."""

_FAILED: Final = "Handshake failed with error "
_CODE: Final = re.compile(r"OPENSSL_internal:([A-Z0-9_]+)(?:: (.*))?$")


class Failure(enum.StrEnum):
    """Why a handshake failed; stable, for logs and metrics."""

    EXPIRED = "certificate-expired"
    NOT_YET_VALID = "certificate-not-yet-valid"
    ANOTHER_CA = "certificate-of-another-ca"
    NO_CERTIFICATE = "no-certificate"
    NO_TLS = "no-tls"
    OLD_TLS = "old-tls"
    NOT_TRUSTED = "not-trusted-by-client"
    OTHER = "other"


_BY_WORDS: Final = {
    "certificate has expired": Failure.EXPIRED,
    "certificate is not yet valid": Failure.NOT_YET_VALID,
    "unable to get local issuer certificate": Failure.ANOTHER_CA,
    "unable to verify the first certificate": Failure.ANOTHER_CA,
    "self signed certificate": Failure.ANOTHER_CA,
    "self signed certificate in certificate chain": Failure.ANOTHER_CA,
    "certificate signature failure": Failure.ANOTHER_CA,
}
_BY_CODE: Final = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": Failure.NO_CERTIFICATE,
    "HTTP_REQUEST": Failure.NO_TLS,
    "HTTPS_PROXY_REQUEST": Failure.NO_TLS,
    "WRONG_VERSION_NUMBER": Failure.NO_TLS,
    "UNEXPECTED_MESSAGE": Failure.NO_TLS,
    "UNSUPPORTED_PROTOCOL": Failure.OLD_TLS,
    "TLSV1_ALERT_UNKNOWN_CA": Failure.NOT_TRUSTED,
    "SSLV3_ALERT_BAD_CERTIFICATE": Failure.NOT_TRUSTED,
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": Failure.NOT_TRUSTED,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": Failure.NOT_TRUSTED,
}


@dataclass(frozen=True, slots=True)
class FailedHandshake:
    """One that failed, and the library's words."""

    why: Failure
    said: str


def failed_handshake(line: str) -> FailedHandshake | None:
    """Read a line of gRPC's core, without its time and place; None where it is about something else."""
    if not line.startswith(_FAILED):
        return None
    said = line.removeprefix(_FAILED)
    found = _CODE.search(said)
    code, words = (found[1], found[2] or "") if found else ("", "")
    if code == "CERTIFICATE_VERIFY_FAILED":
        return FailedHandshake(_BY_WORDS.get(words, Failure.OTHER), words)
    why = _BY_CODE.get(code, Failure.OTHER)
    return FailedHandshake(why, code.lower().replace("_", " ") or said[:200])


@dataclass(frozen=True, slots=True)
class FailureSummary:
    """So many failed for one reason; `last` has the words of one of them."""

    last: FailedHandshake
    count: int


class FailedHandshakes:
    """Those that were not said yet, noted by any thread; times are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[Failure] = Counter()
        self._uncounted: Counter[Failure] = Counter()
        self._last: dict[Failure, FailedHandshake] = {}
        self._said: dict[Failure, float] = {}

    def note(self, failed: FailedHandshake) -> None:
        """Take one in."""
        with self._lock:
            self._counts[failed.why] += 1
            self._uncounted[failed.why] += 1
            self._last[failed.why] = failed

    def counted(self) -> Counter[Failure]:
        """Return how many there were since it was asked last."""
        with self._lock:
            found, self._uncounted = self._uncounted, Counter()
            return found

    def due(self, now: float) -> tuple[FailureSummary, ...]:
        """Return what is to be said now, and take it for said."""
        with self._lock:
            due = [why for why in self._counts if now - self._said.get(why, -SAID_SECONDS) >= SAID_SECONDS]
            self._said |= dict.fromkeys(due, now)
            return tuple(FailureSummary(self._last[why], self._counts.pop(why)) for why in sorted(due))
