"""Store of service certificates with keys, in records that several servers share."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from certs.errors import CorruptPairError, StateError
from certs.keys.pair import Pair
from certs.pair_records.fields import SERVICES, key_of_holder, pair_in, serial_in, with_pair
from certs.pair_records.known_pairs import KnownPairs
from certs.state.sealing import RecordSeal
from certs.state.stored_pair import Holder
from meshwright.records.content import Fields, UnreadableContentError
from meshwright.records.contract import Changes, RecordsError, RecordStore, ReplicaId
from meshwright.records.key import Key
from meshwright.records.threads import ThreadCalls
from meshwright.records.update import Version, Writer, update


def ignore(holders: frozenset[Holder]) -> None:
    """Ignore the holders of changed pairs."""
    del holders


class RecordedPairs:
    """A server's view of the shared service certificates, implementing `certs.state.stored_pair.Pairs`.

    All methods raise ValueError for the certificate of a server, because each server has its own.

    `load` answers from memory, which `follow` keeps up to date, because a wave loads thousands of pairs one
    after the other. An old answer does no harm: whoever then issues another pair is given the stored one by
    `keep`. That method waits for the store, so it is for threads; on the event loop of the store it raises
    `CallOnLoopError`.

    Before the first list has arrived, reads raise StateError. Otherwise a start would issue all certificates
    again, and forget the roots of former issuers.
    """

    def __init__(
        self, store: RecordStore, replica: ReplicaId, loop: asyncio.AbstractEventLoop, seal: RecordSeal
    ) -> None:
        self._store = store
        self._writer = Writer(replica)
        self._calls = ThreadCalls(loop)
        self._seal = seal
        self._known = KnownPairs()
        self._listed = asyncio.Event()

    async def follow(self, changed: Callable[[frozenset[Holder]], None] = ignore) -> None:
        """Keep the pairs up to date until cancelled; call on the event loop of the store.

        `changed` is called with the holders whose record is another one than this server knew, and must not
        wait. Whoever holds a pair of them compares it with the stored one (`CertificateManager.compare`).
        """
        is_first = True

        def hear(changes: Changes) -> None:
            nonlocal is_first
            keys = self._known.hear(changes, is_all=is_first)
            is_first = False
            self._listed.set()
            if keys:
                changed(frozenset(map(Holder, keys)))

        await self._store.follow(SERVICES, hear)

    async def listed(self) -> None:
        """Wait until `follow` has had all pairs once; call on the event loop of the store."""
        await self._listed.wait()

    def load(self, holder: Holder) -> Pair | None:
        """Return a holder's pair, or None without one; does not wait.

        Raises CorruptPairError for a damaged pair, or one of another record.
        """
        key = key_of_holder(holder)
        self._require_list()
        fields = self._known.fields(key)
        return None if fields is None else pair_in(fields, key, self._seal)

    def keep(self, holder: Holder, pair: Pair, before: str | None) -> Pair:
        """Store a pair in the place of the one with the serial `before`; return the stored pair.

        Raises StateError if the store does not answer, and for a record of a newer version. The pair may
        then be stored later all the same.
        """
        key = key_of_holder(holder)
        try:
            return self._calls.run(self._keep(key, pair, before))
        except (RecordsError, UnreadableContentError) as error:
            raise StateError(f"the shared service certificates cannot be written: {error}") from error

    def place(self, holder: Holder) -> str:
        """Return the name of a holder's record."""
        return f"record {key_of_holder(holder)}"

    def count(self) -> int:
        """Return the number of all pairs; does not wait."""
        return self._known.count()

    def services_end(self) -> datetime | None:
        """Return the latest end of all service certificates, or None without any; does not wait."""
        self._require_list()
        return max(self._known.ends(), default=None)

    def last_end(self) -> datetime | None:
        """Return the same as `services_end`: certificates of servers are in their state directories."""
        return self.services_end()

    async def _keep(self, key: Key, pair: Pair, before: str | None) -> Pair:
        stored = pair

        def change(fields: Fields | None) -> Fields | None:
            nonlocal stored
            there = None if fields is None else self._other(key, fields, before)
            stored = pair if there is None else there
            return with_pair(fields, key, pair, self._seal) if there is None else None

        self._take(key, await update(self._store, key, change, self._writer))
        return stored

    def _other(self, key: Key, fields: Fields, before: str | None) -> Pair | None:
        """Return the stored pair, unless it is the one with the serial `before`, or corrupt."""
        # The certificate is read faster than it is compared with its key.
        if before is not None and serial_in(fields) == before:
            return None
        with suppress(CorruptPairError):
            return pair_in(fields, key, self._seal)
        return None

    def _take(self, key: Key, version: Version) -> None:
        if version.content is not None:
            self._known.take(key, version.content, version.encoded)

    def _require_list(self) -> None:
        if not self._listed.is_set():
            raise StateError(
                "the shared service certificates are unknown, because the store has not answered yet"
            )
