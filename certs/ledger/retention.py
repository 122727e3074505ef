"""Facts by which a shared ledger decides how long it remembers the certificates of a proxy. A pure module."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Retention:
    """Facts about one proxy at a time.

    - `gone_since` is the time since which no Pod or machine with the proxy has existed, in the mesh or
      outside it; None if there is one, and if this is unknown.
    - `keeps_revoked` is True if revoked certificates are never forgotten, because the mesh accepts installed
      kinds of proof, whose validity is unknown.
    """

    now: datetime
    gone_since: datetime | None = None
    keeps_revoked: bool = False

    @property
    def has_workload(self) -> bool:
        """Return whether a Pod or machine with the proxy exists, or may exist."""
        return self.gone_since is None
