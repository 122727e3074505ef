"""Admission of a peer to the control plane, by certificate and ledger entry.

TLS has verified that the peer has the key of a certificate below our root. TLS has not verified the kind of
the certificate, a revocation, or the validity in a resumed session.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from certs.errors import PeerRefused, RefusalReason
from certs.keys.leaf import read_leaf
from certs.keys.material import PeerCertificate
from certs.ledger.contract import Ledger
from certs.ledger.entry import LedgerEntry, LedgerState, Stamp
from meshwright.mesh.identity import ProxyName, ProxyNameError


def read_peer(pem: bytes) -> PeerCertificate:
    """Parse the first certificate presented by a peer in TLS; raise PeerRefused (UNREADABLE)."""
    try:
        leaf = read_leaf(pem)
    except ValueError as error:
        raise PeerRefused(
            RefusalReason.UNREADABLE, f"the peer's certificate cannot be read: {error}"
        ) from error
    return PeerCertificate(
        leaf.names.common_name,
        leaf.serial,
        leaf.not_before,
        leaf.not_after,
        leaf.names.uris,
        leaf.client_auth,
    )


@dataclass(frozen=True, slots=True)
class AdmittedPeer:
    """An admitted proxy: its name, and the ledger entry of its certificate."""

    name: ProxyName
    entry: LedgerEntry


def _all(signer: str) -> bool:
    """Return True for every signer, because TLS has verified the certificate."""
    del signer
    return True


def admitted(
    shown: PeerCertificate, ledger: Ledger, now: datetime, trusts: Callable[[str], bool] = _all
) -> AdmittedPeer:
    """Return the admitted peer for a certificate; raise PeerRefused, or StateError for an unreadable ledger.

    Every service for proxies (discovery, client status, documents, renewal) uses this function, when a call
    begins and again while the call lives. The function only checks, and `presence` records the use. `trusts`
    returns whether certificates of a root are valid now, by fingerprint, because connections may outlive a
    root.
    """
    entry = ledger.entry(shown.serial)
    name = authorize(shown, entry, now)
    if entry is None:  # for the type checker: authorize refuses this case
        raise PeerRefused(
            RefusalReason.NOT_ISSUED,
            f"{name} presents certificate {shown.serial}, which is not in the ledger",
        )
    if not trusts(entry.signer):
        raise PeerRefused(
            RefusalReason.RETIRED_ROOT,
            f"{name} presents certificate {shown.serial}, whose root is not trusted any more",
        )
    return AdmittedPeer(name, entry)


def presence(admitted_peer: AdmittedPeer, ledger: Ledger, address: str, now: datetime) -> bool:
    """Record the connection of an admitted peer; return whether this was the first use. Raises StateError.

    Call only after all other checks of the peer. Does not wait for the disk.
    """
    if admitted_peer.entry.takes(Stamp.CLAIMED, now):
        ledger.claim(admitted_peer.entry.serial, now, address)
        return True
    if admitted_peer.entry.takes(Stamp.SEEN, now):
        ledger.see(admitted_peer.entry.serial, now)
    return False


def authorize(peer: PeerCertificate, entry: LedgerEntry | None, now: datetime) -> ProxyName:
    """Return the name of a peer, or raise PeerRefused with the first applicable reason.

    `entry` is the ledger's entry for the peer's serial; None without an entry. Call at the begin of a stream
    and repeatedly during the stream, because certificates expire and are revoked.
    """
    _check_validity(peer, now)
    if not peer.client_auth or peer.uri_sans:
        raise PeerRefused(
            RefusalReason.WRONG_USAGE,
            f"certificate {peer.serial} is not a proxy certificate (usage clientAuth, without a URI): "
            f"clientAuth is {'present' if peer.client_auth else 'missing'}, the URIs are {peer.uri_sans}",
        )
    try:
        name = ProxyName.parse(peer.common_name)
    except ProxyNameError as error:
        raise PeerRefused(RefusalReason.BAD_COMMON_NAME, str(error)) from error
    if entry is None or entry.serial != peer.serial:
        raise PeerRefused(
            RefusalReason.NOT_ISSUED, f"{name} presents certificate {peer.serial}, which is not in the ledger"
        )
    if entry.state is LedgerState.REVOKED:
        raise PeerRefused(
            RefusalReason.REVOKED,
            f"{name} presents certificate {peer.serial}, which was revoked at {entry.revoked_at}",
        )
    if entry.unclaimed_too_long(now):
        raise PeerRefused(
            RefusalReason.UNCLAIMED,
            f"{name} presents certificate {peer.serial}, which had to be used for the "
            f"first time before {entry.claim_by}",
        )
    if entry.common_name != peer.common_name:
        raise PeerRefused(
            RefusalReason.NAME_MISMATCH,
            f"{name} presents certificate {peer.serial}, which was issued to {entry.common_name}",
        )
    return name


def _check_validity(peer: PeerCertificate, now: datetime) -> None:
    if now < peer.not_before:
        raise PeerRefused(
            RefusalReason.NOT_YET_VALID, f"certificate {peer.serial} is valid from {peer.not_before}"
        )
    if now > peer.not_after:
        raise PeerRefused(RefusalReason.EXPIRED, f"certificate {peer.serial} expired at {peer.not_after}")
