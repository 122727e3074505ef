"""Watch over a CA that another program manages; every part that depends on the CA learns of a change."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final

import structlog

from certs.custody import AuthorityWithLedger
from certs.keys.bundle import TrustBundle
from certs.roots.succeeding_authority import LOOKING
from meshwright.controller.issuing.periodic import tending
from meshwright.enrolment.trust import Confirmations

_MISSED: Final = 3
"""Number of missed trust requests after which a machine counts as absent."""

_log = structlog.get_logger("controller.following")


class ForeignAuthorityWatch:
    """Watch over the CA of an opened state directory; does nothing for a CA of our own.

    `stepped` informs all parts that depend on CA certificates.
    """

    def __init__(self, authority: AuthorityWithLedger, stepped: Callable[[], Awaitable[None]]) -> None:
        self._authority = authority
        self._stepped = stepped
        self._followed = self._current()
        self._is_noted = True

    async def running(self, clock: Callable[[], datetime]) -> None:
        """Check periodically whether the CA has been replaced, until cancelled."""
        await tending("authority", self._authority.opened_authority.kind.value, LOOKING, self.look, clock)

    async def look(self, now: datetime) -> None:
        """Load the present CA.

        Raise CertificateError if the new one is unusable, and keep the old one then.
        """
        tend = self._authority.opened_authority.tend
        if tend is None:
            return
        try:
            await asyncio.to_thread(tend, now)
        finally:
            # Also after an error: the CA may have changed although something else failed.
            await self._follow()

    async def _follow(self) -> None:
        """Pass a change on, then write the new signer to the ledger as soon as possible."""
        if (stands := self._current()) != self._followed:
            self._followed, self._is_noted = stands, False
            _log.info("CA roots changed", signer=stands[0])
            await self._stepped()
        if not self._is_noted:
            await asyncio.to_thread(self._note_signer)
            self._is_noted = True

    def _current(self) -> tuple[str, bytes]:
        authority = self._authority.authority
        return authority.fingerprint, authority.trust_bundle()

    def _note_signer(self) -> None:
        """Write the fingerprint of the signing CA to the ledger, unless the ledger is being rebuilt."""
        ledger, signer = self._authority.ledger, self._authority.authority.fingerprint
        if self._authority.rebuilding is None and ledger.authority() != signer:
            ledger.change_authority(signer)


def patience(
    authority: AuthorityWithLedger, confirmations: Confirmations, trust_seconds: int
) -> Callable[[datetime], bool]:
    """Return a function from a time to whether some machines may still lack the present signing CA.

    All machines have the CA once their time is over and every machine that still sends trust requests (one
    each `trust_seconds`) has confirmed the CA. A change of the mesh's own root waits for machines by its
    stages.
    """
    succeeding = authority.opened_authority.succeeding

    def patient(now: datetime) -> bool:
        if succeeding is None:
            return False
        if now < succeeding.settled():
            return True
        digest = TrustBundle.from_pems([authority.authority.trust_bundle()]).digest
        since = now - _MISSED * timedelta(seconds=trust_seconds)
        return bool(succeeding.formers) and not confirmations.are_all(digest, since)

    return patient
