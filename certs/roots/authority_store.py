"""Interface of the store for the authority's state: whole reads, and compared writes.

`certs.authority_files` implements it with the folders and files of a state directory, for one server. Several
servers share a record (`certs.authority_records`), whose state is replaced by one compared write. If two
servers take the same step, one of them gets Overtaken, with the state that the other one has stored.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import NewType, Protocol

from certs.errors import StateError
from certs.issuers.root import CaNames
from certs.roots.authority_state import AuthorityState

Revision = NewType("Revision", str)
"""Identifier of one stored state; another content has another revision."""


@dataclass(frozen=True, slots=True)
class StoredAuthority:
    """A state as it is stored, with its revision."""

    state: AuthorityState
    revision: Revision


class Overtaken(StateError):
    """Error for a write that came too late: another state is stored, `there`."""

    def __init__(self, place: str, there: StoredAuthority) -> None:
        super().__init__(
            f"the state of the authority in {place} was changed by another server first; see the rotation "
            "with `meshwright certs rotate-root --status`, and repeat the command if it is still needed"
        )
        self.there = there


class FormerLeaderError(StateError):
    """Error for a write of a leader after another server has begun to lead; nothing was written."""


class CaSlot(enum.Enum):
    """Slot of a CA in the state: the SIGNER signs, the OTHER is beside it during a root rotation."""

    SIGNER = enum.auto()
    OTHER = enum.auto()


class AuthorityStore(Protocol):
    """Store for the state of one mesh's authority, private to its servers.

    All methods may wait for a disk or a network, so call them in a thread. They may be called from several
    threads. A write is durable when it returns, and after a crash there is the state before it or after it.
    """

    def recover(self) -> StoredAuthority:
        """Finish or undo a write that a crash has interrupted, and return the state.

        For the server that will write, at its start. Raises StateError if a root rotation is damaged.
        """

    def read(self) -> StoredAuthority:
        """Return the present state, with Unreadable for each field that cannot be read. Changes nothing.

        Raises StateError if a shared store does not answer.
        """

    def replace(self, before: Revision, state: AuthorityState) -> StoredAuthority:
        """Store a state in the place of that revision; return it with its new revision.

        Raises Overtaken if another revision is stored, and StateError if the state cannot be stored; the
        former state then holds. A shared store that does not answer may store the state all the same, so the
        next `read` decides. Raises ValueError if a CA would be lost (`authority_state.is_step`).
        """

    def names(self, slot: CaSlot) -> CaNames:
        """Return names of a CA's parts for messages."""

    @property
    def is_shared(self) -> bool:
        """Return whether other servers may write the state while this server runs."""

    @property
    def place(self) -> str:
        """Return the location of the signing CA for messages, for example `/var/lib/meshwright/ca`."""


def changed(
    authority_store: AuthorityStore,
    change: Callable[[AuthorityState], AuthorityState],
    seen: StoredAuthority | None = None,
) -> StoredAuthority:
    """Store the result of `change`, a function of the present state; return what is stored.

    `seen` is the present state if the caller has just read it. After another server's write `change` is
    called again with that server's state. An unchanged state is not written. Raises StateError and the errors
    of `change`.
    """
    there = seen or authority_store.read()
    while (state := change(there.state)) != there.state:
        try:
            return authority_store.replace(there.revision, state)
        except Overtaken as overtaken:
            there = overtaken.there
    return there
