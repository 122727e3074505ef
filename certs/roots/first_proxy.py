"""The serial of the first proxy certificate, which connects the CA with its ledger."""

from contextlib import suppress
from dataclasses import replace

from certs.errors import StateError
from certs.issuers.stored_ca import readable
from certs.ledger.contract import Ledger
from certs.roots.authority_state import AuthorityState
from certs.roots.authority_store import AuthorityStore, changed


class FirstProxy:
    """The serial of the first proxy certificate of a CA, stored beside the CA to identify the ledger.

    If it cannot be stored now, the next issuance or the next start tries again.
    """

    def __init__(self, authority_store: AuthorityStore) -> None:
        self._authority_store = authority_store
        self._noted = False

    def read(self) -> str | None:
        """Return the stored serial of the first proxy certificate, or None if not stored.

        Raises StateError.
        """
        return readable(self._authority_store.read().state.first_proxy)

    def note(self, ledger: Ledger) -> None:
        """Store the ledger's first serial, unless the ledger is empty or a serial is stored already."""
        if not self._noted and (serial := ledger.first()) is not None:

            def change(state: AuthorityState) -> AuthorityState:
                stored = readable(state.first_proxy)
                return replace(state, first_proxy=serial) if stored is None else state

            with suppress(StateError):
                changed(self._authority_store, change)
                self._noted = True

    def forget(self) -> None:
        """Remove the stored serial of the first proxy certificate. Raises StateError."""
        changed(self._authority_store, lambda state: replace(state, first_proxy=None))
