"""Following an authority whose CA is somebody else's: what depends on roots looks at them as they change."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

import structlog

from certs.issuers.succeeding_authority import LOOKING
from certs.opening import Opened
from controller.tending import tending

_log = structlog.get_logger("controller.following")


class Following:
    """Looks after the authority of an opened state directory, if there is anything to look at.

    `stepped` has whatever depends on roots look at them.
    """

    def __init__(self, found: Opened, stepped: Callable[[], Awaitable[None]]) -> None:
        self._found = found
        self._stepped = stepped

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
        before = self._stands()
        try:
            await asyncio.to_thread(tend, now)
        finally:
            if (stands := self._stands()) != before:
                _log.info("roots of the authority are others", signer=stands[0])
                await asyncio.to_thread(self._note_signer)
                await self._stepped()

    def _stands(self) -> tuple[str, bytes]:
        authority = self._found.authority
        return authority.fingerprint, authority.trust_bundle()

    def _note_signer(self) -> None:
        """Have the ledger know who signs; while it is rebuilt nobody does."""
        ledger, signer = self._found.ledger, self._found.authority.fingerprint
        if self._found.rebuilding is None and ledger.authority() != signer:
            ledger.change_authority(signer)
