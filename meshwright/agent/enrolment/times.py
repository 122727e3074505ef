"""When the agent asks whom: decisions, with the time as an argument."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from certs.keys.material import PeerCertificate
from certs.renewal import alarm_at, renew_at

FIRST_RETRY: Final = timedelta(seconds=5)
LAST_RETRY: Final = timedelta(minutes=10)
WITHOUT: Final = timedelta(seconds=30)
"""So long it is waited at most once a certificate has ended: each try is a program, and machines are many."""
LEAST_BETWEEN: Final = timedelta(minutes=1)
"""By a clock that is months ahead every new certificate is due: so often it is renewed all the same."""
CLOCK_APART: Final = timedelta(minutes=5)
"""By so much a clock may differ from the server's before it is said."""


@dataclass(frozen=True, slots=True)
class Plan:
    """When to renew, and when to ask whom to trust."""

    renew: datetime
    trust: datetime

    @property
    def next(self) -> datetime:
        """Return the sooner of both."""
        return min(self.renew, self.trust)


def planned(
    certificate: PeerCertificate, renew_after: datetime | None, trust: datetime, retry: datetime | None
) -> Plan:
    """Return what is due when: a certificate at half of its life, or sooner where the server has said so.

    `retry` is when a renewal that failed is tried again.
    """
    due = min(renew_at(certificate), renew_after or datetime.max.replace(tzinfo=trust.tzinfo))
    return Plan(due if retry is None else retry, trust)


def retry_after(failures: int, left: timedelta, drawn: float) -> timedelta:
    """Return how long to wait after so many failures in a row, with a `drawn` number from 0 to 1.

    Ever longer, and not past an eighth of what is `left` of the certificate, or WITHOUT where nothing is;
    never less than half of the first wait.
    """
    longest = max(left / 8, FIRST_RETRY) if left > timedelta() else WITHOUT
    doubled: timedelta = FIRST_RETRY * 2 ** min(failures - 1, 10)
    return min(doubled, LAST_RETRY, longest) * (0.5 + drawn / 2)


def alarming(certificate: PeerCertificate, now: datetime) -> bool:
    """Say whether less than a quarter of a certificate's life is left."""
    return now >= alarm_at(certificate)


def clock_words(server: datetime, now: datetime) -> str:
    """Say how far the clock here is from the server's, if that is far."""
    apart = now - server
    if abs(apart) <= CLOCK_APART:
        return ""
    which = "ahead of" if apart > timedelta() else "behind"
    return f"the clock here is {round(abs(apart) / timedelta(minutes=1))} minutes {which} the control plane's"
