"""Backup, restore and move of a mesh's state, for the command line."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

import typer

from certs.custody import begun
from certs.errors import CertificateError, StateError
from certs.shared_records.custody import has_own_mesh
from certs.state import directory_marks, sealed_state
from meshwright.cli.errors import IssuingError, ServerRefused, understood
from meshwright.cli.identities.issuing import by_either
from meshwright.cli.printing.files import new_file
from meshwright.cli.process.standard_streams import print_text
from meshwright.cli.process.structlog_alone import on_standard_error
from meshwright.cli.socket.client import ask
from meshwright.controller.errors import SettingsError, StartupError, StateInUse
from meshwright.controller.process import lock
from meshwright.controller.settings.settings import Settings, load
from meshwright.controller.settings.store_kind import StoreKind
from meshwright.controller.sharing.migration import move as moving
from meshwright.controller.sharing.migration import own_mesh
from meshwright.controller.sharing.store.open_store import open_store
from meshwright.mesh.names import TrustDomain
from meshwright.transfer import directory_state, state_file
from meshwright.transfer.mesh_state import MeshState
from meshwright.transfer.state_file import Header

EXPORT_SECONDS: Final = 600.0
"""Longest wait for the export of a running server, in seconds."""

LARGEST_FILE: Final = 1024 * 1024 * 1024
"""Limit of an export in bytes: a mesh of 100 000 proxies has about 100 MB."""

_LOCK_PAUSE: Final = 0.2
"""Seconds between two attempts to lock a directory."""

LEAST_PASSPHRASE: Final = 12
"""Least length of a new passphrase in bytes, because whoever has the file can try any number of them."""


@dataclass(frozen=True, slots=True)
class Move:
    """Result of a move into `store`: the number of records, and of those `written`; None without a mesh."""

    store: str
    text: str
    records: int = 0
    written: int | None = None


def exported(flags: Mapping[str, object], file: Path | None, passphrase_file: Path | None) -> Header:
    """Write the state of a mesh to a new file, and return the header. Raises IssuingError.

    Without a file the state is printed on standard output, for a command in a container.
    """
    with _explained():
        settings = _settings(flags)
        words = _passphrase(passphrase_file, settings.state, is_new=True)
        if file is None:
            text = _exported(settings, words)
            print_text(text)
            return state_file.read_header(text)
        # The file first: a long reading should not end with the refusal to overwrite a file.
        with _new_file(file) as put:
            text = _exported(settings, words)
            put(text)
        return state_file.read_header(text)


def imported(
    flags: Mapping[str, object], file: Path, passphrase_file: Path | None, *, dry_run: bool
) -> tuple[Header, str]:
    """Write the state in a file into an empty place, and return the header and the place.

    With `dry_run` the place is only checked. Raises IssuingError.
    """
    with _explained():
        settings = _settings(flags)
        text = _text(file)
        try:
            state_file.read_header(text)  # so that a wrong file needs no passphrase
            header, mesh = state_file.opened(text, _passphrase(passphrase_file, settings.state, is_new=False))
        except StateError as error:
            raise IssuingError(f"{file} cannot be imported: {error}") from error
        if header.trust_domain != settings.trust_domain:
            raise IssuingError(
                f"{file} has the state of the trust domain {header.trust_domain}, and the setting "
                f"trust_domain is {settings.trust_domain}: set trust_domain={header.trust_domain}"
            )
        if settings.store is StoreKind.DIRECTORY:
            return header, _into_directory(settings, mesh, dry_run=dry_run)
        return header, _into_store(settings, mesh, dry_run=dry_run)


def moved(flags: Mapping[str, object], wait_seconds: float = 0.0) -> Move:
    """Move the mesh of a state directory into the store in the settings. Raises IssuingError.

    Wait for at most `wait_seconds` for the end of the server that uses the directory.
    """
    with _explained():
        settings = _settings(flags)
        store = str(settings.store)
        # A Job may run this command for every installation, so a directory without a mesh is no error.
        if settings.store is StoreKind.DIRECTORY:
            raise IssuingError("the setting store is directory: name the store with --set store=kubernetes")
        if not has_own_mesh(settings.state):
            return Move(store, _why_not(settings.state))
        lock.prepare(settings.state, shared=settings.shared_state)
        with contextlib.ExitStack() as stack:
            _hold_lock(stack, settings.state, wait_seconds)
            written = moving.move(settings, stack.enter_context(open_store(settings, _now)), _now)
        if written is None:
            return Move(store, _why_not(settings.state))
        text = f"the mesh of {settings.state} is in the store {store} now: {written.records} records"
        return Move(
            store,
            f"{text}, {written.written} of them written by this command",
            written.records,
            written.written,
        )


def _hold_lock(stack: contextlib.ExitStack, state: Path, wait_seconds: float) -> None:
    """Hold the lock of a state directory until the end of the stack; raise StateInUse after this time."""
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            stack.enter_context(lock.hold_lock(state))
        except StateInUse:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_LOCK_PAUSE)
        else:
            return


def _why_not(state: Path) -> str:
    if (moved := directory_marks.read_moved(state)) is not None:
        return moved.sentence(state)
    return f"{state} has no mesh, so there is nothing to move"


def _exported(settings: Settings, words: bytes) -> str:
    """Return the text of the file, from the store, the running server, or the directory of a stopped one."""
    if settings.store is not StoreKind.DIRECTORY:
        with open_store(settings, _now) as shared:
            return _sealed(settings, shared.read(), words)
    return by_either(lambda: _by_server(settings, words), lambda: _sealed(settings, _read(settings), words))


def _by_server(settings: Settings, words: bytes) -> str:
    body = {"passphrase": words.hex()}
    try:
        answer = ask(settings.state, "POST", "/state/export", body=body, seconds=EXPORT_SECONDS)
    except ServerRefused as error:
        raise IssuingError(str(error)) from error
    with understood():
        return str(answer["text"]) if isinstance(answer, dict) else ""


def _sealed(settings: Settings, mesh: MeshState, words: bytes) -> str:
    header = Header.of(mesh, version("meshwright"), TrustDomain(settings.trust_domain), _now())
    return state_file.sealed(mesh, header, words)


def _read(settings: Settings) -> MeshState:
    """Return the mesh in the directory of a stopped server. Raises StateInUse while a server uses it."""
    state = settings.state
    directory_marks.require_present(state)
    if not begun(state):
        raise IssuingError(f"{state} has neither a CA nor issued certificates: give the server's directory")
    lock.prepare(state, shared=settings.shared_state)
    with lock.hold_lock(state):
        return own_mesh.read_own_mesh(settings, _now)


def _into_directory(settings: Settings, mesh: MeshState, *, dry_run: bool) -> str:
    state = settings.state
    directory_state.require_empty(state, mesh.root)
    if not dry_run:
        lock.prepare(state, shared=settings.shared_state)
        with lock.hold_lock(state):
            # Again, because only the lock keeps other writers out.
            directory_state.require_empty(state, mesh.root)
            own_mesh.write_own_mesh(settings, mesh)
    return f"the state directory {state}"


def _into_store(settings: Settings, mesh: MeshState, *, dry_run: bool) -> str:
    with open_store(settings, _now) as shared:
        if (root := shared.root()) is not None:
            raise IssuingError(
                f"the store {settings.store} has a mesh with the CA {root}, and the file has the CA "
                f"{mesh.root}: import into an empty store"
            )
        if not dry_run:
            shared.write(mesh, _now())
    return f"the store {settings.store}"


def _settings(flags: Mapping[str, object]) -> Settings:
    on_standard_error()
    return load(flags, nothing_to_read=True)


def _passphrase(file: Path | None, state: Path, *, is_new: bool) -> bytes:
    """Return the passphrase of an export, from its file or from the terminal."""
    if file is not None:
        words = sealed_state.read_passphrase(file, state, "passphrase-file")
    elif sys.stdin.isatty():
        typed: str = typer.prompt("Passphrase", hide_input=True, confirmation_prompt=is_new, err=True)
        words = typed.encode()
    else:
        raise IssuingError("the passphrase is missing: give its file with --passphrase-file")
    if is_new and len(words) < LEAST_PASSPHRASE:
        raise IssuingError(
            f"the passphrase has {len(words)} characters, and needs at least {LEAST_PASSPHRASE}, because "
            "whoever has the file can try any number of them"
        )
    return words


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened_file:
            content = opened_file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise IssuingError(f"{file} cannot be read: {error.strerror}") from error
    if len(content) > LARGEST_FILE:
        raise IssuingError(f"{file} is larger than {LARGEST_FILE} bytes, so it is not an export")
    return content.decode("ascii", "replace")


@contextlib.contextmanager
def _new_file(file: Path) -> Iterator[Callable[[str], None]]:
    """Create a file, and yield a function that writes it durably; the file is removed if the block raises."""

    def put(text: str) -> None:
        try:
            created.write(text)
            created.flush()
            os.fsync(created.fileno())
        except OSError as error:
            raise IssuingError(
                f"cannot write {file}: {error.strerror}; the state was not exported"
            ) from error

    with contextlib.ExitStack() as stack:
        try:
            created = stack.enter_context(new_file(file))
        except FileExistsError as error:
            raise IssuingError(f"{file} exists already, and is not overwritten: give a new file") from error
        except OSError as error:
            raise IssuingError(f"cannot write {file}: {error.strerror}; give another file") from error
        yield put


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Raise errors of settings, the directory and the store as IssuingError."""
    try:
        yield
    except StateInUse as error:
        raise IssuingError(f"{error}: stop the server first") from error
    except (SettingsError, StartupError, CertificateError) as error:
        raise IssuingError(str(error)) from error


def _now() -> datetime:
    return datetime.now(UTC)
