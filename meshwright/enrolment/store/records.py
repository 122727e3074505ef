"""Join tokens in records that several servers share."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Final

import structlog

from certs.errors import RequestError, StateError
from meshwright.enrolment.store.contract import REMEMBERED, TokenRedemption, TokenRefused
from meshwright.enrolment.store.known_tokens import KnownTokens
from meshwright.enrolment.store.token_fields import (
    TOKENS,
    StoredToken,
    first_slot,
    given_back,
    is_given_back,
    is_token_id,
    is_use_of,
    key_of_token,
    key_of_use,
    read_token_fields,
    read_use,
    token_fields,
    use_fields,
    with_revocation,
)
from meshwright.enrolment.tokens import JoinToken, TokenRecord, TokenRefusal, has_secret, unusable
from meshwright.records.content import Fields, UnreadableContentError
from meshwright.records.contract import Changes, Record, RecordsError, RecordStore, ReplicaId
from meshwright.records.key import Key
from meshwright.records.threads import ThreadCalls
from meshwright.records.update import Change, Version, Writer, remove, update

VERIFIED: Final = 8
"""Number of uses looked up in the store, although this server knows that other keys have them."""

MOST_REMOVALS: Final = 1000
"""Limit of the records of old tokens that are removed at once; the others are removed with the next token."""

_log = structlog.get_logger("enrolment.store.records")


class _TakenError(Exception):
    """Error for a use that another key has."""


class RecordedTokens:
    """A server's view of the shared tokens, implementing `enrolment.store.contract.TokenStore`.

    All methods but `tokens` may wait for the store, so they are for threads; on the event loop of the store
    they raise `CallOnLoopError`. A key that has a use keeps it.
    """

    def __init__(self, store: RecordStore, replica: ReplicaId, loop: asyncio.AbstractEventLoop) -> None:
        self._store = store
        self._writer = Writer(replica)
        self._calls = ThreadCalls(loop)
        self._known = KnownTokens()

    async def follow(self) -> None:
        """Keep the tokens up to date until cancelled; call on the event loop of the store."""
        is_first = True

        def hear(changes: Changes) -> None:
            nonlocal is_first
            self._known.hear(changes, is_all=is_first)
            is_first = False

        await self._store.follow(TOKENS, hear)

    def add(self, token: JoinToken, record: TokenRecord) -> None:
        """Store a join token, and remove tokens that expired long before."""
        with _explained():
            self._calls.run(self._add(token, record))

    def tokens(self) -> tuple[TokenRecord, ...]:
        """Return the records of all join tokens, oldest first; does not wait."""
        return self._known.all()

    def revoke(self, token: str, now: datetime) -> TokenRecord:
        """Revoke a join token; a second call has no effect. Raises RequestError for an unknown id."""
        with _explained():
            return self._calls.run(self._revoke(token, now))

    def recognise(self, token: JoinToken) -> None:
        """Raise TokenRefused if the token does not exist, or has another secret.

        Only a token that is unknown here is looked up in the store.
        """
        if (stored := self._known.token(token.id)) is not None:
            _recognised(token, stored)
            return
        with _explained():
            self._calls.run(self._recognised(token))

    def redeem(self, token: JoinToken, key: str, now: datetime) -> TokenRedemption:
        """Assign a use of a join token to a key digest, unless the key has one; raise TokenRefused."""
        with _explained():
            return self._calls.run(self._redeem(token, key, now))

    def give_back(self, token: str, key: str) -> None:
        """Cancel a key's use of a join token, so another key can use the token."""
        with _explained():
            self._calls.run(self._give_back(token, key))

    async def _add(self, token: JoinToken, record: TokenRecord) -> None:
        added = token_fields(token, record)

        def change(fields: Fields | None) -> Fields | None:
            if fields is not None and fields != added:
                raise StateError(f"join token {record.id} exists already")
            return None if fields == added else added

        await self._update(key_of_token(record.id), change)
        await self._remove_ended(record.made_at)

    async def _remove_ended(self, now: datetime) -> None:
        """Remove tokens that ended long ago, uses first: a use without its token would stay for ever."""
        ended = [token for token in self._known.all() if token.expires_at < now - REMEMBERED]
        keys = [key for token in ended for key in (*self._keys_of_uses(token.id), key_of_token(token.id))]
        try:
            for key in keys[:MOST_REMOVALS]:
                await self._remove(key)
        except (RecordsError, UnreadableContentError) as error:
            _log.warning("old join tokens are not removed", tokens=[t.id for t in ended], reason=str(error))

    async def _revoke(self, token: str, now: datetime) -> TokenRecord:
        missing = RequestError(
            f"join token {token[:80]!r} does not exist: `meshwright certs token list` lists all of them"
        )

        def change(fields: Fields | None) -> Fields | None:
            if fields is None:
                raise missing
            read_token_fields(token, fields)
            return with_revocation(fields, now)

        if not is_token_id(token):
            raise missing
        await self._update(key_of_token(token), change)
        stored = self._known.token(token)
        if stored is None:
            raise missing
        return stored.record

    async def _recognised(self, token: JoinToken) -> StoredToken:
        """Return the token as it is in the store now; raise TokenRefused."""
        if not is_token_id(token.id):
            raise TokenRefused(TokenRefusal.UNKNOWN)

        def look(fields: Fields | None) -> None:
            if fields is not None:  # an older readable form, still known here, does not count
                read_token_fields(token.id, fields)

        await self._update(key_of_token(token.id), look)
        stored = self._known.token(token.id)
        if stored is None:
            raise TokenRefused(TokenRefusal.UNKNOWN)
        return _recognised(token, stored)

    async def _redeem(self, token: JoinToken, key: str, now: datetime) -> TokenRedemption:
        stored = self._known.token(token.id) or await self._recognised(token)
        _require_usable(_recognised(token, stored), now)
        is_first = await self._use(stored.record, key, now)
        # The token is read after the use is taken: so no use of a revoked token is left, in any order.
        try:
            current = await self._recognised(token)
            _require_usable(current, now)
        except (TokenRefused, UnreadableContentError):
            if is_first:
                await self._give_back(token.id, key)
            raise
        used = replace(current.record, used=current.record.used - is_first)
        return TokenRedemption(used, is_first)

    async def _use(self, token: TokenRecord, key: str, now: datetime) -> bool:
        """Take a use for a key; return False if the key has one. Raises TokenRefused (USED_UP)."""
        is_created, holder, holders = False, None, self._known.uses(token.id)

        def change(fields: Fields | None) -> Fields | None:
            nonlocal is_created
            if fields is None and holder not in (None, key):
                # The store has lost the use, because one that is given back stays as a record.
                raise _TakenError
            is_created = fields is None or is_given_back(fields)
            if fields is not None and not is_created and read_use(fields) != key:
                raise _TakenError
            return use_fields(key, now, token.expires_at) if is_created else None

        for slot in self._slots(token, key):
            slot_key, holder = key_of_use(token.id, slot), holders.get(slot)
            try:
                await self._update(slot_key, change)
            except (_TakenError, UnreadableContentError):
                continue
            return is_created
        raise TokenRefused(TokenRefusal.USED_UP, token.id)

    def _slots(self, token: TokenRecord, key: str) -> Iterator[int]:
        """Yield the uses to try: of this key, free ones, and some that others had when we last heard."""
        uses = self._known.uses(token.id)
        begin = first_slot(key, token.uses)
        order = [*range(begin, token.uses), *range(begin)]
        yield from (slot for slot in order if uses.get(slot) == key)
        yield from (slot for slot in order if slot not in uses)
        yield from [slot for slot in order if uses.get(slot, key) != key][:VERIFIED]

    async def _give_back(self, token: str, key: str) -> None:
        is_own = is_use_of(key)

        def change(fields: Fields | None) -> Fields | None:
            if fields is None or is_given_back(fields) or not is_own(fields):
                return None
            return given_back(fields)

        for slot, holder in self._known.uses(token).items():
            if holder == key:
                await self._update(key_of_use(token, slot), change)

    def _keys_of_uses(self, token: str) -> Iterable[Key]:
        return (key_of_use(token, slot) for slot in sorted(self._known.slots(token)))

    async def _remove(self, key: Key) -> None:
        if await remove(self._store, key, _always):
            self._known.take(key, None)

    async def _update(self, key: Key, change: Change) -> None:
        self._take(key, await update(self._store, key, change, self._writer))

    def _take(self, key: Key, version: Version) -> None:
        record = None if version.revision is None else Record(key, version.encoded, version.revision)
        self._known.take(key, record)


def _recognised(token: JoinToken, stored: StoredToken) -> StoredToken:
    """Return the stored token if the secret is right; raise TokenRefused otherwise."""
    if not has_secret(token, stored.secret_digest):
        raise TokenRefused(TokenRefusal.WRONG_SECRET, token.id)
    return stored


def _require_usable(stored: StoredToken, now: datetime) -> None:
    if (reason := unusable(stored.record, now)) is not None:
        raise TokenRefused(reason, stored.record.id)


def _always(fields: Fields) -> bool:
    """Return True: the record is removed, whatever its fields are."""
    del fields
    return True


@contextmanager
def _explained() -> Iterator[None]:
    """Raise errors of the store as StateError."""
    try:
        yield
    except (RecordsError, UnreadableContentError) as error:
        raise StateError(f"the shared join tokens cannot be used: {error}") from error
