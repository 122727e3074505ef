"""Which roots each machine has said that it trusts: the evidence for a change of roots."""

from dataclasses import dataclass
from datetime import datetime

from mesh.identity import ProxyName


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What a machine has said last: the digest of its roots, with which certificate, and when."""

    bundle_digest: str
    serial: str
    at: datetime


class Confirmations:
    """The last word of each proxy since this server began; who has said nothing yet is not there."""

    def __init__(self) -> None:
        self._last: dict[ProxyName, Confirmation] = {}

    def note(self, name: ProxyName, confirmation: Confirmation) -> None:
        """Note what a machine has said."""
        self._last[name] = confirmation

    def of(self, name: ProxyName) -> Confirmation | None:
        """Return what a machine has said last."""
        return self._last.get(name)

    def all(self) -> dict[ProxyName, Confirmation]:
        """Return what everybody has said last."""
        return dict(self._last)
