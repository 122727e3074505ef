"""Times of joining, renewal and requests for roots: pure decisions, with the time as an argument."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from certs.keys.material import PeerCertificate
from certs.renewal import alarm_at, renew_at

FIRST_RETRY: Final = timedelta(seconds=5)
LAST_RETRY: Final = timedelta(minutes=10)
WITHOUT: Final = timedelta(seconds=30)
"""Longest pause after a certificate has expired, because each try is a process and machines are many."""
LEAST_BETWEEN: Final = timedelta(minutes=1)
"""Shortest time between renewals: with a clock months ahead every new certificate is due at once."""
CLOCK_APART: Final = timedelta(minutes=5)
"""Difference to the server's clock above which a warning is logged."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Times of the next certificate renewal and of the next request for trusted roots."""

    renew: datetime
    trust: datetime

    @property
    def next(self) -> datetime:
        """Return the earlier of both times."""
        return min(self.renew, self.trust)


def planned(
    certificate: PeerCertificate, renew_after: datetime | None, trust: datetime, retry: datetime | None
) -> Plan:
    """Return the next times: renewal at half of the certificate's life, or earlier if the server says so.

    `retry` is the time of the next try after a failed renewal.
    """
    due = min(renew_at(certificate), renew_after or datetime.max.replace(tzinfo=trust.tzinfo))
    return Plan(due if retry is None else retry, trust)


def retry_after(failures: int, left: timedelta, drawn: float) -> timedelta:
    """Return the pause after consecutive failures; `drawn` is a random number from 0 to 1.

    The pause doubles up to LAST_RETRY. The pause is at most an eighth of the remaining life (`left`), or
    WITHOUT after the expiry, and at least half of FIRST_RETRY.
    """
    longest = max(left / 8, FIRST_RETRY) if left > timedelta() else WITHOUT
    doubled: timedelta = FIRST_RETRY * 2 ** min(failures - 1, 10)
    return min(doubled, LAST_RETRY, longest) * (0.5 + drawn / 2)


def alarming(certificate: PeerCertificate, now: datetime) -> bool:
    """Return whether less than a quarter of a certificate's life is left."""
    return now >= alarm_at(certificate)


def clock_words(server: datetime, now: datetime) -> str:
    """Return a sentence about a difference of more than CLOCK_APART between this clock and the server's.

    For a smaller difference the text is empty.
    """
    apart = now - server
    if abs(apart) <= CLOCK_APART:
        return ""
    which = "ahead of" if apart > timedelta() else "behind"
    return (
        f"the clock of this machine is {round(abs(apart) / timedelta(minutes=1))} minutes "
        f"{which} the clock of the control plane"
    )
