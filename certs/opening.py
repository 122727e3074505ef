"""Opens the CA and the ledger of a state directory together, and only if they belong together."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from certs import files, sealed_state
from certs.belonging import Found, Loss, Lost, loss
from certs.errors import CorruptPairError, DamagedError, RequestError, StateError
from certs.issuers import root
from certs.issuers.contract import Authority
from certs.ledger.contract import Ledger
from certs.ledger.rebuilding import RebuildingLedger
from certs.ledger.sqlite import SqliteLedger
from certs.pair_files import PairFiles
from certs.roots import kept
from certs.roots.authority import ChangingAuthority
from certs.sealing import Seal
from certs.serial import read_serial
from certs.stored import ADS_SERVER
from certs.terms import VALIDITY
from mesh.names import TrustDomain

LEDGER_FILE: Final = "ledger.sqlite"
REBUILDING_FILE: Final = "ledger.rebuilding.sqlite"
_MARK: Final = "first-proxy"
_SQLITE_FILES: Final = ("", "-journal", "-wal", "-shm")
_REBUILT: Final = frozenset({Lost.LEDGER, Lost.OTHER_LEDGER, Lost.DAMAGED_LEDGER})
"""What can be had back from what proxies show: their certificates are below a CA that is there."""

_log = structlog.get_logger("certs.opening")


class FirstProxy:
    """The first proxy certificate that a CA has issued, noted beside it: which ledger goes with it.

    One that cannot be noted now is noted when the next one is issued, or at the next start.
    """

    def __init__(self, state: Path) -> None:
        self._path = state / "ca" / _MARK
        self._noted = False

    def read(self) -> str | None:
        """Return the serial; None where none is noted. Raises StateError."""
        content = files.read(self._path)
        return None if content is None else content.decode("ascii", "replace").strip()

    def note(self, ledger: Ledger) -> None:
        """Note the ledger's first certificate, unless there is none or one is noted already."""
        if not self._noted and (serial := ledger.first()) is not None:
            with suppress(StateError):
                if self.read() is None:
                    files.write_private(self._path, f"{serial}\n".encode("ascii"))
                self._noted = True

    def forget(self) -> None:
        """Remove the note."""
        self._path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Opened:
    """A CA with its ledger, and the note that holds them together; `made` says that the CA is new.

    `seal` encrypts the private keys beside them. `rebuilding` is the ledger where it was lost and is being
    rebuilt: then nobody is let in.
    """

    authority: Authority
    ledger: Ledger
    first: FirstProxy
    seal: Seal
    made: bool
    rebuilding: RebuildingLedger | None = None


def begun(state: Path) -> bool:
    """Say whether a mesh has begun in a state directory: a CA or a ledger is there, or a part of one."""
    return _has_authority(state) or (state / LEDGER_FILE).exists()


def _has_authority(state: Path) -> bool:
    return root.is_there(state) or kept.is_under_way(state)


@contextmanager
def opened(
    state: Path,
    trust_domain: TrustDomain,
    now: datetime,
    begin_anew: str = "",
    rebuild: str = "",
    usual: timedelta = VALIDITY,
    passphrase: Path | None = None,
) -> Iterator[Opened]:
    """Open both, made on the first start, for as long as the context lasts; the caller holds the lock.

    Where one of them is lost it is StateError, unless `begin_anew` is the serial that the error names: then
    what is left of the ledger is moved aside. If `rebuild` is, a lost ledger is rebuilt beside what is left;
    proxy certificates live the `usual` time where nothing is asked. `passphrase` is the file with that of the
    private keys, if they are to be encrypted. Raises StateError as well where any of it cannot be used.
    """
    seal = sealed_state.opened(state, passphrase)
    first, ledger_path = FirstProxy(state), state / LEDGER_FILE
    made = not _has_authority(state)
    authority = None if made else _authority(state, trust_domain, now, seal)
    lost = _lost(state, ledger_path, first, authority, seal)
    if lost is not None:
        if authority is not None and _is_to_be_rebuilt(lost, rebuild):
            with SqliteLedger.open(state / REBUILDING_FILE) as confirmed:
                confirmed.name_authority(authority.fingerprint)
                rebuilding = RebuildingLedger(confirmed, partial(_signer_of, authority), usual)
                yield Opened(authority, rebuilding, first, seal, made=False, rebuilding=rebuilding)
            return
        if not begin_anew or read_serial(begin_anew) != lost.serial:
            raise StateError(_sentence(lost, state, ledger_path))
        _begin_anew(ledger_path, first)
        _log.warning("begun anew: proxies need new certificates", lost=lost.lost.name.lower())
    authority = authority or _authority(state, trust_domain, now, seal)
    with SqliteLedger.open(ledger_path) as ledger:
        ledger.name_authority(authority.fingerprint)
        if ledger.authority() != authority.fingerprint:  # a process has died when another root began to sign
            ledger.change_authority(authority.fingerprint)
        first.note(ledger)
        yield Opened(authority, ledger, first, seal, made)


def _signer_of(authority: Authority, pem: bytes) -> str:
    """Return which root signed a certificate that may have come without its intermediates.

    Of which it is not known, that is the one which gives way: so it is replaced before that root is gone.
    """
    return authority.signer_of(pem) or authority.leaving


