"""Lifetimes of certificates, and the time limit for the first use by a proxy."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Self

VALIDITY: Final = timedelta(days=90)
"""Default validity of a proxy certificate: long, because revocation is possible."""

BACKDATED: Final = timedelta(seconds=60)
"""Time before the issuance from which a certificate is valid, for peers whose clocks are slightly slow."""

BACKDATED_SHARE: Final = 0.1
"""Greatest backdating as a fraction of the life, so a short life is not half over at the start."""

MOST_DAYS: Final = 3652
"""Greatest validity in days (10 years). A certificate never outlives the CA in any case."""


@dataclass(frozen=True, slots=True)
class ProxyTerms:
    """Validity of a proxy certificate, and the time limit of the first use (None: unlimited).

    `is_requested` is True for a requested validity, which is kept at renewals.
    """

    validity: timedelta = VALIDITY
    claim_within: timedelta | None = None
    is_requested: bool = False

    def asking(self, validity: timedelta | None, claim_within: timedelta | None = None) -> Self:
        """Return these terms with the requested validity, and the requested time limit of the first use."""
        return replace(
            self,
            validity=self.validity if validity is None else validity,
            claim_within=claim_within or self.claim_within,
            is_requested=validity is not None,
        )

    @property
    def term(self) -> timedelta | None:
        """Return the requested validity; None for the default."""
        return self.validity if self.is_requested else None


def term_shown(not_before: datetime, not_after: datetime, usual: timedelta) -> timedelta | None:
    """Return the probably requested validity of a certificate without a record.

    The result is a life of whole days other than `usual`, else None, because any other life was shortened by
    the signer. For example: 30 days and 60 s of back-dating give 30 days.
    """
    life = not_after - not_before
    days = timedelta(days=life // timedelta(days=1))
    return days if days and life - days <= BACKDATED and days != usual else None
