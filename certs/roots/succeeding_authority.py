"""Authority for the control plane's own channel: the state directory's CA, or a CA in files of others.

If the CA is, or was, in such files, one CA succeeds another as issuers do: certificates of the former one are
valid until they expire, because proxies may be away. The roots are trusted until then.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from certs.contract import Authority, IssuerKind
from certs.errors import StateError
from certs.issuers.file_authority import WatchedFiles, WatchedIssuer
from certs.issuers.stored_ca import trusted_roots
from certs.issuers.succeeding_issuer import Role, SucceedingIssuer
from certs.issuers.succession import FormerIssuer, Succession
from certs.issuers.succession_store import SuccessionStore
from certs.keys.bundle import TrustBundle
from certs.roots.authority import ChangingAuthority
from certs.roots.authority_store import AuthorityStore, CaSlot
from certs.roots.role_succession import RoleSuccession
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
        succession_store: SuccessionStore,
        before: Succession,
        ends: Callable[[], datetime | None],
        now: datetime,
        *,
        drops: bool,
    ) -> None:
        """Record the CA `name` as the signer if new. Raises StateError if writing fails."""
        super().__init__(inner, name, succession_store, before, ends, now, drops=drops, role=Role.CHANNEL)
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
    place: str
    changing: ChangingAuthority | None = None
    why_not: str = ""
    succeeding: SucceedingAuthority | None = None
    tend: Callable[[datetime], None] | None = field(default=None)

    def standing(self) -> AuthorityStatus:
        """Return the current status."""
        formers = () if self.succeeding is None else self.succeeding.formers
        signs = self.authority
        return AuthorityStatus(self.kind, self.place, signs.fingerprint, signs.not_after, formers)

    def may_follow(self, signer: str) -> bool:
        """Return whether a ledger of this signer may be ours, because this CA may have replaced that one."""
        return signer == self.authority.other or self.succeeding is not None


def open_authority(
    authority_store: AuthorityStore,
    trust_domain: TrustDomain,
    now: datetime,
    ends: Callable[[], datetime | None],
    watched: WatchedFiles | None,
) -> OpenedAuthority:
    """Open the authority: the CA in the `watched` files, or the one of the store.

    `ends` returns the latest end of validity of all certificates of the authority. Raises StateError.
    """
    issuers, place = RoleSuccession(authority_store, Role.CHANNEL), authority_store.place
    before = issuers.read()
    if watched is None:
        own = ChangingAuthority(authority_store, trust_domain, now)
        if before is None:
            return OpenedAuthority(own, IssuerKind.BUILT_IN, place, own)
        if before.name == IssuerKind.BUILT_IN:
            before = replace(before, roots=TrustBundle.from_pems([own.trust_bundle()]))
        made = SucceedingAuthority(own, IssuerKind.BUILT_IN, issuers, before, ends, now, drops=True)
        if not made.formers:
            return OpenedAuthority(own, IssuerKind.BUILT_IN, place, own, succeeding=made)
        until = max(former_issuer.until for former_issuer in made.formers).isoformat()
        why = _FORMER.format(until)
        return OpenedAuthority(made, IssuerKind.BUILT_IN, place, None, why, made, made.look)
    state = authority_store.read().state
    if state.rotation is not None:
        raise StateError(
            f"the root in {place} is being rotated; finish or abort this rotation before "
            "you use another CA (authority_directory or authority_certificate)"
        )
    ca = WatchedIssuer(watched, trust_domain, now, Role.CHANNEL.signs, signs_proxies=True)
    before = before or _begun(trusted_roots(state.ca, authority_store.names(CaSlot.SIGNER)), now)
    made = SucceedingAuthority(ca, IssuerKind.FILES, issuers, before, ends, now, drops=False)

    def tend(at: datetime) -> None:
        try:
            ca.look(at)
        finally:
            made.look(at)

    why = _NOT_OURS.format(watched.place)
    return OpenedAuthority(made, IssuerKind.FILES, str(watched.place), None, why, made, tend)


def _begun(own: TrustBundle, now: datetime) -> Succession:
    """Return the succession if none is recorded: the CA of the store, if it has `own` roots."""
    return Succession(IssuerKind.BUILT_IN if own.fingerprints else "", own, now)