def _is_to_be_rebuilt(lost: Loss, rebuild: str) -> bool:
    return bool(rebuild) and lost.lost in _REBUILT and read_serial(rebuild) == lost.serial


def rebuilt(state: Path) -> int:
    """Have what was confirmed be the ledger from now on; return how many certificates that are.

    No server may run; the caller holds the lock. What is left of the lost one is moved aside, and at each
    moment the directory has a ledger that belongs to its CA, or one that is known to be lost. Raises
    RequestError where nothing was confirmed, StateError.
    """
    ledger_path, kept_path = state / LEDGER_FILE, state / REBUILDING_FILE
    if not _has_content(kept_path):
        raise RequestError(f"no ledger is being rebuilt in {state}: start the server with --rebuild-ledger")
    with SqliteLedger.open(kept_path) as ledger:
        if not (count := len(ledger.entries())):
            raise RequestError("no certificate is confirmed: the ledger would refuse every proxy")
    _begin_anew(ledger_path, FirstProxy(state))
    try:
        for end in reversed(_SQLITE_FILES):  # what was confirmed last: until then the ledger is lost
            with suppress(FileNotFoundError):
                kept_path.with_name(kept_path.name + end).rename(f"{ledger_path}{end}")
    except OSError as error:
        raise StateError(f"{kept_path} cannot become {ledger_path}: {error.strerror}") from error
    return count


def _authority(state: Path, trust_domain: TrustDomain, now: datetime, seal: Seal) -> Authority:
    """Open who signs for a state directory: the one place that says which issuer that is."""
    return ChangingAuthority.open(state, trust_domain, now, seal)


def _lost(
    state: Path, ledger_path: Path, first: FirstProxy, authority: Authority | None, seal: Seal
) -> Loss | None:
    """Return what is lost, by what there is; makes nothing."""
    signer = None if authority is None else authority.fingerprint
    marked, shown = first.read(), _shown(state, seal)
    if not _has_content(ledger_path):
        return loss(Found(signer, marked, shown=shown))
    try:
        with SqliteLedger.open(ledger_path) as ledger:
            known = marked is not None and ledger.entry(marked) is not None
            signed_by = ledger.authority()
            if authority is not None and signed_by == authority.other:
                signed_by = signer  # whichever of the two signs now: their places may have just changed
            return loss(Found(signer, marked, True, known, ledger.first(), signed_by, shown))
    except DamagedError:
        if (lost := loss(Found(signer, marked, True, shown=shown, damaged=True))) is None:
            raise
        return lost


def _has_content(path: Path) -> bool:
    try:
        return path.is_dir() or path.stat().st_size > 0
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StateError(f"ledger {path} cannot be opened: {error.strerror}") from error


def _shown(state: Path, seal: Seal) -> str | None:
    try:
        pair = PairFiles(state, seal).load(ADS_SERVER)
    except CorruptPairError:
        return None
    return None if pair is None else pair.leaf.serial


def _begin_anew(ledger_path: Path, first: FirstProxy) -> None:
    try:
        number = 1
        while (aside := ledger_path.with_name(f"{ledger_path.name}.lost-{number}")).exists():
            number += 1
        for end in reversed(_SQLITE_FILES):  # the ledger itself last: until then it is still to be begun anew
            with suppress(FileNotFoundError):
                ledger_path.with_name(ledger_path.name + end).rename(aside.with_name(aside.name + end))
        first.forget()
    except OSError as error:
        raise StateError(f"{ledger_path} cannot be moved aside: {error.strerror}") from error


def _sentence(lost: Loss, state: Path, ledger: Path) -> str:
    authority = state / "ca"
    anew = f"--begin-anew {lost.serial}: then every proxy needs a new certificate"
    rebuilt = f"rebuild it from what proxies show with --rebuild-ledger {lost.serial}"
    refused = "every proxy would be refused"
    match lost.lost:
        case Lost.LEDGER:
            return (
                f"ledger {ledger} is missing or empty, and the CA in {authority} has issued certificates: "
                f"{refused}; put the ledger back, {rebuilt}, or begin a new one with {anew}"
            )
        case Lost.OTHER_LEDGER:
            return (
                f"ledger {ledger} does not belong to the CA in {authority}: it does not know {lost.serial}, "
                f"the first proxy certificate that was issued; put the right one there, {rebuilt}, or "
                f"begin a new one with {anew}"
            )
        case Lost.DAMAGED_LEDGER:
            return (
                f"ledger {ledger} is damaged, or is no ledger: {refused}; put a copy there, {rebuilt}, or "
                f"begin a new one with {anew}"
            )
        case Lost.AUTHORITY:
            return (
                f"the CA in {authority} is missing, and ledger {ledger} knows certificates that it issued: "
                f"{refused}; put ca.pem and ca.key back, or make a new CA with {anew}"
            )
        case Lost.OTHER_AUTHORITY:
            return (
                f"the CA in {authority} is not the one that issued what ledger {ledger} knows: {refused}; "
                f"put the right ca.pem and ca.key there, or begin a new ledger with {anew}"
            )
        case Lost.BOTH:
            return (
                f"the CA and the ledger are missing in {state}, where a server has run: {refused}; put ca/ "
                f"and {ledger.name} back, or begin with new ones with {anew}"
            )
