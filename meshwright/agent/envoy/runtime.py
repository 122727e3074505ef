"""The agent's run directory with the files for Envoy, replaced so that Envoy never sees incomplete ones.

`certificates/current` is a link to a directory, whose name is the digest of the content. A renewal is one
rename, which Envoy notices. All files are private to the user of both the agent and Envoy.
"""

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from certs.state.files import private_directory, write_private
from meshwright.agent.credentials import Credentials
from meshwright.sidecars.envoy.bootstrap.bootstrap import BootstrapSettings, bootstrap, sds_files
from meshwright.sidecars.layout import ADMIN_SOCKET, AUTHORITY_FILE, CHAIN_FILE, KEY_FILE

_CURRENT: Final = "current"


@dataclass(frozen=True, slots=True)
class RuntimeDirectory:
    """The agent's run directory: paths of the files for Envoy, and operations on them.

    Methods raise StateError or OSError.
    """

    root: Path

    @property
    def certificates(self) -> Path:
        """Return the directory in which a rename signals new certificates to Envoy."""
        return self.root / "certificates"

    @property
    def bootstrap(self) -> Path:
        """Return the path of the bootstrap in use."""
        return self.root / "bootstrap.json"

    @property
    def candidate(self) -> Path:
        """Return the path of a new bootstrap until Envoy has accepted it."""
        return self.root / "bootstrap.new.json"

    @property
    def admin(self) -> Path:
        """Return the path of the Unix socket of Envoy's admin interface."""
        return self.root / ADMIN_SOCKET

    @property
    def base_id(self) -> Path:
        """Return the path of the file with the base ID that all epochs of Envoy share."""
        return self.root / "base-id"

    @property
    def agent(self) -> Path:
        """Return the path of the file with the agent's own address."""
        return self.root / "agent.json"

    def credential(self, name: str) -> Path:
        """Return the path of one of the three credential files, as read by Envoy."""
        return self.certificates / _CURRENT / name

    def prepare(self) -> None:
        """Create the run directory and the directory of the certificates."""
        private_directory(self.root)
        private_directory(self.certificates)

    def put_credentials(self, credentials: Credentials) -> None:
        """Bring credentials into use by one rename, and remove older ones."""
        digest = credentials.digest
        directory = self.certificates / digest
        private_directory(directory)
        write_private(directory / KEY_FILE, credentials.key.reveal())
        write_private(directory / CHAIN_FILE, credentials.chain)
        write_private(directory / AUTHORITY_FILE, credentials.authority)
        link = self.certificates / f".{_CURRENT}"
        link.unlink(missing_ok=True)
        link.symlink_to(digest)
        link.replace(self.certificates / _CURRENT)
        for path in self.certificates.iterdir():
            if path.is_dir() and not path.is_symlink() and path.name != digest:
                shutil.rmtree(path, ignore_errors=True)

    def settings(self, made: BootstrapSettings) -> BootstrapSettings:
        """Return bootstrap settings with the paths of the credential files in this directory."""
        return replace(
            made,
            certificate_file=self.credential(CHAIN_FILE),
            key_file=self.credential(KEY_FILE),
            ca_file=self.credential(AUTHORITY_FILE),
            sds_directory=self.root,
        )

    def propose(self, settings: BootstrapSettings, override: str | None, in_use: str) -> str:
        """Write a bootstrap as the candidate, with SDS files; return the text of the bootstrap.

        A bootstrap already in use is not written.
        """
        text = merged(bootstrap(settings), override)
        if text == in_use:
            return text
        for name, content in sds_files(settings, self.certificates).items():
            write_private(self.root / name, content.encode())
        write_private(self.candidate, text.encode())
        return text

    def accept(self) -> None:
        """Make the candidate the bootstrap in use, after Envoy has accepted it."""
        self.candidate.replace(self.bootstrap)

    def read_base_id(self) -> int | None:
        """Return the base ID in the file that the first epoch writes; None if not yet written."""
        try:
            return int(self.base_id.read_text("ascii"))
        except (OSError, ValueError):
            return None


def merged(text: str, override: str | None) -> str:
    """Merge the override (a JSON object) into a bootstrap; raise ValueError.

    Objects are merged, and other values replaced.
    """
    if override is None:
        return text
    over = json.loads(override)
    if not isinstance(over, dict):
        raise ValueError("the override must be a JSON object")  # noqa: TRY004 - a text with a wrong value
    return json.dumps(_laid(json.loads(text), over), indent=2, sort_keys=True) + "\n"


def _laid(below: object, above: object) -> object:
    if isinstance(below, dict) and isinstance(above, dict):
        return {**below, **{name: _laid(below.get(name), value) for name, value in above.items()}}
    return above


def shared_memory(base_id: int) -> Path:
    """Return the path of the shared-memory file of a base ID; Envoy reserves ten numbers for each."""
    return Path("/dev/shm") / f"envoy_shared_memory_{base_id * 10}"  # noqa: S108 - where Envoy puts it


def remove_shared_memory(base_id: int) -> None:
    """Remove the shared memory of a proxy's epochs, which must all have ended."""
    shared_memory(base_id).unlink(missing_ok=True)
