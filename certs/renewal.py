"""Times of renewal: pure decisions, with the time as an argument.

A certificate is due after half of its life, varied slightly by its serial. For example, a certificate of one
day leaves 12 hours in which an issuer may be down or a proxy away. The variation spreads the renewals of
certificates with the same begin, or the same end set by the issuer.
"""

import zlib
from datetime import datetime, timedelta
from typing import Final, Protocol

CA_ENDS_SOON: Final = timedelta(days=180)
"""Time before the end of the CA at which to warn, because all certificates end with the CA."""

SPREAD_SHARE: Final = 0.05
"""Greatest variation of the renewal time, as a fraction of the life."""

LATEST_TURN: Final = 0.05
"""Greatest delay of a server that is not the first to renew a certificate, as a fraction of the life."""

_TURN: Final = timedelta(seconds=5)
_FIRST_RETRY: Final = timedelta(seconds=1)
LONGEST_RETRY: Final = timedelta(minutes=5)
"""Longest pause between two tries of an issuer."""
_LONGEST_LOOK: Final = timedelta(hours=1)
_WITHOUT: Final = timedelta(seconds=30)


class Validity(Protocol):
    """A period of validity: `not_before` and `not_after`, both included (RFC 5280, 4.1.2.5)."""

    @property
    def not_before(self) -> datetime:
        """Return the first second of validity."""

    @property
    def not_after(self) -> datetime:
        """Return the last second of validity."""


class NumberedValidity(Validity, Protocol):
    """A certificate's period of validity and serial."""

    @property
    def serial(self) -> str:
        """Return the serial as text, in any form that is the same after a restart."""


def renew_at(certificate: NumberedValidity, turn: int = 0) -> datetime:
    """Return the time from which a certificate is due for renewal; the same after a restart.

    Servers that share the certificate have turns from 0, so that only one of them asks the issuer.
    """
    drawn = (
        zlib.crc32(certificate.serial.encode()) / 0xFFFFFFFF
    )  # hashed, because issuers may use consecutive serials
    at = _after(certificate, 0.5 + SPREAD_SHARE * (2 * drawn - 1))
    return at + min(turn * _TURN, LATEST_TURN * (certificate.not_after - certificate.not_before))


def renewed_by(certificate: Validity) -> datetime:
    """Return the time by which any certificate of a working issuer has been renewed."""
    return _after(certificate, 0.5 + SPREAD_SHARE)


def due(certificate: NumberedValidity, now: datetime, turn: int = 0) -> bool:
    """Return whether a certificate must be renewed now, by the server with this turn (`renew_at`).

    Before the begin of validity a certificate is due too: the local clock was set back, and peers may already
    refuse the certificate.
    """
    return now < certificate.not_before or now >= renew_at(certificate, turn)


def alarm_at(certificate: Validity) -> datetime:
    """Return the time from which less than a quarter of the life is left, and an operator should act."""
    return _after(certificate, 0.75)


def retry_after(failures: int, left: timedelta, chance: float) -> timedelta:
    """Return the pause after consecutive failures (from 1) for one certificate.

    The pause doubles each time, and is reduced by up to half, by `chance` (from 0 to 1). It is at most
    LONGEST_RETRY, and at most an eighth of the time that the certificate in force has `left`, so that there
    are enough tries: for example, 2 minutes with 16 minutes left. If the certificate has expired or there is
    none, the pause is at most 30 s.
    """
    longest = min(LONGEST_RETRY, max(left / 8, _FIRST_RETRY)) if left > timedelta(0) else _WITHOUT
    doubled: timedelta = _FIRST_RETRY * 2.0 ** min(failures - 1, 16)
    return min(doubled, longest) * (1 - chance / 2)


def look_again_after(certificate: Validity, now: datetime) -> timedelta:
    """Return the time until the next check whether a presented certificate is due.

    The time is an hour, and less near the certificate's end.

    A certificate below a CA that ends soon may live for less than an hour. At the end of a certificate a
    check is certain.
    """
    left = certificate.not_after - now
    if left < timedelta(0):
        return _WITHOUT
    return min(_LONGEST_LOOK, max(left / 8, _WITHOUT), left + timedelta(seconds=1))


def _after(certificate: Validity, share: float) -> datetime:
    return certificate.not_before + (certificate.not_after - certificate.not_before) * share
