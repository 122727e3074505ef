"""When certificates are to be renewed: decisions only, with the time as an argument.

A certificate is due once half of its life is over, a little sooner or later by its serial. That leaves twelve
hours of a day's certificate for an issuer that is down or for proxies that are away; and those that began
together, or that their issuer has all ended at one moment, are not all due together.
"""

import zlib
from datetime import datetime, timedelta
from typing import Final, Protocol

CA_ENDS_SOON: Final = timedelta(days=180)
"""When it is time to think of the CA's end: what it signs ends with it."""

SPREAD_SHARE: Final = 0.05
"""By how much of its life, at most, a certificate is due before or after the half of it."""

_FIRST_RETRY: Final = timedelta(seconds=1)
LONGEST_RETRY: Final = timedelta(minutes=5)
"""However often it has failed, an issuer is tried again after so long."""
_LONGEST_LOOK: Final = timedelta(hours=1)
_WITHOUT: Final = timedelta(seconds=30)


class Validity(Protocol):
    """Anything with a validity: `not_before` and `not_after`, both inclusive (RFC 5280, 4.1.2.5)."""

    @property
    def not_before(self) -> datetime:
        """Return the first second at which it is valid."""

    @property
    def not_after(self) -> datetime:
        """Return the last second at which it is valid."""


class NumberedValidity(Validity, Protocol):
    """A certificate: a validity, and a serial."""

    @property
    def serial(self) -> str:
        """Return the serial, in any spelling that stays the same."""


def renew_at(certificate: NumberedValidity) -> datetime:
    """Return the moment from which a certificate is to be renewed: the same one after a restart."""
    drawn = zlib.crc32(certificate.serial.encode()) / 0xFFFFFFFF  # issuers may count their serials
    return _after(certificate, 0.5 + SPREAD_SHARE * (2 * drawn - 1))


def renewed_by(certificate: Validity) -> datetime:
    """Return the moment at which one whose issuer works has been renewed, whatever its serial."""
    return _after(certificate, 0.5 + SPREAD_SHARE)


def due(certificate: NumberedValidity, now: datetime) -> bool:
    """Say whether a certificate must be renewed now.

    One that is not valid yet is due as well: our clock was set back, and peers may already refuse it.
    """
    return now < certificate.not_before or now >= renew_at(certificate)


def alarm_at(certificate: Validity) -> datetime:
    """Return the moment from which less than a quarter of a life is left: somebody must look at it."""
    return _after(certificate, 0.75)


def retry_after(failures: int, left: timedelta, chance: float) -> timedelta:
    """Return how long an issuer is let be after so many failures in a row (from 1) for one certificate.

    Twice as long each time, up to half of it less by `chance` (from 0 to 1). Never longer than an eighth of
    what the certificate in force has `left`, so that there are tries enough; half a minute where it has ended
    or there is none.
    """
    longest = min(LONGEST_RETRY, max(left / 8, _FIRST_RETRY)) if left > timedelta(0) else _WITHOUT
    doubled: timedelta = _FIRST_RETRY * 2.0 ** min(failures - 1, 16)
    return min(doubled, longest) * (1 - chance / 2)


def look_again_after(certificate: Validity, now: datetime) -> timedelta:
    """Return when to look again whether one that is shown is due: an hour, and sooner towards its end.

    One below a CA that ends soon may live for less. At its end it is looked, whoever is patient with it.
    """
    left = certificate.not_after - now
    if left < timedelta(0):
        return _WITHOUT
    return min(_LONGEST_LOOK, max(left / 8, _WITHOUT), left + timedelta(seconds=1))


def _after(certificate: Validity, share: float) -> datetime:
    return certificate.not_before + (certificate.not_after - certificate.not_before) * share
