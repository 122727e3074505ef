"""Certificates of the control plane's servers, for sidecars and for API servers that call the webhook."""

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
"""Validity; renewal follows after about half of this time, at a start or at the next request."""

_log = structlog.get_logger("certs.server")

_ALWAYS: Final = ("localhost", "127.0.0.1", "::1")


def ads_server_certificate(
    issuer: Issuer, pairs: Pairs, now: datetime, hosts: Sequence[str] = (), *, patient: bool = False
) -> ServerCertificate:
    """Return the certificate of the discovery server, stored in `pairs`.

    The certificate is valid for TLS servers only, with the names `ads.<trust domain>` (for example
    `ads.cluster.local`), `localhost`, 127.0.0.1, ::1 and the `hosts` (DNS names or addresses). The stored
    certificate is used until due or the hosts change; with `patient` until its end. Without storage a new one
    is used until a restart. Raises RequestError for an invalid host, IssuerError, and StateError for
    unreadable files.
    """
    return _kept(issuer, pairs, ADS_SERVER, server_names(issuer.trust_domain, hosts), now, patient=patient)


def webhook_certificate(issuer: Issuer, pairs: Pairs, now: datetime, host: str) -> ServerCertificate:
    """Return the certificate of the webhook, only for the `host` in the URL of API servers.

    Stored like the other one. Raises RequestError for an invalid host, IssuerError, and StateError.
    """
    return _kept(issuer, pairs, WEBHOOK, _names("webhook", (host,)), now)


def _kept(
    issuer: Issuer, pairs: Pairs, holder: Holder, names: Names, now: datetime, *, patient: bool = False
) -> ServerCertificate:
    pair, unkept = kept_pair(
        pairs, holder, issuer, Usage.SERVER, names, lambda: VALIDITY, now, patient=patient
    )
    if unkept:
        _log.warning("server certificate issued but not stored", serial=pair.leaf.serial, reason=unkept)
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
    """Return the names of the discovery server's certificate, sorted."""
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
