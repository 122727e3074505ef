"""Certificates by which the control planes of one mesh know each other, and the check of such a certificate.

The common name is `replica.` and the name of the server, for example `replica.meshwright-0-1a2b3c4d`. This is
no proxy's name, which has three labels, and the certificate has no URI. A server for proxies therefore
refuses the holder, and so does every sidecar.
"""

import hashlib
from datetime import datetime, timedelta
from typing import Final

from certs.contract import Issuer, Names, Usage
from certs.errors import PeerRefused, RefusalReason
from certs.keys.leaf import read_leaf
from certs.keys.pair import Pair, issue_pair
from meshwright.mesh.names import TrustDomain

VALIDITY: Final = timedelta(days=1)
"""Validity of a certificate; its key is only in memory, and lost with the server."""

_BEGIN: Final = "replica."


def replica_host(replica: str, domain: TrustDomain) -> str:
    """Return the DNS name that a server shows to the others, for example `4f1c….replica.cluster.local`.

    The first label is a digest, because the name of a server may be longer than a label of the DNS.
    """
    return f"{hashlib.sha256(replica.encode()).hexdigest()[:32]}.{_BEGIN}{domain}"


def replica_names(replica: str, domain: TrustDomain) -> Names:
    """Return the names in the certificate of a server."""
    return Names(f"{_BEGIN}{replica}", dns_names=(replica_host(replica, domain),))


def replica_pair(issuer: Issuer, replica: str, now: datetime) -> Pair:
    """Issue the certificate of a server, with a new key. Raises IssuerError or RequestError."""
    return issue_pair(issuer, Usage.REPLICA, replica_names(replica, issuer.trust_domain), VALIDITY, now)


def replica_of(pem: bytes, domain: TrustDomain, now: datetime) -> str:
    """Return the name of the server that holds a certificate; raise PeerRefused for any other holder.

    TLS has verified that the holder has the key, and that our CA has signed. The CA also signs for proxies,
    services, gateways, and servers for proxies; none of them may call another server. The times are compared
    because a connection may outlive its certificate.
    """
    try:
        leaf = read_leaf(pem)
    except ValueError as error:
        raise PeerRefused(RefusalReason.UNREADABLE, f"the certificate cannot be read: {error}") from error
    if now < leaf.not_before:
        raise PeerRefused(
            RefusalReason.NOT_YET_VALID, f"certificate {leaf.serial} is valid from {leaf.not_before}"
        )
    if now > leaf.not_after:
        raise PeerRefused(RefusalReason.EXPIRED, f"certificate {leaf.serial} expired at {leaf.not_after}")
    begin, replica = leaf.names.common_name[: len(_BEGIN)], leaf.names.common_name[len(_BEGIN) :]
    if begin != _BEGIN or not replica or "." in replica:
        raise PeerRefused(
            RefusalReason.BAD_COMMON_NAME,
            f"common name {leaf.names.common_name[:200]!r} is not the name of a control plane: replica.NAME",
        )
    if (
        not leaf.serves(Usage.REPLICA)
        or leaf.names.alternatives != replica_names(replica, domain).alternatives
    ):
        raise PeerRefused(
            RefusalReason.WRONG_USAGE,
            f"certificate {leaf.serial} is not the one of a control plane: the names are {leaf.names}",
        )
    return replica
