"""Failed TLS handshakes: the cause in a line of gRPC's core, and counts for the log."""

import enum
import re
import threading
from collections import Counter
from dataclasses import dataclass
from typing import Final

SAID_SECONDS: Final = 10.0
"""Minimum seconds between two log lines about one cause, because a flood must not fill the log."""

_FAILED: Final = "Handshake failed with error "
_CODE: Final = re.compile(r"OPENSSL_internal:([A-Z0-9_]+)(?:: (.*))?$")


class Failure(enum.StrEnum):
    """Cause of a failed handshake; the values are stable, for logs and metrics."""

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
    """One failed handshake, with the message of the TLS library."""

    why: Failure
    message: str


def failed_handshake(line: str) -> FailedHandshake | None:
    """Parse a line of gRPC's core, without time and place; `None` for any other line.

    For example, a line with `OPENSSL_internal:HTTP_REQUEST` at the end gives Failure.NO_TLS.
    """
    if not line.startswith(_FAILED):
        return None
    text = line.removeprefix(_FAILED)
    match = _CODE.search(text)
    code, words = (match[1], match[2] or "") if match else ("", "")
    if code == "CERTIFICATE_VERIFY_FAILED":
        return FailedHandshake(_BY_WORDS.get(words, Failure.OTHER), words)
    why = _BY_CODE.get(code, Failure.OTHER)
    return FailedHandshake(why, code.lower().replace("_", " ") or text[:200])


@dataclass(frozen=True, slots=True)
class FailureSummary:
    """Number of failed handshakes for one cause; `last` is the most recent one."""

    last: FailedHandshake
    count: int


class FailedHandshakes:
    """Failed handshakes not logged yet; `note` is safe from any thread, times are monotonic seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[Failure] = Counter()
        self._uncounted: Counter[Failure] = Counter()
        self._last: dict[Failure, FailedHandshake] = {}
        self._logged_at: dict[Failure, float] = {}

    def note(self, failed: FailedHandshake) -> None:
        """Count a failed handshake."""
        with self._lock:
            self._counts[failed.why] += 1
            self._uncounted[failed.why] += 1
            self._last[failed.why] = failed

    def counted(self) -> Counter[Failure]:
        """Return the counts since the last call."""
        with self._lock:
            result, self._uncounted = self._uncounted, Counter()
            return result

    def due(self, now: float) -> tuple[FailureSummary, ...]:
        """Return the counts to be logged at the time `now`, and reset them."""
        with self._lock:
            due = [
                why for why in self._counts if now - self._logged_at.get(why, -SAID_SECONDS) >= SAID_SECONDS
            ]
            self._logged_at |= dict.fromkeys(due, now)
            return tuple(FailureSummary(self._last[why], self._counts.pop(why)) for why in sorted(due))
