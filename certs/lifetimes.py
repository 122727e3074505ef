"""On what terms certificates are issued: for how long, and by when a proxy must have used its own."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Self

VALIDITY: Final = timedelta(days=90)
"""How long a proxy certificate lives unless asked otherwise: long, because it can be revoked."""

BACKDATED: Final = timedelta(seconds=60)
"""How far before its making a certificate is valid, for peers whose clocks are a little behind."""

BACKDATED_SHARE: Final = 0.1
"""And how much of its life at most: else half of a short life would be over before it begins."""

MOST_DAYS: Final = 3652
"""The longest life of one in days, ten years: nothing outlives the CA that signed it anyway."""


@dataclass(frozen=True, slots=True)
class ProxyTerms:
    """How long a proxy certificate lives, and within what time it must be used first; None: at any time.

    `asked`: the validity was asked for, so that the certificate is renewed for as long.
    """

    validity: timedelta = VALIDITY
    claim_within: timedelta | None = None
    asked: bool = False

    def asking(self, validity: timedelta | None, claim_within: timedelta | None = None) -> Self:
        """Return these terms but for what is asked for."""
        return replace(
            self,
            validity=self.validity if validity is None else validity,
            claim_within=claim_within or self.claim_within,
            asked=validity is not None,
        )

    @property
    def term(self) -> timedelta | None:
        """Return the validity that was asked for; None where none was."""
        return self.validity if self.asked else None


def term_shown(not_before: datetime, not_after: datetime, usual: timedelta) -> timedelta | None:
    """Return what seems to have been asked for, by a certificate of which nothing else is known.

    That is a life of whole days which is not the `usual` one; any other has ended with its signer.
    """
    life = not_after - not_before
    days = timedelta(days=life // timedelta(days=1))
    return days if days and life - days <= BACKDATED and days != usual else None
