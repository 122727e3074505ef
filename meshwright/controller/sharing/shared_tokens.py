"""Join tokens that several servers share."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from meshwright.enrolment.store.contract import TokenStore
from meshwright.enrolment.store.lost_tokens import is_revoked, mend_token
from meshwright.enrolment.store.records import RecordedTokens
from meshwright.enrolment.store.token_fields import TOKENS
from meshwright.records.contract import RecordStore, ReplicaId
from meshwright.records.recovery.domain import Domain

LISTED_TOKENS: Final = TOKENS
"""Common beginning of the records of shared join tokens."""

TOKEN_DOMAIN: Final = Domain(TOKENS, mend_token, is_revoked)
"""What a store may lose of join tokens."""


class SharedTokens:
    """The join tokens that several servers share, which are open as long as the server runs."""

    def __init__(self, store: RecordStore, replica: ReplicaId, loop: asyncio.AbstractEventLoop) -> None:
        self._tokens = RecordedTokens(store, replica, loop)

    async def follow(self) -> None:
        """Keep the tokens up to date until cancelled; call on the event loop of the store."""
        await self._tokens.follow()

    @contextmanager
    def opened(self) -> Iterator[TokenStore]:
        """Yield the store."""
        yield self._tokens
