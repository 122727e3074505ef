"""When certificates are to be renewed: decisions only, with the time as an argument.

A certificate is due once two thirds of its life are over. That leaves eight hours of a day's certificate
for an issuer that is down or for proxies that are away, and because lives are jittered, renewals are too.
"""

from datetime import datetime, timedelta
from typing import Final, Protocol

CA_ENDS_SOON: Final = timedelta(days=180)
"""When it is time to think of the CA's end: what it signs ends with it."""


class Lived(Protocol):
    """Anything with a validity: `not_before` and `not_after`, both inclusive (RFC 5280, 4.1.2.5)."""

    @property
    def not_before(self) -> datetime:
        """Return the first second at which it is valid."""

    @property
    def not_after(self) -> datetime:
        """Return the last second at which it is valid."""


def renew_at(certificate: Lived) -> datetime:
    """Return the moment from which a certificate is to be renewed: after two thirds of its life."""
    return certificate.not_before + (certificate.not_after - certificate.not_before) * 2 / 3


def due(certificate: Lived, now: datetime) -> bool:
    """Say whether a certificate must be renewed now.

    One that is not valid yet is due as well: our clock was set back, and peers may already refuse it.
    """
    return now < certificate.not_before or now >= renew_at(certificate)
