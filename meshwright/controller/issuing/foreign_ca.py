"""Following an authority whose CA is somebody else's: what depends on roots looks at them as they change."""

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
"""Who has not asked for so many times as long as it waits between two is away."""

_log = structlog.get_logger("controller.following")


class ForeignAuthorityWatch:
    """Looks after the authority of an opened state directory, if there is anything to look at.

    `stepped` has whatever depends on roots look at them.
    """

    def __init__(self, found: AuthorityWithLedger, stepped: Callable[[], Awaitable[None]]) -> None:
        self._found = found
        self._stepped = stepped
        self._followed = self._stands()
        self._is_noted = True

    async def running(self, clock: Callable[[], datetime]) -> None:
        """Look, until cancelled."""
        await tending("authority", self._found.whose.kind.value, LOOKING, self.look, clock)

    async def look(self, now: datetime) -> None:
        """Take the CA that is there now, if it is another; raise CertificateError where it is bad.

        Then the one before goes on.
        """
        tend = self._found.whose.tend
        if tend is None:
            return
        try:
            await asyncio.to_thread(tend, now)
        finally:
            await self._follow()

    async def _follow(self) -> None:
        """Have roots looked at that are others, and then the ledger know who signs, as soon as it can."""
        if (stands := self._stands()) != self._followed:
            self._followed, self._is_noted = stands, False
            _log.info("roots of the authority are others", signer=stands[0])
            await self._stepped()
        if not self._is_noted:
            await asyncio.to_thread(self._note_signer)
            self._is_noted = True

    def _stands(self) -> tuple[str, bytes]:
        authority = self._found.authority
        return authority.fingerprint, authority.trust_bundle()

    def _note_signer(self) -> None:
        """Have the ledger know who signs; while it is rebuilt nobody does."""
        ledger, signer = self._found.ledger, self._found.authority.fingerprint
        if self._found.rebuilding is None and ledger.authority() != signer:
            ledger.change_authority(signer)


def patience(
    found: AuthorityWithLedger, confirmations: Confirmations, trust_seconds: int
) -> Callable[[datetime], bool]:
    """Return what says whether machines may not have heard yet of the CA that signs now.

    They have when there was time for it, and all that still ask, every `trust_seconds`, have said so. A root
    of our own that changes waits for them by its stages.
    """
    succeeding = found.whose.succeeding

    def patient(now: datetime) -> bool:
        if succeeding is None:
            return False
        if now < succeeding.settled():
            return True
        digest = TrustBundle.of([found.authority.trust_bundle()]).digest
        since = now - _MISSED * timedelta(seconds=trust_seconds)
        return bool(succeeding.formers) and not confirmations.are_all(digest, since)

    return patient
