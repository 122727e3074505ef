"""CA bundles confirmed by machines: the evidence for each step of a change of the root."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from meshwright.mesh.identity import ProxyName


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The last confirmation of a machine: CA bundle digest, certificate serial, and time.

    `sent_digests` are the digests of bundles sent to the machine since then, which may have replaced this
    bundle.
    """

    bundle_digest: str
    serial: str
    at: datetime
    sent_digests: frozenset[str] = frozenset()

    @property
    def possible(self) -> frozenset[str]:
        """Return the digests of all bundles that the machine may have now."""
        return self.sent_digests | {self.bundle_digest}


class Confirmations:
    """The last confirmation of each proxy since the start of this server.

    Old confirmations can be forgotten between two changes of the root, because they contain no new CA.
    """

    def __init__(self) -> None:
        self._last: dict[ProxyName, Confirmation] = {}
        self._tidied: datetime | None = None

    def note(self, name: ProxyName, confirmation: Confirmation) -> None:
        """Record a machine's confirmation of the CA bundle in use, which replaces the last one."""
        self._last[name] = confirmation

    def give(self, name: ProxyName, bundle_digest: str) -> None:
        """Record a CA bundle as sent to a machine, and not yet confirmed."""
        # A machine without a confirmation is not counted by `are_all` in any case.
        if (last := self._last.get(name)) is not None:
            self._last[name] = replace(last, sent_digests=last.sent_digests | {bundle_digest})

    def tidy(self, now: datetime, kept: timedelta) -> None:
        """Drop confirmations older than `kept`; without effect until `kept` after the last effective call."""
        if self._tidied is None or now - self._tidied >= kept:
            self._tidied = now
            self._last = {
                name: confirmation
                for name, confirmation in self._last.items()
                if now - confirmation.at < kept
            }

    def last(self, name: ProxyName) -> Confirmation | None:
        """Return a proxy's last confirmation of a CA bundle, or `None`."""
        return self._last.get(name)

    def all(self) -> dict[ProxyName, Confirmation]:
        """Return the last confirmation of a CA bundle by each proxy."""
        return dict(self._last)

    def are_all(self, bundle_digest: str, since: datetime) -> bool:
        """Return whether all machines with a confirmation after `since` trust exactly this CA bundle."""
        return all(
            confirmation.possible == {bundle_digest}
            for confirmation in self.all().values()
            if confirmation.at >= since
        )
