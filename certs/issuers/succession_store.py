"""Interface of the store for the present and former issuers of one role."""

from typing import Protocol

from certs.issuers.succession import Succession


class SuccessionStore(Protocol):
    """Store for the succession of the issuers of one role, for example of service certificates.

    The methods may wait for a disk or a network, and may be called from several threads.
    """

    @property
    def is_shared(self) -> bool:
        """Return whether other servers may record successions while this server runs."""

    def read(self) -> Succession | None:
        """Return the recorded succession, or None without a record. Raises StateError for a damaged one."""

    def replace(self, before: Succession | None, after: Succession) -> Succession:
        """Record a succession in the place of `before`; return the recorded one, durably stored.

        If another server has recorded another succession than `before`, that one stays and is returned.
        Raises StateError, without a change.
        """
