"""The certificate of a gateway in front of the mesh: names, issuance, and renewal.

The certificate is valid for clients only and has only DNS names. Its holder therefore cannot be a server or a
workload of the mesh.
"""

import hashlib
from datetime import datetime, timedelta

from certs.contract import Issuer, Names, Usage
from certs.keys.pair import MAKING, KeyPairOptions, Pair, issue_pair
from certs.renewal import due
from certs.state.stored_pair import misfit


def gateway_names(dns_names: tuple[str, ...]) -> Names:
    """Return the names of a gateway's certificate.

    The common name is `gateway-` and 16 hexadecimal digits of the SHA-256 of the DNS names, for example
    `gateway-5f2c8a1be0d94437`; the form differs from a proxy's name.
    """
    digest = hashlib.sha256(" ".join(dns_names).encode()).hexdigest()[:16]
    return Names(f"gateway-{digest}", dns_names=dns_names)


def gateway_pair(
    issuer: Issuer,
    dns_names: tuple[str, ...],
    validity: timedelta,
    now: datetime,
    making: KeyPairOptions = MAKING,
) -> Pair:
    """Issue a gateway's certificate for these DNS names, with a new key.

    Raises IssuerError or RequestError.
    """
    return issue_pair(issuer, Usage.GATEWAY, gateway_names(dns_names), validity, now, making)


def outdated(pair: Pair, issuer: Issuer, dns_names: tuple[str, ...], now: datetime) -> str:
    """Return why a gateway's certificate must be replaced; empty if the certificate is good."""
    text = misfit(pair, Usage.GATEWAY, gateway_names(dns_names), issuer.signing_bundle())
    return text or ("it is due for renewal" if due(pair.leaf, now) else "")
