"""On what terms certificates are issued: for how long, and by when a proxy must have used its own."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

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
    """How long a proxy certificate lives, and within what time it must be used first; None: at any time."""

    validity: timedelta = VALIDITY
    claim_within: timedelta | None = None
