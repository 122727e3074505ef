"""The shared state of a mesh in a state directory: files, and two SQLite databases.

The caller holds the lock of the directory.
"""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

import structlog

from certs.authority_files.store import AuthorityFiles
from certs.custody import LEDGER_FILE, AuthorityWithLedger
from certs.errors import CorruptPairError, StateError
from certs.issuers.ca_folder import FOLDER, fingerprint_in
from certs.keys.pair import Pair
from certs.ledger.sqlite import SqliteLedger
from certs.roots.authority_state import AuthorityState
from certs.state import directory_marks, sealed_state
from certs.state.pair_files import PairFiles
from certs.state.sealing import Seal
from certs.state.stored_pair import Holder
from meshwright.delivery.quarantine.verdicts import Verdict
from meshwright.enrolment.store.sqlite import TOKENS_FILE, SqliteTokens
from meshwright.enrolment.store.token_fields import TokenWithUses
from meshwright.mesh.names import SecretName
from meshwright.transfer.mesh_state import UNREADABLE_PAIR, MeshState, first_of
from meshwright.transfer.rejections import transferable

_IMPORTED: Final = (
    *("ca", ".ca.new", "ca.other", ".ca.other.new", "rotation.json", "issuer.json", "authority.json"),
    *("declared-roots.json", "first-proxy", "seal.json", "services", "gateway-secrets.json"),
    "rejected-policy.json",
    *(f"{file}{end}" for file in (LEDGER_FILE, TOKENS_FILE) for end in ("", "-journal", ".revocations")),
)
"""Files and folders that an import writes, also those of an import that was interrupted."""

_LEFT: Final = ("lost+found", "*.lock", f".{directory_marks.IMPORTING_FILE}.*")
"""Patterns of names that an otherwise empty directory may have, also if a process died at its first file."""

_log = structlog.get_logger("transfer")


class GatewaySecrets(Protocol):
    """The list of the Secrets that the mesh has written for gateways, as a directory keeps it."""

    def load(self) -> frozenset[SecretName]:
        """Return the list; empty without one."""

    def keep(self, value: frozenset[SecretName]) -> None:
        """Replace the list. An error is logged."""


class SavedRejections(Protocol):
    """The policy that proxies reject, as a directory keeps it."""

    def load(self) -> tuple[Verdict, ...]:
        """Return the verdicts; empty without any."""

    def keep(self, value: tuple[Verdict, ...]) -> None:
        """Replace the verdicts. An error is logged."""


def read_directory(
    state: Path, opened: AuthorityWithLedger, secrets: GatewaySecrets, rejections: SavedRejections
) -> MeshState:
    """Return the state in an opened directory. Raises StateError.

    An unreadable service certificate is left out, because a server issues another one.
    """
    entries = opened.ledger.entries()
    return MeshState(
        opened.store.read().state,
        opened.ledger.authority(),
        first_of(entries),
        entries,
        dict(_pairs(PairFiles(state, opened.seal))),
        _tokens(state / TOKENS_FILE),
        secrets.load(),
        transferable(rejections.load(), entries),
    )


def require_empty(state: Path, root: str) -> None:
    """Raise StateError unless a mesh with the CA `root` may be imported into a directory.

    The directory may be missing, or have the rest of an interrupted import.
    """
    if (moved := directory_marks.read_moved(state)) is not None:
        raise StateError(f"{moved.sentence(state)}. The file has the CA {root}")
    if directory_marks.is_importing(state):
        return
    try:
        others = sorted(path.name for path in state.iterdir() if not any(map(path.match, _LEFT)))
    except FileNotFoundError:
        return
    except OSError as error:
        raise StateError(f"the state directory {state} cannot be read: {error.strerror}") from error
    if not others:
        return
    present = ""
    with suppress(StateError):
        present = fingerprint_in(state / FOLDER)
    has = f"has the CA {present}" if present else f"has other files ({', '.join(others[:3])})"
    raise StateError(
        f"the state directory {state} {has}, and the file has the CA {root}: import into an empty directory"
    )


def write_directory(
    state: Path,
    mesh: MeshState,
    passphrase: Path | None,
    secrets: GatewaySecrets,
    rejections: SavedRejections,
) -> None:
    """Write a state into an empty directory. Raises StateError.

    Until the directory is complete it has a mark. Without the mark, a start after an interrupted import would
    report a lost CA, or make a new one. `passphrase` is the file with the passphrase of the directory.
    """
    directory_marks.begin_import(state, mesh.root)
    _remove_rest(state)
    seal = sealed_state.opened(state, passphrase)
    # The CA comes last: a ledger without a CA is a loss that every program notices.
    with SqliteLedger.open(state / LEDGER_FILE) as ledger:
        ledger.record_all(mesh.entries)
        if mesh.signer is not None:
            ledger.name_authority(mesh.signer)
    if mesh.tokens:
        with SqliteTokens.open(state / TOKENS_FILE) as tokens:
            tokens.add_stored(mesh.tokens)
    pairs = PairFiles(state, seal)
    for holder, pair in sorted(mesh.pairs.items()):
        pairs.keep(holder, pair, None)
    if mesh.gateway_secrets:
        secrets.keep(mesh.gateway_secrets)
        if secrets.load() != mesh.gateway_secrets:
            raise StateError(f"the list of gateway Secrets cannot be written into {state}: see the log")
    if mesh.rejections:
        # Proxies would reject the same once more, so an error is no reason to refuse the import.
        rejections.keep(mesh.rejections)
    _write_authority(state, _of_ledger(mesh), seal)
    directory_marks.end_import(state)


def _write_authority(state: Path, authority: AuthorityState, seal: Seal) -> None:
    """Write the CA, and then the root rotation, as the steps of a store demand."""
    # A store creates a CA alone, and then begins the rotation.
    store = AuthorityFiles(state, seal)
    stored = store.replace(store.read().revision, replace(authority, other=None, rotation=None))
    if authority.rotation is not None:
        store.replace(stored.revision, authority)


def _of_ledger(mesh: MeshState) -> AuthorityState:
    """Return the authority with a first proxy that is in the ledger, because a start looks for it there.

    A shared store forgets old certificates, and with them perhaps the first one.
    """
    serials = {entry.serial for entry in mesh.entries}
    if mesh.authority.first_proxy in serials:
        return mesh.authority
    first = first_of(mesh.entries)
    return replace(mesh.authority, first_proxy=None if first is None else first[1])


def _pairs(pairs: PairFiles) -> Iterator[tuple[Holder, Pair]]:
    for holder in pairs.services():
        try:
            pair = pairs.load(holder)
        except CorruptPairError as error:
            _log.warning(UNREADABLE_PAIR, reason=str(error))
            continue
        if pair is not None:
            yield holder, pair


def _tokens(path: Path) -> tuple[TokenWithUses, ...]:
    if not path.exists():
        return ()
    with SqliteTokens.open(path) as tokens:
        return tokens.stored()


def _remove_rest(state: Path) -> None:
    """Remove what an interrupted import has written."""
    # A killed process leaves temporary files, for example `.issuer.json.5f2c.77.3`.
    patterns = (*_IMPORTED, *(f".{name}.*" for name in _IMPORTED), f".{directory_marks.IMPORTING_FILE}.*")
    for path in sorted(path for pattern in patterns for path in state.glob(pattern)):
        try:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise StateError(f"cannot remove {path}: {error.strerror}") from error
