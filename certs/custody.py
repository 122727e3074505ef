"""Custody of the CA and the ledger in a state directory.

Both are opened together, and only if they belong together.

The ledger decides which proxies are admitted. With a lost or older ledger, all proxies would be refused, or
revoked ones admitted. Therefore the CA directory has a mark, the serial of the first issued proxy
certificate, and a start fails if mark and ledger do not match. The operator then repeats the serial, for
example in `--rebuild-ledger 3f9a02`, to begin anew or to rebuild the ledger (`certs.state_check`,
`certs.ledger.rebuilding`).
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from certs.authority_files.store import AuthorityFiles
from certs.contract import Authority
from certs.errors import CorruptPairError, DamagedError, RequestError, StateError
from certs.issuers.file_authority import WatchedFiles
from certs.keys.serial import read_serial
from certs.ledger.contract import Ledger
from certs.ledger.mark import ENDING
from certs.ledger.rebuilding import RebuildingLedger
from certs.ledger.sqlite import SqliteLedger
from certs.lifetimes import VALIDITY
from certs.roots.authority_store import AuthorityStore
from certs.roots.first_proxy import FirstProxy
from certs.roots.succeeding_authority import OpenedAuthority, open_authority
from certs.state import directory_marks, sealed_state
from certs.state.pair_files import PairFiles
from certs.state.sealing import Seal
from certs.state.shared_mark import SHARED_FILE as SHARED_FILE
from certs.state.stored_pair import ADS_SERVER, Pairs
from certs.state_check import REBUILT, Loss, StateContents, loss, sentence
from meshwright.mesh.names import TrustDomain

LEDGER_FILE: Final = "ledger.sqlite"
REBUILDING_FILE: Final = "ledger.rebuilding.sqlite"
_LEDGER_FILES: Final = (ENDING, "", "-journal", "-wal", "-shm")
"""Suffixes of the files of one ledger; moved from the last to the first.

