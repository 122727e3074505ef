"""CAs in Secrets named by objects, and the record of CAs created or adopted by this server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Protocol

from certs.errors import StateError
from certs.issuers.root import Root
from certs.issuers.stored_ca import readable
from certs.roots.authority_state import AuthorityState
from certs.roots.authority_store import AuthorityStore, changed
from certs.roots.declared_roots import DeclaredRoot, secret_name
from certs.roots.rotation import Fingerprint
from meshwright.mesh.names import SecretName
from meshwright.mesh.policies.roots import MeshRootCertificate, Role
from meshwright.mesh.policies.smi import PolicyKey

_ANOTHER: Final = (
    "has another CA than the one that the mesh took from it before; put the new CA into "
    "a Secret of another name, with its own MeshRootCertificate"
)


class SecretReader(Protocol):
    """Reader for CAs in Secrets; `certs.issuers.mounted_secrets` implements it with mounted ones."""

    def read(self, secret: SecretName, now: datetime) -> Root | None:
        """Return the CA in a Secret, or None without a CA. Raises StateError if the CA cannot sign."""

    def place(self, secret: SecretName) -> str:
        """Return the location of a Secret for messages."""


@dataclass(frozen=True, slots=True)
class DeclaredRootSecrets:
    """The roots named by objects: the readable ones by name, and the errors of others.

    `is_ruled` is True if objects decide about the root: also after their deletion, while one of their roots
    is part of a change.
    """

    roots: tuple[DeclaredRoot, ...]
    is_ruled: bool
    read: Mapping[str, Root] = field(repr=False)
    errors: Mapping[PolicyKey, str]


class Secrets:
    """The keys of declared roots: in Secrets, if `reader` is not None, or in the store of the authority.

    The store records which root belongs to which Secret, while the root is in use, for example
    `mesh/root-2026`.
    """

    def __init__(self, authority_store: AuthorityStore, reader: SecretReader | None) -> None:
        self._authority_store, self._reader = authority_store, reader

    def through(self, authority_store: AuthorityStore) -> "Secrets":
        """Return the same Secrets with another view of the store, for example that of a leader."""
        return Secrets(authority_store, self._reader)

    def declared_roots(
        self,
        used: Sequence[MeshRootCertificate],
        signer: Fingerprint,
        other: Fingerprint,
        now: datetime,
        *,
        records: bool = True,
    ) -> DeclaredRootSecrets:
        """Return the declared roots while `signer` signs beside the `other` root (empty without a change).

        A Secret without a CA is matched with a root in force that no other Secret has. The result is
        recorded, unless `records` is False: of several servers only the leader does. Raises StateError.
        """
        if not used and not other:  # the record has no effect, and the store need not be read at each look
            return DeclaredRootSecrets((), False, {}, {})
        in_force = {fingerprint for fingerprint in (signer, other) if fingerprint}
        seen = self._authority_store.read()
        recorded = readable(seen.state.declared_roots)
        read, errors = self._read(used, _among(recorded, in_force), now)
        good = [root_certificate for root_certificate in used if root_certificate.key not in errors]

        def change(state: AuthorityState) -> AuthorityState:
            before = _among(readable(state.declared_roots), in_force)
            return replace(state, declared_roots=_matched(good, read, before, signer, other))

        stored = changed(self._authority_store, change, seen).state if records else change(seen.state)
        recorded = readable(stored.declared_roots)
        is_ruled = bool(used) or other in recorded.values()
        roots = tuple(_declared(root_certificate, recorded, read) for root_certificate in good)
        return DeclaredRootSecrets(roots, is_ruled, read, errors)

    def note(self, name: str, root: Fingerprint) -> None:
        """Record the fingerprint of the root in the Secret `name`. Raises StateError."""

        def change(state: AuthorityState) -> AuthorityState:
            recorded = {**readable(state.declared_roots), secret_name(name): root}
            return replace(state, declared_roots=recorded)

        changed(self._authority_store, change)

    def _read(
        self, used: Sequence[MeshRootCertificate], recorded: Mapping[SecretName, Fingerprint], now: datetime
    ) -> tuple[Mapping[str, Root], Mapping[PolicyKey, str]]:
        read: dict[str, Root] = {}
        errors: dict[PolicyKey, str] = {}
        if (reader := self._reader) is None:
            return read, errors
        for root_certificate in used:
            secret = root_certificate.secret
            try:
                root = reader.read(secret, now)
            except StateError as error:
                errors[root_certificate.key] = str(error)
                continue
            if root is None:
                continue
            if recorded.get(secret, root.fingerprint) == root.fingerprint:
                read[str(secret)] = root
            else:
                errors[root_certificate.key] = f"{reader.place(secret)} {_ANOTHER}"
        return read, errors


def _among(
    recorded: Mapping[SecretName, Fingerprint], in_force: set[Fingerprint]
) -> dict[SecretName, Fingerprint]:
    return {name: root for name, root in recorded.items() if root in in_force}


def _matched(
    good: Sequence[MeshRootCertificate],
    read: Mapping[str, Root],
    recorded: Mapping[SecretName, Fingerprint],
    signer: Fingerprint,
    other: Fingerprint,
) -> Mapping[SecretName, Fingerprint]:
    """Return the root of each Secret: the one in the Secret, or a root in force that no other Secret has."""
    in_force, result = {fingerprint for fingerprint in (signer, other) if fingerprint}, dict(recorded)
    for root_certificate in good:
        root = read.get(str(root_certificate.secret))
        if root is not None and root.fingerprint in in_force:
            result[root_certificate.secret] = Fingerprint(root.fingerprint)
    for root_certificate in good:
        if root_certificate.secret not in result and str(root_certificate.secret) not in read:
            free = [root for root in (signer, other) if root in in_force.difference(result.values())]
            if root_certificate.role is Role.PASSIVE:
                free = [root for root in free if root != signer]
            if free:
                result[root_certificate.secret] = free[0]
    return result


def _declared(
    root_certificate: MeshRootCertificate,
    recorded: Mapping[SecretName, Fingerprint],
    read: Mapping[str, Root],
) -> DeclaredRoot:
    name = str(root_certificate.secret)
    root = Fingerprint(read[name].fingerprint) if name in read else recorded.get(root_certificate.secret)
    return DeclaredRoot(name, root, root_certificate.role is Role.ACTIVE)
