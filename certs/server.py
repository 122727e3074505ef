"""What the control plane shows to whoever dials it: sidecars, and API servers that ask its webhook."""

import ipaddress
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog

from certs.contract import Issuer, Names, Usage
from certs.errors import RequestError
from certs.keys.material import ServerCertificate
from certs.state.stored_pair import ADS_SERVER, WEBHOOK, Holder, Pairs, kept_pair
from meshwright.mesh.names import TrustDomain, is_dns_subdomain

VALIDITY: Final = timedelta(days=90)
"""How long it lives; it is renewed after about half of that, at a start or by whoever asks again."""

_log = structlog.get_logger("certs.server")

_ALWAYS: Final = ("localhost", "127.0.0.1", "::1")


def ads_server_certificate(
    issuer: Issuer, pairs: Pairs, now: datetime, hosts: Sequence[str] = (), *, patient: bool = False
) -> ServerCertificate:
    """Return the server's certificate, which is kept in `pairs`.

    It is for `ads.<trust domain>`, `localhost`, 127.0.0.1, ::1 and the `hosts` (DNS names or addresses),
    and for TLS servers only. The stored one is used until it is due or the hosts change; a new one that
    cannot be stored serves until a restart. To who is `patient` one that is due is good as long as it is
    valid. Raises RequestError for a host that is neither, IssuerError,
    StateError where what is stored cannot be read.
    """
    return _kept(issuer, pairs, ADS_SERVER, server_names(issuer.trust_domain, hosts), now, patient=patient)


def webhook_certificate(issuer: Issuer, pairs: Pairs, now: datetime, host: str) -> ServerCertificate:
    """Return the webhook's certificate, for the `host` alone that API servers dial; kept as the other is.

    Raises RequestError for a host that is neither a DNS name nor an address, IssuerError, StateError.
    """
    return _kept(issuer, pairs, WEBHOOK, _names("webhook", (host,)), now)


def _kept(
    issuer: Issuer, pairs: Pairs, holder: Holder, names: Names, now: datetime, *, patient: bool = False
) -> ServerCertificate:
    pair, unkept = kept_pair(
        pairs, holder, issuer, Usage.SERVER, names, lambda: VALIDITY, now, patient=patient
    )
    if unkept:
        _log.warning("server certificate issued, and not stored", serial=pair.leaf.serial, reason=unkept)
    return ServerCertificate(
        pair.leaf.serial,
        pair.leaf.not_before,
        pair.leaf.not_after,
        pair.leaf.names.dns_names,
        pair.leaf.names.ip_addresses,
        pair.chain_pem,
        pair.key,
    )


def server_names(trust_domain: TrustDomain, hosts: Sequence[str]) -> Names:
    """Return what the ADS server's certificate says; names and addresses are sorted, each once."""
    return _names("ads", (f"ads.{trust_domain}", *_ALWAYS, *hosts))


def _names(common_name: str, hosts: Sequence[str]) -> Names:
    dns_names: set[str] = set()
    addresses: set[str] = set()
    for host in hosts:
        try:
            addresses.add(str(ipaddress.ip_address(host)))
        except ValueError:
            if not is_dns_subdomain(host):
                raise RequestError(f"host {host[:80]!r} is neither a DNS name nor an IP address") from None
            dns_names.add(host)
    return Names(common_name, dns_names=tuple(sorted(dns_names)), ip_addresses=tuple(sorted(addresses)))
