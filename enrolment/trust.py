"""Which roots each machine has said that it trusts: the evidence for a change of roots."""

from dataclasses import dataclass, replace
from datetime import datetime

from mesh.identity import ProxyName


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What a machine has said last: the digest of its roots, with which certificate, and when.

    `given` are the digests of the roots that it was given since then, which take the place of those.
    """

    bundle_digest: str
    serial: str
    at: datetime
    given: frozenset[str] = frozenset()

    @property
    def possible(self) -> frozenset[str]:
        """Return the digests of which its roots have one: what was given may be in its place, or may not."""
        return self.given | {self.bundle_digest}


class Confirmations:
    """The last word of each proxy since this server began; who has said nothing yet is not there."""

    def __init__(self) -> None:
        self._last: dict[ProxyName, Confirmation] = {}

    def note(self, name: ProxyName, confirmation: Confirmation) -> None:
        """Note what a machine has said."""
        self._last[name] = confirmation

    def give(self, name: ProxyName, bundle_digest: str) -> None:
        """Note that a machine was given roots, and has not said yet that it has them."""
        if (last := self._last.get(name)) is not None:
            self._last[name] = replace(last, given=last.given | {bundle_digest})

    def of(self, name: ProxyName) -> Confirmation | None:
        """Return what a machine has said last."""
        return self._last.get(name)

    def all(self) -> dict[ProxyName, Confirmation]:
        """Return what everybody has said last."""
        return dict(self._last)
