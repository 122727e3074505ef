"""Turns of several servers at one issuer, so that one of them requests each certificate."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from certs.renewal import NumberedValidity, due
from meshwright.mesh.identity import ServiceIdentity

TURN: Final = timedelta(seconds=5)
"""Time that a server gives each server before it. Its certificate in force is valid meanwhile."""

LONGEST: Final = timedelta(seconds=30)
"""Longest time that a server waits for all servers before it."""


class IssuerTurns:
    """The identities whose certificate this server requests later than another one.

    `turn` returns the turn of this server for an identity, from 0. A server that has had its turn requests
    at once, until `done`. One caller at a time; any thread may call `next`.
    """

    def __init__(self, turn: Callable[[ServiceIdentity], int]) -> None:
        self._turn = turn
        self._at: dict[ServiceIdentity, datetime] = {}
        self._had: set[ServiceIdentity] = set()

    def waits(self, identity: ServiceIdentity, in_force: NumberedValidity | None, now: datetime) -> bool:
        """Return whether other servers should request the certificate of an identity before this one.

        Without a certificate in force a proxy waits, so nothing else does. A renewal does not wait either: it
        is due at another time at each server (`certs.renewal.renew_at`).
        """
        turn = self._turn(identity)
        if identity in self._had or in_force is None or due(in_force, now, turn):
            return False
        at = self._at.setdefault(identity, now + min(turn * TURN, LONGEST))
        # After the clock was set back, the time may be far away.
        if now < at <= now + LONGEST:
            return True
        del self._at[identity]
        self._had.add(identity)
        return False

    def done(self, identity: ServiceIdentity) -> None:
        """Forget an identity whose certificate has come, or is not needed any more."""
        self._at.pop(identity, None)
        self._had.discard(identity)

    def due(self, now: datetime) -> set[ServiceIdentity]:
        """Return the identities whose turn has come."""
        return {identity for identity, at in self._at.items() if not now < at <= now + LONGEST}

    @property
    def waiting(self) -> frozenset[ServiceIdentity]:
        """Return the identities whose turn has not come."""
        return frozenset(self._at)

    @property
    def next(self) -> datetime | None:
        """Return the time of the next turn; None without any."""
        return min(self._at.values(), default=None)
