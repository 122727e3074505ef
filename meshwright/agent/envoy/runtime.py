"""The agent's own directory: what Envoy reads there, replaced so that it never sees half of anything.

`certificates/current` is a link to a directory named by the digest of what is in it; a renewal is one rename,
which Envoy notices. Everything is private to the user that runs the agent, who runs Envoy too.
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
    """Paths below the directory, and what is done to them. Its methods raise StateError or OSError."""

    root: Path

    @property
    def certificates(self) -> Path:
        """Return the directory in which a rename tells Envoy of new certificates."""
        return self.root / "certificates"

    @property
    def bootstrap(self) -> Path:
        """Return the bootstrap in use."""
        return self.root / "bootstrap.json"

    @property
    def candidate(self) -> Path:
        """Return where a bootstrap stands until Envoy has accepted it."""
        return self.root / "bootstrap.new.json"

    @property
    def admin(self) -> Path:
        """Return the socket of Envoy's admin interface, unless it listens at a port."""
        return self.root / ADMIN_SOCKET

    @property
    def base_id(self) -> Path:
        """Return where Envoy writes the number by which its epochs find each other."""
        return self.root / "base-id"

    @property
    def agent(self) -> Path:
        """Return where the agent says how it can be reached."""
        return self.root / "agent.json"

    def credential(self, name: str) -> Path:
        """Return the path of one of the three files, as Envoy reads it."""
        return self.certificates / _CURRENT / name

    def prepare(self) -> None:
        """Make the directories."""
        private_directory(self.root)
        private_directory(self.certificates)

    def put_credentials(self, credentials: Credentials) -> None:
        """Make these the current ones, by one rename; older ones are removed."""
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
        for each in self.certificates.iterdir():
            if each.is_dir() and not each.is_symlink() and each.name != digest:
                shutil.rmtree(each, ignore_errors=True)

    def settings(self, made: BootstrapSettings) -> BootstrapSettings:
        """Return settings whose files are this directory's."""
        return replace(
            made,
            certificate_file=self.credential(CHAIN_FILE),
            key_file=self.credential(KEY_FILE),
            ca_file=self.credential(AUTHORITY_FILE),
            sds_directory=self.root,
        )

    def propose(self, settings: BootstrapSettings, override: str | None, in_use: str) -> str:
        """Write a bootstrap as the candidate, with the SDS files it refers to; return its text.

        Nothing is written if it is the one in use.
        """
        text = merged(bootstrap(settings), override)
        if text == in_use:
            return text
        for name, content in sds_files(settings, self.certificates).items():
            write_private(self.root / name, content.encode())
        write_private(self.candidate, text.encode())
        return text

    def accept(self) -> None:
        """Make the candidate the bootstrap in use."""
        self.candidate.replace(self.bootstrap)

    def read_base_id(self) -> int | None:
        """Return the number that the first epoch wrote; None if it has not."""
        try:
            return int(self.base_id.read_text("ascii"))
        except (OSError, ValueError):
            return None


def merged(text: str, override: str | None) -> str:
    """Lay a JSON object over a bootstrap: objects are merged, anything else is replaced. ValueError."""
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
    """Return the file of hot restart that a base id stands for: Envoy keeps ten numbers for each."""
    return Path("/dev/shm") / f"envoy_shared_memory_{base_id * 10}"  # noqa: S108 - where Envoy puts it


def remove_shared_memory(base_id: int) -> None:
    """Remove what a proxy's epochs shared; to be called when none of them lives."""
    shared_memory(base_id).unlink(missing_ok=True)
