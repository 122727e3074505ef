"""Join tokens and their uses in memory, as the store of records has delivered them."""

import threading
from dataclasses import replace
from typing import Final

import structlog

from meshwright.enrolment.store.token_fields import (
    StoredToken,
    is_given_back,
    read_token_fields,
    read_use,
    token_and_slot,
)
from meshwright.enrolment.tokens import TokenRecord
from meshwright.records.content import Content, UnreadableContentError
from meshwright.records.contract import Changes, Record
from meshwright.records.key import Key

UNREADABLE: Final = ""
"""Key of a use whose record cannot be read: the use counts, but does not belong to a known machine."""

_log = structlog.get_logger("enrolment.store.records")


class KnownTokens:
    """The last readable form of each token. Only the event loop changes it; any thread may read.

    An unreadable token keeps its last readable form. A revocation that is known here stays, also if the store
    goes back to an older snapshot.
    """

    def __init__(self) -> None:
        self._tokens: dict[str, StoredToken] = {}
        self._uses: dict[str, dict[int, str]] = {}
        self._free: dict[str, set[int]] = {}
        self._lock = threading.Lock()

    def token(self, token: str) -> StoredToken | None:
        """Return the token with an id, or None."""
        with self._lock:
            stored = self._tokens.get(token)
            return None if stored is None else replace(stored, record=self._counted(stored))

    def all(self) -> tuple[TokenRecord, ...]:
        """Return all tokens with their numbers of uses, oldest first."""
        with self._lock:
            records = [self._counted(stored) for stored in self._tokens.values()]
        return tuple(sorted(records, key=lambda record: (record.made_at, record.id)))

    def uses(self, token: str) -> dict[int, str]:
        """Return the keys that have a use of a token, by slot."""
        with self._lock:
            return dict(self._uses.get(token, {}))

    def slots(self, token: str) -> frozenset[int]:
        """Return the slots of a token with a record: those in use, and those that were given back."""
        with self._lock:
            return frozenset(self._uses.get(token, {})) | self._free.get(token, set())

    def hear(self, changes: Changes, *, is_all: bool) -> None:
        """Take changes, or all that the store has."""
        if is_all:
            with self._lock:
                self._tokens.clear()
                self._uses.clear()
                self._free.clear()
        for record in changes.records:
            self.take(record.key, record)
        for key in changes.removed:
            self.take(key, None)

    def take(self, key: Key, record: Record | None) -> None:
        """Take a record as it is in the store, or None for a record that is not there."""
        try:
            token, slot = token_and_slot(key)
        except UnreadableContentError as error:
            _log.error("record of a join token cannot be read", key=key, reason=str(error))
            return
        with self._lock:
            if slot is not None:
                self._take_use(token, slot, record)
            elif record is None:
                self._tokens.pop(token, None)
            else:
                self._take_token(token, record)

    def _take_token(self, token: str, record: Record) -> None:
        try:
            stored = read_token_fields(token, Content.decode(record.content).fields)
        except UnreadableContentError as error:
            _log.error("record of a join token cannot be read", key=record.key, reason=str(error))
            return
        before = self._tokens.get(token)
        if before is not None and stored.record.revoked_at is None:
            stored = replace(stored, record=replace(stored.record, revoked_at=before.record.revoked_at))
        self._tokens[token] = stored

    def _take_use(self, token: str, slot: int, record: Record | None) -> None:
        uses, free = self._uses.setdefault(token, {}), self._free.setdefault(token, set())
        uses.pop(slot, None)
        free.discard(slot)
        if record is not None:
            try:
                fields = Content.decode(record.content).fields
                if is_given_back(fields):
                    free.add(slot)
                else:
                    uses[slot] = read_use(fields)
            except UnreadableContentError as error:
                _log.error("use of a join token cannot be read", key=record.key, reason=str(error))
                uses[slot] = UNREADABLE
        if not uses:
            del self._uses[token]
        if not free:
            del self._free[token]

    def _counted(self, stored: StoredToken) -> TokenRecord:
        uses = self._uses.get(stored.record.id, {})
        return replace(stored.record, used=sum(slot < stored.record.uses for slot in uses))
