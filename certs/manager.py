"""The certificate manager: one service certificate for each identity, kept through restarts."""

import hashlib
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import structlog

from certs import renewal
from certs.errors import RequestError
from certs.issuers.contract import Issuer, Names, Usage
from certs.material import ServiceCertificate
from certs.pair import Pair
from certs.stored import Pairs, holder_of, kept_pair
from mesh.identity import ServiceIdentity
from mesh.names import TrustDomain, is_dns_label, is_dns_subdomain

JITTER_SHARE: Final = 0.1
"""How much of its validity a certificate may live longer or shorter, so that not all end at once."""

_log = structlog.get_logger("certs.manager")


class CertificateManager:
    """Holds the service certificates in force.

    They are kept in `pairs`, so that a restart does not re-key the mesh. `validity` is what each lives on
    average; `jitter` yields a number from -1 to 1 for each certificate. `issued` counts those that were not
    among the kept ones. For one caller at a time: it has no lock of its own.
    """

    def __init__(
        self, issuer: Issuer, pairs: Pairs, validity: timedelta, jitter: Callable[[], float]
    ) -> None:
        self._issuer = issuer
        self._pairs = pairs
        self._validity = validity
        self._jitter = jitter
        self._held: dict[ServiceIdentity, ServiceCertificate] = {}
        self._below = issuer.signing_bundle()
        self._replaced: set[ServiceIdentity] = set()
        self.issued = 0

    def get(self, identity: ServiceIdentity) -> ServiceCertificate | None:
        """Return the certificate in force for an identity, or None where there is none yet."""
        return self._held.get(identity)

    def trust_bundle(self) -> bytes:
        """Return the roots that sidecars are to trust now, as PEM."""
        return self._issuer.trust_bundle()

    def forget(self, identity: ServiceIdentity) -> None:
        """Stop renewing an identity's certificate; the stored one stays, for an identity that comes back."""
        self._held.pop(identity, None)
        self._replaced.discard(identity)

    def look(self) -> bool:
        """Say whether another root signs than at the last look: then all that is held is to be replaced."""
        if (below := self._issuer.signing_bundle()) == self._below:
            return False
        self._below = below
        self._replaced = set(self._held)
        return True

    def ensure(
        self, identity: ServiceIdentity, dns_names: tuple[str, ...], now: datetime
    ) -> ServiceCertificate:
        """Return a certificate for this identity and these DNS names, a new one only where it must be.

        The one in force, or else the stored one, is used if it has exactly these names, its key, our
        root and time to live. Otherwise one is issued, with a new key (Envoy is given both in one
        secret), stored, and in force; one that cannot be stored (the disk is full) is in force until a
        restart. Raises RequestError for names that cannot be certified, IssuerError when it cannot be issued,
        StateError when what is stored cannot be read: then what was in force stays so.
        """
        names = service_names(identity, dns_names, self._issuer.trust_domain)
        held = self._held.get(identity)
        if (
            held is not None
            and held.dns_names == names.dns_names
            and identity not in self._replaced
            and not renewal.due(held, now)
        ):
            return held
        holder = holder_of(identity)
        pair, unkept = kept_pair(self._pairs, holder, self._issuer, Usage.SERVICE, names, self._lifetime, now)
        if unkept is not None:
            self.issued += 1
            _say_issued(identity, pair, unkept)
        certificate = ServiceCertificate(
            identity,
            pair.leaf.serial,
            pair.leaf.not_before,
            pair.leaf.not_after,
            pair.leaf.names.dns_names,
            pair.chain_pem,
            pair.key,
        )
        self._held[identity] = certificate
        self._replaced.discard(identity)
        return certificate

    def _lifetime(self) -> timedelta:
        return jittered(self._validity, self._jitter())


def _say_issued(identity: ServiceIdentity, pair: Pair, unkept: str) -> None:
    said = {
        "identity": str(identity),
        "serial": pair.leaf.serial,
        "not_after": pair.leaf.not_after.isoformat(),
        "dns_names": pair.leaf.names.dns_names,
    }
    if unkept:
        _log.warning("service certificate issued, and not stored", **said, reason=unkept)
    else:
        _log.info("service certificate issued", **said)


def jittered(validity: timedelta, jitter: float) -> timedelta:
    """Return a validity made up to JITTER_SHARE longer (`jitter` 1) or shorter (-1)."""
    if not -1 <= jitter <= 1:
        raise ValueError(f"jitter {jitter} is not between -1 and 1")
    return validity * (1 + JITTER_SHARE * jitter)


def service_names(identity: ServiceIdentity, dns_names: tuple[str, ...], trust_domain: TrustDomain) -> Names:
    """Return what an identity's certificate says: one SPIFFE URI, and the DNS names sorted, each once.

    The common name (`service-` and 16 hexadecimal digits of the URI's SHA-256) is for people's eyes: of
    one length, below X.520's limit, and never of a proxy's shape, which has dots. Raises RequestError.
    """
    if not is_dns_label(identity.namespace):
        raise RequestError(f"namespace {identity.namespace[:80]!r} is not a DNS-1123 label")
    if not is_dns_subdomain(identity.service_account):
        raise RequestError(f"ServiceAccount {identity.service_account[:80]!r} is not a DNS-1123 subdomain")
    wrong = [name for name in dns_names if not is_dns_subdomain(name)]
    if wrong:
        raise RequestError(f"DNS name {wrong[0][:80]!r} for {identity} is not a DNS-1123 subdomain")
    uri = identity.spiffe_id(trust_domain)
    digest = hashlib.sha256(uri.encode()).hexdigest()[:16]
    return Names(f"service-{digest}", uris=(uri,), dns_names=tuple(sorted(set(dns_names))))
