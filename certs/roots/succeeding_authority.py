"""Authority for the control plane's own channel: the state directory's CA, or a CA in files of others.

If the CA is, or was, in such files, one CA succeeds another as issuers do: certificates of the former one are
valid until they expire, because proxies may be away. The roots are trusted until then.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from certs.contract import Authority, IssuerKind
from certs.errors import DamagedError, StateError
from certs.issuers.ca_folder import FOLDER, read_ca
from certs.issuers.file_authority import WatchedFiles, WatchedIssuer
from certs.issuers.succeeding_issuer import CHANNEL, SucceedingIssuer, known
from certs.issuers.succession import FormerIssuer, Succession
from certs.keys.bundle import TrustBundle
from certs.ledger.sqlite import SqliteLedger
from certs.roots import rotation_file as kept
from certs.roots.authority import ChangingAuthority
from certs.state import files
from certs.state.pair_files import PairFiles
from certs.state.sealing import Seal
from meshwright.mesh.names import TrustDomain

LOOKING: Final = 5.0
"""Interval, in seconds, of looking for another CA in the files."""

_NOT_OURS: Final = "this server does not own the root; rotate the CA in {}, and the server follows"
_FORMER: Final = (
    "the root cannot be rotated while a former CA from files is still trusted, until {}; "
    "restart the server after that time"
)


class SucceedingAuthority(SucceedingIssuer):
    """An Authority that also trusts certificates of its predecessors."""

    def __init__(
        self,
        inner: Authority,
        name: str,
        state: Path,
        before: Succession,
        ends: Callable[[], datetime | None],
        now: datetime,
        *,
        drops: bool,
    ) -> None:
        """Record the CA `name` as the signer if new. Raises StateError if writing fails."""
        super().__init__(inner, name, state, before, ends, now, drops=drops, role=CHANNEL)
        self._authority = inner

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint of the signing root."""
        return self._authority.fingerprint

    @property
    def other(self) -> str:
        """Return the fingerprint of the root beside the signing one in a root rotation; empty otherwise."""
        return self._authority.other

    @property
    def leaving(self) -> str:
        """Return the fingerprint of the root to be replaced next; the signing root without a change."""
        return self._authority.leaving

    @property
    def not_after(self) -> datetime:
        """Return the end of the signing root's validity."""
        return self._authority.not_after

    def trusts(self, signer: str) -> bool:
        """Return whether a root is trusted, own or of a predecessor; TLS refuses all others."""
        if self._authority.trusts(signer):
            return True
        return bool(self.formers) and signer != self._authority.other

    def signer_of(self, chain_pem: bytes) -> str:
        """Return the fingerprint of this CA's root above a certificate; empty for other CAs."""
        return self._authority.signer_of(chain_pem)


@dataclass(frozen=True, slots=True)
class AuthorityStatus:
    """The signing CA: kind, place, fingerprint and end, and the predecessors."""

    kind: IssuerKind
    place: str
    signer: str
    not_after: datetime
    formers: tuple[FormerIssuer, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenedAuthority:
    """An opened authority: the kind, the place of the CA, and the means to change or follow the CA.

    `changing` can change the root; if None, `why_not` is the reason. `tend` follows changes of the files;
    None for a CA without watched files. Call `tend` every LOOKING seconds, one caller at a time, in a thread.
    `tend` raises StateError for files without a usable CA; the previous CA then continues.
    """

    authority: Authority
    kind: IssuerKind
    place: Path
    changing: ChangingAuthority | None = None
    why_not: str = ""
    succeeding: SucceedingAuthority | None = None
    tend: Callable[[datetime], None] | None = field(default=None)

    def standing(self) -> AuthorityStatus:
        """Return the current status."""
        formers = () if self.succeeding is None else self.succeeding.formers
        signs = self.authority
        return AuthorityStatus(self.kind, str(self.place), signs.fingerprint, signs.not_after, formers)

    def may_follow(self, signer: str) -> bool:
        """Return whether a ledger of this signer may be ours, because this CA may have replaced that one."""
        return signer == self.authority.other or self.succeeding is not None


def has_authority(state: Path, watched: WatchedFiles | None) -> bool:
    """Return whether there is a CA or a part of one; otherwise one would be created.

    Raises StateError for a broken link in place of the CA.
    """
    stored = read_ca(state / FOLDER)
    own = stored is not None and stored.is_there
    return watched is not None or own or kept.is_under_way(state)


def open_authority(
    state: Path,
    trust_domain: TrustDomain,
    now: datetime,
    seal: Seal,
    ledger: Path,
    watched: WatchedFiles | None,
) -> OpenedAuthority:
    """Open the authority: the CA in the `watched` files, or in the state directory.

    `ledger` is the file with the record of certificates. Raises StateError.
    """
    before, place = known(state, CHANNEL), state / "ca"

    def ends() -> datetime | None:
        return _last_end(state, ledger)

    if watched is None:
        own = ChangingAuthority.open(state, trust_domain, now, seal)
        if before is None:
            return OpenedAuthority(own, IssuerKind.BUILT_IN, place, own)
        if before.name == IssuerKind.BUILT_IN:
            before = replace(before, roots=TrustBundle.from_pems([own.trust_bundle()]))
        made = SucceedingAuthority(own, IssuerKind.BUILT_IN, state, before, ends, now, drops=True)
        if not made.formers:
            return OpenedAuthority(own, IssuerKind.BUILT_IN, place, own, succeeding=made)
        until = max(former_issuer.until for former_issuer in made.formers).isoformat()
        why = _FORMER.format(until)
        return OpenedAuthority(made, IssuerKind.BUILT_IN, place, None, why, made, made.look)
    if kept.is_under_way(state):
        raise StateError(
            f"the root in {place} is being rotated; finish or abort this rotation before "
            "you use another CA (authority_directory or authority_certificate)"
        )
    ca = WatchedIssuer(watched, trust_domain, now, CHANNEL.signs, signs_proxies=True)
    files.private_directory(state)
    before = before or _begun(state, now)
    made = SucceedingAuthority(ca, IssuerKind.FILES, state, before, ends, now, drops=False)

    def tend(at: datetime) -> None:
        try:
            ca.look(at)
        finally:
            made.look(at)

    why = _NOT_OURS.format(watched.place)
    return OpenedAuthority(made, IssuerKind.FILES, watched.place, None, why, made, tend)


def _begun(state: Path, now: datetime) -> Succession:
    """Return the succession if none is recorded: the CA of the state directory, if there is one."""
    own = TrustBundle.from_pems([kept.signing_roots(state)])
    return Succession(IssuerKind.BUILT_IN if own.fingerprints else "", own, now)


def _last_end(state: Path, path: Path) -> datetime | None:
    """Return the latest end of validity of all proxy certificates in the ledger and of stored pairs."""
    moments = [moment] if (moment := PairFiles(state).last_end()) is not None else []
    if path.exists():
        try:
            with SqliteLedger.open(path) as ledger:
                moments += [entry.not_after for entry in ledger.entries()]
        except DamagedError:  # reported when the ledger is opened next
            return max(moments, default=None)
    return max(moments, default=None)
