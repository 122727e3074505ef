"""The certificate of a gateway before the mesh: its names, how one is made, whether it goes on being used.

It is a client's alone, and has DNS names alone: with it nobody is a server of the mesh, or a workload in it.
"""

import hashlib
from datetime import datetime, timedelta

from certs.contract import Issuer, Names, Usage
from certs.keys.pair import MAKING, KeyPairOptions, Pair, issue_pair
from certs.renewal import due
from certs.state.stored_pair import misfit


def gateway_names(dns_names: tuple[str, ...]) -> Names:
    """Return what it says of its holder.

    The common name is `gateway-` and 16 hexadecimal digits of the others' SHA-256: never of a proxy's shape.
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
    """Make one, with a new key. Raises IssuerError, RequestError."""
    return issue_pair(issuer, Usage.GATEWAY, gateway_names(dns_names), validity, now, making)


def outdated(pair: Pair, issuer: Issuer, dns_names: tuple[str, ...], now: datetime) -> str:
    """Say why another has to take the place of one; empty where none has."""
    said = misfit(pair, Usage.GATEWAY, gateway_names(dns_names), issuer.signing_bundle())
    return said or ("it is due for renewal" if due(pair.leaf, now) else "")
