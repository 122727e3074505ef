"""The state of the authority in one record, as an AuthorityStore for several servers."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Final

from certs.authority_records.fields import AUTHORITY, MEND, require_moved, require_proof, state_in, with_state
from certs.errors import StateError
from certs.issuers.root import CaNames
from certs.roots.authority_state import AuthorityState, is_step
from certs.roots.authority_store import CaSlot, FormerLeaderError, Overtaken, Revision, StoredAuthority
from certs.state.sealing import RecordSeal
from meshwright.records.content import Content, Fields, UnreadableContentError
from meshwright.records.contract import Changes, Epoch, RecordsError, RecordStore, ReplicaId
from meshwright.records.threads import ThreadCalls
from meshwright.records.update import OldEpochError, Writer, fenced, update

_STATUS: Final = "the rotation with `meshwright certs rotate-root --status`"
_NAMES: Final = {CaSlot.SIGNER: "ca", CaSlot.OTHER: "other"}


class RecordedAuthority:
    """A server's view of the shared state of the authority: the record `authority`, one compared write.

    All methods but `follow` wait for the store, so they are for threads; on the event loop of the store they
    raise `CallOnLoopError`. A read asks the store, so that each decision is about the present state.

    The leader takes the automatic steps of a root rotation through the view that `lead` returns: after the
    next leader has called `lead`, writes of that view are refused, even those that are under way. Any server
    may write without leadership what a command or a start asks for: begin or abort a rotation, give up
    proxies, make the first CA, note the first proxy and the issuers. For these the comparison is enough.

    A record that is damaged as a whole, changed by a program without the data key, or of a newer version, is
    an error of every method: it is never overwritten.
    """

    def __init__(
        self, store: RecordStore, replica: ReplicaId, loop: asyncio.AbstractEventLoop, seal: RecordSeal
    ) -> None:
        self._store = store
        self._replica = replica
        self._calls = ThreadCalls(loop)
        self._seal = seal
        self._writer = Writer(replica)

    @property
    def is_shared(self) -> bool:
        """Return True: several servers write the record."""
        return True

    @property
    def place(self) -> str:
        """Return the name of the record."""
        return f"the record {AUTHORITY}"

    def names(self, slot: CaSlot) -> CaNames:
        """Return the names of a CA's fields."""
        certificate, key, roots = (
            f"{_NAMES[slot]}.{part} of {self.place}" for part in ("certificate", "key", "roots")
        )
        return CaNames(certificate, key, roots, MEND)

    async def follow(self, changed: Callable[[], None]) -> None:
        """Call `changed` when the record may be another one, until cancelled.

        Call on the event loop of the store. The first call of `changed` follows at once, and one follows for
        each write, also of this server; `changed` must not wait.
        """

        def hear(changes: Changes) -> None:
            del changes
            changed()

        await self._store.follow(AUTHORITY, hear)

    def lead(self, epoch: Epoch) -> "RecordedAuthority":
        """Write the epoch of a leadership into the record; return the view for the acts of that leader.

        See `meshwright.records.update.fenced`. Raises StateError.
        """
        with _explained():
            writer = self._calls.run(fenced(self._store, AUTHORITY, self._replica, epoch))
        result = copy(self)
        result._writer = writer  # noqa: SLF001 - another view of the same class
        return result

    def recover(self) -> StoredAuthority:
        """Return the state: a write is one act, so a crash leaves nothing to finish."""
        return self.read()

    def read(self) -> StoredAuthority:
        """Return the present state, with Unreadable for each field that cannot be read.

        Raises StateError if the store does not answer.
        """
        return self._stored(self._present())

    def replace(self, before: Revision, state: AuthorityState) -> StoredAuthority:
        """Store a state in the place of that revision; return it with its new revision.

        Raises StateError besides the errors of AuthorityStore.
        """
        there = self._stored(self._present())
        if there.revision != before:
            raise Overtaken(self.place, there)
        if not is_step(there.state, state):
            raise ValueError("a CA is created once, and changes only by the steps of a root rotation")
        written: Fields | None = None

        def change(fields: Fields | None) -> Fields | None:
            nonlocal written
            if written is not None and fields == written:  # an earlier attempt, whose answer was lost
                return None
            present = self._stored_in(fields or {})
            if present.revision != before:
                raise Overtaken(self.place, present)
            # Encrypted once: after a lost answer the same fields show that the write was done.
            if written is None:
                written = with_state(fields or {}, state, self._seal)
            return written

        with _explained():
            version = self._calls.run(update(self._store, AUTHORITY, change, self._writer))
        return self._stored(version.content)

    def _present(self) -> Content | None:
        with _explained():
            return self._present_content()

    def _present_content(self) -> Content | None:
        version = self._calls.run(update(self._store, AUTHORITY, _none, Writer(self._replica)))
        return version.content

    def _stored(self, content: Content | None) -> StoredAuthority:
        with _explained():
            return self._stored_in({} if content is None else content.fields)

    def _stored_in(self, fields: Fields) -> StoredAuthority:
        require_moved(fields)
        require_proof(fields, self._seal)
        return StoredAuthority(state_in(fields, self._seal), _revision(fields))


def _revision(fields: Fields) -> Revision:
    """Return the digest of the fields.

    The epoch is no part of it, so that a new leader overtakes its predecessor's steps, and no other writes.
    """
    return Revision(hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest())


def _none(fields: Fields | None) -> None:
    """Leave the record as it is."""
    del fields


@contextmanager
def _explained() -> Iterator[None]:
    """Raise errors of the store as StateError."""
    try:
        yield
    except OldEpochError as error:
        raise FormerLeaderError(
            f"the root is changed by another server, which leads the mesh now: {error}; see {_STATUS}"
        ) from error
    except (RecordsError, UnreadableContentError) as error:
        raise StateError(f"the shared state of the authority cannot be used: {error}") from error