The mark of revocations is moved after the ledger, because a ledger without its mark could be an older one.
"""

_log = structlog.get_logger("certs.opening")


@dataclass(frozen=True, slots=True)
class AuthorityWithLedger:
    """A CA with its ledger, and the mark that connects both; `made` is True for a new CA.

    `seal` encrypts stored private keys, and `store` has the state of the authority. `rebuilding` is set while
    a lost ledger is being rebuilt; then all proxies are refused. `service_pairs` are the service certificates
    that several servers share, `None` if they are in the state directory.
    """

    ledger: Ledger
    first: FirstProxy
    seal: Seal
    store: AuthorityStore
    opened_authority: OpenedAuthority
    made: bool
    rebuilding: RebuildingLedger | None = None
    service_pairs: Pairs | None = None

    def pairs_of_services(self, state: Path) -> Pairs:
        """Return the store of service certificates; `state` is the state directory of this server."""
        return PairFiles(state, self.seal) if self.service_pairs is None else self.service_pairs

    @property
    def authority(self) -> Authority:
        """Return the signing authority."""
        return self.opened_authority.authority


@dataclass(frozen=True, slots=True)
class Custody:
    """The location of a mesh's keys: the file with their passphrase, and the files of an external CA.

    `passphrase` is None for unencrypted keys, and `authority` for the CA of the state directory.
    """

    passphrase: Path | None = None
    authority: WatchedFiles | None = None


_PLAIN: Final = Custody()


def begun(state: Path) -> bool:
    """Return whether a state directory has a CA or a ledger, even partly."""
    return AuthorityFiles(state).read().state.has_ca or (state / LEDGER_FILE).exists()


@contextmanager
def opened(
    state: Path,
    trust_domain: TrustDomain,
    now: datetime,
    begin_anew: str = "",
    rebuild: str = "",
    usual: timedelta = VALIDITY,
    custody: Custody = _PLAIN,
) -> Iterator[AuthorityWithLedger]:
    """Open CA and ledger for the context, and make them at the first start; the caller must hold the lock.

    Unusable files raise StateError, and a lost part StateError with a serial. If `begin_anew` is this serial,
    the rest of the ledger is moved aside. If `rebuild` is this serial, a lost ledger is rebuilt beside the
    rest. `usual` is the validity of proxy certificates without an explicit request.
    """
    directory_marks.require_present(state)
    if (state / SHARED_FILE).exists():
        raise StateError(
            f"the CA and the ledger of {state} are in a store of several servers (file {SHARED_FILE}): "
            "set store to kubernetes for the server, and run commands while the server runs"
        )
    seal, ledger_path = sealed_state.opened(state, custody.passphrase), state / LEDGER_FILE
    store = AuthorityFiles(state, seal, is_foreign=custody.authority is not None)
    first = FirstProxy(store)

    def authority() -> OpenedAuthority:
        ends = partial(_last_end, PairFiles(state, seal), ledger_path)
        return open_authority(store, trust_domain, now, ends, custody.authority)

    made = custody.authority is None and not store.read().state.has_ca
    whose = None if made else authority()
    lost = _lost(state, ledger_path, first, whose, seal)
    if lost is not None:
        if whose is not None and _is_to_be_rebuilt(lost, rebuild):
            with SqliteLedger.open(state / REBUILDING_FILE) as confirmed:
                confirmed.name_authority(whose.authority.fingerprint)
                rebuilding = RebuildingLedger(confirmed, partial(_signer_of, whose.authority), usual)
                yield AuthorityWithLedger(rebuilding, first, seal, store, whose, False, rebuilding)
            return
        if not begin_anew or read_serial(begin_anew) != lost.serial:
            raise StateError(sentence(lost, state, ledger_path))
        _begin_anew(ledger_path, first)
        _log.warning("new ledger started; proxies need new certificates", lost=lost.lost.name.lower())
    whose = whose or authority()
    with SqliteLedger.open(ledger_path) as ledger:
        signer = whose.authority.fingerprint
        ledger.name_authority(signer)
        if ledger.authority() != signer:  # the signer changed, or a process died during the change
            ledger.change_authority(signer)
        first.note(ledger)
        ledger.note_revocations()
        yield AuthorityWithLedger(ledger, first, seal, store, whose, made)


def _last_end(pairs: Pairs, ledger_path: Path) -> datetime | None:
    """Return the latest end of validity of all proxy certificates in the ledger and of stored pairs."""
    moments = [moment] if (moment := pairs.last_end()) is not None else []
    if ledger_path.exists():
        with suppress(DamagedError), SqliteLedger.open(ledger_path) as ledger:  # reported when opened next
            moments += [entry.not_after for entry in ledger.entries()]
    return max(moments, default=None)


def _signer_of(authority: Authority, pem: bytes) -> str:
    """Return the signing root of a certificate, which may lack its intermediates.

    If the root is unknown, return the root to be replaced next, so the certificate is renewed before the
    retirement of this root.
    """
    return authority.signer_of(pem) or authority.leaving


def _is_to_be_rebuilt(lost: Loss, rebuild: str) -> bool:
    return bool(rebuild) and lost.lost in REBUILT and read_serial(rebuild) == lost.serial


def rebuilt(state: Path) -> int:
    """Make the confirmed certificates the ledger; return their number.

    The server must be stopped, and the caller must hold the lock. The rest of the lost ledger is moved aside.
    At every moment the directory has a ledger that matches the CA, or a ledger known to be lost. Raises
    RequestError if no certificate is confirmed, and StateError.
    """
    directory_marks.require_present(state)
    ledger_path, kept_path = state / LEDGER_FILE, state / REBUILDING_FILE
    if not _has_content(kept_path):
        raise RequestError(
            f"the ledger in {state} is not being rebuilt; start the server with --rebuild-ledger first"
        )
    with SqliteLedger.open(kept_path) as ledger:
        if not (count := len(ledger.entries())):
            raise RequestError(
                "no certificate is confirmed yet, so the rebuilt ledger would refuse every "
                "proxy; confirm certificates first"
            )
    stores = (AuthorityFiles(state, is_foreign=is_foreign) for is_foreign in (True, False))
    _begin_anew(ledger_path, *map(FirstProxy, stores))
    try:
        for end in reversed(_LEDGER_FILES):  # the file itself last: until then the ledger counts as lost
            with suppress(FileNotFoundError):
                kept_path.with_name(kept_path.name + end).rename(f"{ledger_path}{end}")
    except OSError as error:
        raise StateError(f"{kept_path} cannot be renamed to {ledger_path}: {error.strerror}") from error
    return count


def _lost(
    state: Path, ledger_path: Path, first: FirstProxy, opened_authority: OpenedAuthority | None, seal: Seal
) -> Loss | None:
    """Return the missing or wrong part of the CA and the ledger, judged by the files; creates no file."""
    signer = None if opened_authority is None else opened_authority.authority.fingerprint
    marked, shown = first.read(), _shown(state, seal)
    if not _has_content(ledger_path):
        return loss(StateContents(signer, marked, shown=shown))
    try:
        with SqliteLedger.open(ledger_path) as ledger:
            known = marked is not None and ledger.entry(marked) is not None
            signed_by = ledger.authority()
            if (
                opened_authority is not None
                and signed_by is not None
                and opened_authority.may_follow(signed_by)
            ):
                signed_by = signer  # either root may sign now: they may just have been exchanged
            stands = StateContents(signer, marked, True, known, ledger.first(), signed_by, shown)
            return loss(replace(stands, forgotten=ledger.forgotten()))
    except DamagedError:
        if (lost := loss(StateContents(signer, marked, True, shown=shown, damaged=True))) is None:
            raise
        return lost


def _has_content(path: Path) -> bool:
    try:
        return path.is_dir() or path.stat().st_size > 0
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StateError(f"cannot open ledger {path}: {error.strerror}") from error


def _shown(state: Path, seal: Seal) -> str | None:
    try:
        pair = PairFiles(state, seal).load(ADS_SERVER)
    except CorruptPairError:
        return None
    return None if pair is None else pair.leaf.serial


def _begin_anew(ledger_path: Path, *notes: FirstProxy) -> None:
    try:
        number = 1
        while (aside := ledger_path.with_name(f"{ledger_path.name}.lost-{number}")).exists():
            number += 1
        # The ledger itself last, so that an interrupted start can be repeated.
        for end in reversed(_LEDGER_FILES):
            with suppress(FileNotFoundError):
                ledger_path.with_name(ledger_path.name + end).rename(aside.with_name(aside.name + end))
        for first in notes:
            first.forget()
    except OSError as error:
        raise StateError(f"cannot rename {ledger_path}: {error.strerror}") from error
