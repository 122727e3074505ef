"""Which roots each machine has said that it trusts: the evidence for a change of roots."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from meshwright.mesh.identity import ProxyName


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
    """The last word of each proxy since this server began; who has said nothing yet is not there.

    Who says nothing any more can be forgotten between two changes: what it had said has no root that is new.
    """

    def __init__(self) -> None:
        self._last: dict[ProxyName, Confirmation] = {}
        self._tidied: datetime | None = None

    def note(self, name: ProxyName, confirmation: Confirmation) -> None:
        """Note what a machine has said."""
        self._last[name] = confirmation

    def give(self, name: ProxyName, bundle_digest: str) -> None:
        """Note that a machine was given roots, and has not said yet that it has them."""
        if (last := self._last.get(name)) is not None:
            self._last[name] = replace(last, given=last.given | {bundle_digest})

    def tidy(self, now: datetime, kept: timedelta) -> None:
        """Forget, once in that time, who has said nothing for so long: proxies come and go."""
        if self._tidied is None or now - self._tidied >= kept:
            self._tidied = now
            self._last = {name: each for name, each in self._last.items() if now - each.at < kept}

    def of(self, name: ProxyName) -> Confirmation | None:
        """Return what a machine has said last."""
        return self._last.get(name)

    def all(self) -> dict[ProxyName, Confirmation]:
        """Return what everybody has said last."""
        return dict(self._last)

    def are_all(self, bundle_digest: str, since: datetime) -> bool:
        """Say whether everybody who has said anything since then has these roots, and no others."""
        return all(each.possible == {bundle_digest} for each in self.all().values() if each.at >= since)
