"""The state of the authority in a state directory, as an AuthorityStore for one server."""

import hashlib
import threading
from pathlib import Path
from typing import Final

from certs.authority_files import records, rotation_folders
from certs.authority_files.records import Content, content_of, parsed
from certs.issuers.ca_folder import FOLDER, names_in, read_ca, write_ca
from certs.issuers.root import CaNames
from certs.issuers.stored_ca import StoredCa, Unreadable
from certs.issuers.succeeding_issuer import Role
from certs.roots.authority_state import AuthorityState, is_step
from certs.roots.authority_store import CaSlot, Overtaken, Revision, StoredAuthority
from certs.roots.rotation import Rotation
from certs.state import files
from certs.state.sealing import PLAIN, Seal

_LOCK: Final = ".ca.lock"
_NEW: Final = ".ca.new"


class AuthorityFiles:
    """Store with the folders `ca/` and `ca.other/` of a state directory, and files beside them.

    `seal` encrypts the keys. If another program owns the CA (`is_foreign`), the serial of the first proxy
    certificate is not in `ca/` but in the state directory itself.

    The caller holds the lock of the state directory, so only threads of this process write: a lock of the
    object makes the comparison and the write one act. Each write changes one part of the state. The parts
    are separate files, so a crash between two of them would be seen.
    """

    def __init__(self, state: Path, seal: Seal = PLAIN, *, is_foreign: bool = False) -> None:
        self._state = state
        self._seal = seal
        self._first_proxy = (state if is_foreign else state / FOLDER) / rotation_folders.MARK
        self._turn = threading.RLock()
        self._is_rotating = False

    @property
    def place(self) -> str:
        """Return the path of the signing CA's folder."""
        return str(self._state / FOLDER)

    def names(self, slot: CaSlot) -> CaNames:
        """Return the paths of a CA's files."""
        return names_in(self._state / (FOLDER if slot is CaSlot.SIGNER else rotation_folders.OTHER))

    @property
    def is_shared(self) -> bool:
        """Return False: a state directory has one server."""
        return False

    def recover(self) -> StoredAuthority:
        """Put the folders of the CAs in order after a crash, and return the state.

        Raises StateError, also for a state directory that is not writable.
        """
        files.private_directory(self._state)
        with self._turn, files.locked(self._state / _LOCK):
            rotation_folders.recover(self._state)
            there = self.read()
            self._is_rotating = there.state.rotation is not None
            return there

    def read(self) -> StoredAuthority:
        """Return the present state, with Unreadable for each file that cannot be read."""
        with self._turn:
            return self._read()

    def replace(self, before: Revision, state: AuthorityState) -> StoredAuthority:
        """Write the changed part of a state; see AuthorityStore."""
        with self._turn:
            there = self._require(before)
            if not is_step(there.state, state):
                raise ValueError("a CA is created once, and changes only by the steps of a root rotation")
            files.private_directory(self._state)
            self._write(there, state)
            self._is_rotating = state.rotation is not None
            return self.read()

    def _write(self, there: StoredAuthority, state: AuthorityState) -> None:
        was = there.state
        match was.rotation, state.rotation:
            case None, None if was.ca is None and state.ca is not None:
                self._create(there.revision, state.ca)
            case None, Rotation() as rotation if state.other is not None:
                rotation_folders.begin(self._state, state.other, rotation, self._seal)
            case before, Rotation() as rotation if rotation != before:
                rotation_folders.keep(self._state, rotation)
            case Rotation() | Unreadable(), None:
                rotation_folders.end(self._state)
            case _:
                pass
        for role, name in records.ISSUERS.items():
            if state.issuers(role) != was.issuers(role):
                records.write_issuers(self._state / name, state.issuers(role))
        if state.declared_roots != was.declared_roots:
            records.write_declared_roots(self._state / records.DECLARED_ROOTS, state.declared_roots)
        if state.first_proxy != was.first_proxy:
            records.write_first_proxy(self._first_proxy, state.first_proxy)

    def _create(self, before: Revision, stored: StoredCa) -> None:
        """Write the first CA. A process that does not hold the directory's lock may create one too."""
        with files.locked(self._state / _LOCK):
            self._require(before)
            write_ca(self._state / FOLDER, self._state / _NEW, stored, self._seal)

    def _read(self) -> StoredAuthority:
        rotation_file = self._state / rotation_folders.FILE
        declared_file = self._state / records.DECLARED_ROOTS
        rotation, declared = self._rotation(rotation_file), content_of(declared_file)
        issuers = {role: content_of(self._state / name) for role, name in records.ISSUERS.items()}
        first_proxy = content_of(self._first_proxy)
        ca, other = read_ca(self._state / FOLDER, self._seal), None
        if rotation is not None:  # otherwise the folder was left by a crash, and `recover` moves it aside
            other = read_ca(self._state / rotation_folders.OTHER, self._seal)
        state = AuthorityState(
            ca,
            other,
            parsed(rotation, lambda text: rotation_folders.read_rotation(rotation_file, text)),
            records.issuers_in(self._state / records.ISSUERS[Role.SERVICES], issuers[Role.SERVICES]),
            records.issuers_in(self._state / records.ISSUERS[Role.CHANNEL], issuers[Role.CHANNEL]),
            parsed(first_proxy, lambda text: text.decode("ascii", "replace").strip()),
            records.declared_roots_in(declared_file, declared),
        )
        contents = (*_parts(ca), *_parts(other), rotation, *issuers.values(), first_proxy, declared)
        return StoredAuthority(state, _revision(*contents))

    def _rotation(self, path: Path) -> Content:
        """Return the record of a rotation. The end of a rotation removes the other CA's key before it.

        A record removed by hand is unreadable and not an ended rotation: the former root is still in use.
        """
        content, key = content_of(path), self._state / rotation_folders.OTHER / rotation_folders.KEY
        if content is None and self._is_rotating and content_of(key) is not None:
            return Unreadable(f"{path} is missing, but a root is being rotated; restore it from a backup")
        return content

    def _require(self, before: Revision) -> StoredAuthority:
        there = self.read()
        if there.revision != before:
            raise Overtaken(self.place, there)
        return there


def _parts(stored: StoredCa | None) -> tuple[Content, Content]:
    """Return the parts of a CA that identify it. The key is left out: sealing it changes no CA."""
    return (None, None) if stored is None else (stored.certificate, stored.roots)


def _revision(*contents: Content) -> Revision:
    result = hashlib.sha256()
    for content in contents:
        match content:
            case None:
                result.update(b"-")
            case Unreadable(reason):
                result.update(f"?{len(reason)} {reason}".encode())
            case _:
                result.update(f"{len(content)} ".encode() + content)
    return Revision(result.hexdigest())
