"""CAs in mounted Secrets: a folder has the folder of each Secret, for example `mesh/root-2026`.

A Secret has `tls.crt`, `tls.key` and `ca.crt` as in the type `kubernetes.io/tls`, or `ca.crt` and
`private.key` as written by Open Service Mesh.
"""

from datetime import datetime
from pathlib import Path
from typing import Final

from certs.errors import StateError
from certs.issuers.file_authority import WatchedFiles
from certs.issuers.root import Root, read_root
from certs.state import files
from meshwright.mesh.names import SecretName, TrustDomain

_OSM_KEY: Final = "private.key"


class MountedSecrets:
    """CAs in the Secrets below a folder, as an implementation of `certs.roots.secrets.SecretReader`."""

    def __init__(self, folder: Path, trust_domain: TrustDomain) -> None:
        self._folder = folder
        self._trust_domain = trust_domain

    def place(self, secret: SecretName) -> str:
        """Return the path of a Secret's folder."""
        return str(self._path(secret))

    def read(self, secret: SecretName, now: datetime) -> Root | None:
        """Return the CA in a Secret, or None without a CA. Raises StateError if the CA cannot sign."""
        folder = self._path(secret)
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
        return read_root(ca_files.names, certificate, key, roots, self._trust_domain, now)

    def _path(self, secret: SecretName) -> Path:
        return self._folder / secret.namespace / secret.name
