"""The issuers of one role in the stored state of the authority."""

from certs.issuers.stored_ca import Unreadable, readable
from certs.issuers.succeeding_issuer import Role
from certs.issuers.succession import Succession
from certs.roots.authority_state import AuthorityState
from certs.roots.authority_store import AuthorityStore, changed


class RoleSuccession:
    """Store for the issuers of one role, as an implementation of `succession_store.SuccessionStore`."""

    def __init__(self, authority_store: AuthorityStore, role: Role) -> None:
        self._authority_store = authority_store
        self._role = role

    @property
    def is_shared(self) -> bool:
        """Return whether other servers may record successions while this server runs."""
        return self._authority_store.is_shared

    def read(self) -> Succession | None:
        """Return the recorded issuers, or None without a record. Raises StateError for a damaged record."""
        return readable(self._authority_store.read().state.issuers(self._role))

    def replace(self, before: Succession | None, after: Succession) -> Succession:
        """Record issuers in the place of `before`; return the recorded ones.

        A record that was removed or damaged meanwhile is written again, because this server knows its
        content.
        """

        def change(state: AuthorityState) -> AuthorityState:
            there = state.issuers(self._role)
            if there is None or isinstance(there, Unreadable) or there == before:
                return state.with_issuers(self._role, after)
            return state

        recorded = changed(self._authority_store, change).state.issuers(self._role)
        return after if recorded is None else readable(recorded)
