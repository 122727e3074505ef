"""Whether a peer may speak to the control plane: its certificate and what the ledger says of it.

TLS has proven that the peer holds the key of a certificate below our root. It has not proven that the
certificate is of the right kind or not revoked, nor, in a resumed session, that it is still valid.
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
    """Read the first certificate of what TLS says the peer showed; raise PeerRefused (UNREADABLE)."""
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
    """A peer that may speak to the control plane: who it is, and the ledger's entry of what it shows."""

    name: ProxyName
    entry: LedgerEntry


def _all(signer: str) -> bool:
    """Trust whom TLS has trusted."""
    del signer
    return True


def admitted(
    shown: PeerCertificate, ledger: Ledger, now: datetime, trusts: Callable[[str], bool] = _all
) -> AdmittedPeer:
    """Return who shows this certificate; raise PeerRefused, or StateError where the ledger cannot be read.

    The one way by which whatever serves proxies (discovery, client status, documents, renewal) looks at
    certificate and ledger: when a call begins, and again while it lives. Nothing is noted by it: `presence`.
    `trusts` says whether what a root has signed is good now, by its fingerprint: connections outlive roots.
    """
    entry = ledger.entry(shown.serial)
    name = authorize(shown, entry, now)
    if entry is None:  # authorize refuses that
        raise PeerRefused(
            RefusalReason.NOT_ISSUED, f"{name} shows {shown.serial}, which is not in the ledger"
        )
    if not trusts(entry.signer):
        raise PeerRefused(
            RefusalReason.RETIRED_ROOT, f"{name} shows {shown.serial}, whose root is trusted no longer"
        )
    return AdmittedPeer(name, entry)


def presence(found: AdmittedPeer, ledger: Ledger, address: str, now: datetime) -> bool:
    """Note that an admitted peer is here; say whether that claims its certificate. Raises StateError.

    To be called when nothing else stands against the peer; it waits for no disk.
    """
    if found.entry.takes(Stamp.CLAIMED, now):
        ledger.claim(found.entry.serial, now, address)
        return True
    if found.entry.takes(Stamp.SEEN, now):
        ledger.see(found.entry.serial, now)
    return False


def authorize(peer: PeerCertificate, entry: LedgerEntry | None, now: datetime) -> ProxyName:
    """Return who the peer is, or raise PeerRefused with the first reason that holds.

    `entry` is the ledger's for the peer's serial, None where it has none. To be asked when a stream
    begins and again while it lives: validity ends, and certificates are revoked.
    """
    _check_validity(peer, now)
    if not peer.client_auth or peer.uri_sans:
        raise PeerRefused(
            RefusalReason.WRONG_USAGE,
            f"certificate {peer.serial} is not a proxy certificate (clientAuth, no URI): "
            f"clientAuth {'is' if peer.client_auth else 'is not'} there, URIs {peer.uri_sans}",
        )
    try:
        name = ProxyName.parse(peer.common_name)
    except ProxyNameError as error:
        raise PeerRefused(RefusalReason.BAD_COMMON_NAME, str(error)) from error
    if entry is None or entry.serial != peer.serial:
        raise PeerRefused(RefusalReason.NOT_ISSUED, f"{name} shows {peer.serial}, which is not in the ledger")
    if entry.state is LedgerState.REVOKED:
        raise PeerRefused(
            RefusalReason.REVOKED, f"{name} shows {peer.serial}, which was revoked at {entry.revoked_at}"
        )
    if entry.unclaimed_too_long(now):
        raise PeerRefused(
            RefusalReason.UNCLAIMED,
            f"{name} shows {peer.serial}, which was to be used for the first time by {entry.claim_by}",
        )
    if entry.common_name != peer.common_name:
        raise PeerRefused(
            RefusalReason.NAME_MISMATCH, f"{name} shows {peer.serial}, issued to {entry.common_name}"
        )
    return name


def _check_validity(peer: PeerCertificate, now: datetime) -> None:
    if now < peer.not_before:
        raise PeerRefused(
            RefusalReason.NOT_YET_VALID, f"certificate {peer.serial} is valid from {peer.not_before}"
        )
    if now > peer.not_after:
        raise PeerRefused(RefusalReason.EXPIRED, f"certificate {peer.serial} expired at {peer.not_after}")
