"""CAs in Secrets named by objects, and the record of CAs created or adopted by this server.

A folder is a mounted Secret: `tls.crt`, `tls.key` and `ca.crt` as in the type `kubernetes.io/tls`, or
`ca.crt` and `private.key` as written by Open Service Mesh.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from certs.errors import StateError
from certs.issuers.file_authority import WatchedFiles
from certs.issuers.root import Root, read_root
from certs.roots.declared_roots import DeclaredRoot
from certs.roots.rotation import Fingerprint
from certs.state import files
from meshwright.mesh.names import Namespace, SecretName, TrustDomain
from meshwright.mesh.policies.roots import MeshRootCertificate, Role
from meshwright.mesh.policies.smi import PolicyKey

NOTES: Final = "declared-roots.json"

_OSM_KEY: Final = "private.key"
_ANOTHER: Final = (
    "has another CA than the one that the mesh took from it before; put the new CA into "
    "a Secret of another name, with its own MeshRootCertificate"
)


def root_in(folder: Path, trust_domain: TrustDomain, now: datetime) -> Root | None:
    """Return the CA in a folder, or None without a CA. Raises StateError if the CA cannot sign."""
    try:
        if not folder.is_dir():
            return None
    except OSError as error:
        raise StateError(f"cannot read {folder}: {error.strerror}") from error
    watched = WatchedFiles.within(folder)
    if (folder / _OSM_KEY).exists():
        watched = WatchedFiles(Path("ca.crt"), Path(_OSM_KEY), directory=folder)
    ca_files = watched.now()
    roots = None if watched.roots is None else files.read(ca_files.roots)
    certificate, key = files.read(ca_files.certificate), files.read(ca_files.key)
    if certificate is None or key is None:
        missing = ca_files.key if key is None else ca_files.certificate
        raise StateError(
            f"{missing.name} is missing in {folder}, which must have the keys tls.crt, "
            f"tls.key and ca.crt, or ca.crt and {_OSM_KEY}"
        )
    return read_root(ca_files.names, certificate, key, roots, trust_domain, now)


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
    """The keys of declared roots: in `folder` if given, or in the state directory.

    A file in the state directory records which root belongs to which Secret, while the root is in use, for
    example `mesh/root-2026`.
    """

    def __init__(self, state: Path, folder: Path | None, trust_domain: TrustDomain) -> None:
        self._state, self._folder, self._trust_domain = state, folder, trust_domain

    def declared_roots(
        self, used: Sequence[MeshRootCertificate], signer: Fingerprint, other: Fingerprint, now: datetime
    ) -> DeclaredRootSecrets:
        """Return the declared roots while `signer` signs beside the `other` root (empty without a change).

        A Secret without a CA is matched with a root in force that no other Secret has. Raises StateError.
        """
        before = self._noted()
        in_force = {fingerprint for fingerprint in (signer, other) if fingerprint}
        notes = {name: root for name, root in before.items() if root in in_force}
        read, errors = self._read(used, notes, now)
        good = [
            mesh_root_certificate for mesh_root_certificate in used if mesh_root_certificate.key not in errors
        ]
        for mesh_root_certificate in good:
            if (
                root := read.get(str(mesh_root_certificate.secret))
            ) is not None and root.fingerprint in in_force:
                notes[mesh_root_certificate.secret] = Fingerprint(root.fingerprint)
        for mesh_root_certificate in good:
            if mesh_root_certificate.secret not in notes and str(mesh_root_certificate.secret) not in read:
                free = [root for root in (signer, other) if root in in_force.difference(notes.values())]
                if mesh_root_certificate.role is Role.PASSIVE:
                    free = [root for root in free if root != signer]
                if free:
                    notes[mesh_root_certificate.secret] = free[0]
        self._note(before, notes)
        is_ruled = bool(used) or other in notes.values()
        return DeclaredRootSecrets(
            tuple(_declared(mesh_root_certificate, notes, read) for mesh_root_certificate in good),
            is_ruled,
            read,
            errors,
        )

    def note(self, name: str, root: Fingerprint) -> None:
        """Record the fingerprint of the root in the Secret `name`. Raises StateError."""
        before = self._noted()
        self._note(before, {**before, _secret(name): root})

    def _read(
        self, used: Sequence[MeshRootCertificate], notes: Mapping[SecretName, Fingerprint], now: datetime
    ) -> tuple[Mapping[str, Root], Mapping[PolicyKey, str]]:
        read: dict[str, Root] = {}
        errors: dict[PolicyKey, str] = {}
        for mesh_root_certificate in used if self._folder is not None else ():
            folder = (
                Path(self._folder or "")
                / mesh_root_certificate.secret.namespace
                / mesh_root_certificate.secret.name
            )
            try:
                root = root_in(folder, self._trust_domain, now)
            except StateError as error:
                errors[mesh_root_certificate.key] = str(error)
                continue
            if (
                root is not None
                and notes.get(mesh_root_certificate.secret, root.fingerprint) != root.fingerprint
            ):
                errors[mesh_root_certificate.key] = f"{folder} {_ANOTHER}"
            elif root is not None:
                read[str(mesh_root_certificate.secret)] = root
        return read, errors

    def _noted(self) -> Mapping[SecretName, Fingerprint]:
        content = files.read(self._state / NOTES)
        if content is None:
            return {}
        try:
            return {_secret(name): Fingerprint(str(root)) for name, root in json.loads(content).items()}
        except (ValueError, AttributeError, TypeError) as error:
            raise StateError(
                f"{self._state / NOTES} is damaged: {error}; restore it from a backup, or "
                "remove it (then the server takes an active MeshRootCertificate as the "
                "root in force)"
            ) from error

    def _note(
        self, before: Mapping[SecretName, Fingerprint], notes: Mapping[SecretName, Fingerprint]
    ) -> None:
        if notes != before:
            fingerprints = {str(name): root for name, root in sorted(notes.items())}
            files.write_private(
                self._state / NOTES, (json.dumps(fingerprints, indent=2) + "\n").encode("ascii")
            )


def _declared(
    mesh_root_certificate: MeshRootCertificate,
    notes: Mapping[SecretName, Fingerprint],
    read: Mapping[str, Root],
) -> DeclaredRoot:
    name = str(mesh_root_certificate.secret)
    root = Fingerprint(read[name].fingerprint) if name in read else notes.get(mesh_root_certificate.secret)
    return DeclaredRoot(name, root, mesh_root_certificate.role is Role.ACTIVE)


def _secret(name: str) -> SecretName:
    namespace, slash, rest = name.partition("/")
    if not slash:
        raise ValueError(f"{name[:80]} is not of the form NAMESPACE/NAME")
    return SecretName(Namespace(namespace), rest)
