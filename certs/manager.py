"""Certificate manager: one service certificate for each identity, kept across restarts."""

import hashlib
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import structlog

from certs import renewal
from certs.contract import Issuer, Names, Usage
from certs.errors import RequestError
from certs.keys.leaf import is_signed_by_bundle
from certs.keys.material import ServiceCertificate
from certs.keys.pair import MAKING, KeyPairOptions, Pair
from certs.state.stored_pair import IssuedPair, Pairs, holder_of, issued_pair, kept
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import TrustDomain, is_dns_label, is_dns_subdomain

JITTER_SHARE: Final = 0.1
"""Fraction of the validity by which a certificate may live longer or shorter, so their ends are spread."""

_log = structlog.get_logger("certs.manager")


Request = Callable[[datetime], IssuedPair]
"""Function that issues a certificate now, and returns the pair to use. May be called in any thread."""


def first(identity: ServiceIdentity) -> int:
    """Return 0: the only server of a mesh is the first to renew each certificate."""
    del identity
    return 0


class CertificateManager:
    """The service certificates in force.

    The certificates are stored in `pairs`, so a restart does not issue new keys for the mesh. `validity` is
    the average life of new certificates; `jitter` returns a number from -1 to 1 for each. `issued` counts
    newly issued certificates. `turn` is the turn of this server among several ones to renew a certificate.
    The class has no lock and must be used by one caller at a time.
    """

    def __init__(
        self,
        issuer: Issuer,
        pairs: Pairs,
        validity: timedelta,
        jitter: Callable[[], float],
        making: KeyPairOptions = MAKING,
        turn: Callable[[ServiceIdentity], int] = first,
    ) -> None:
        self._turn = turn
        self._issuer = issuer
        self._pairs = pairs
        self.validity = validity
        self._jitter = jitter
        self._making = making
        self._certificates: dict[ServiceIdentity, ServiceCertificate] = {}
        self._below: dict[ServiceIdentity, bytes] = {}
        self._unusable: dict[ServiceIdentity, str | None] = {}
        self._uncompared: set[ServiceIdentity] = set()
        self.issued = 0

    def get(self, identity: ServiceIdentity) -> ServiceCertificate | None:
        """Return the current certificate of an identity; None without one."""
        return self._certificates.get(identity)

    def trust_bundle(self) -> bytes:
        """Return the roots to be trusted by sidecars now, as PEM."""
        return self._issuer.trust_bundle()

    def forget(self, identity: ServiceIdentity) -> None:
        """Stop renewing an identity's certificate. The stored one stays, in case the identity returns."""
        self._certificates.pop(identity, None)
        self._below.pop(identity, None)
        self._unusable.pop(identity, None)
        self._uncompared.discard(identity)

    def compare(self, identity: ServiceIdentity) -> None:
        """Have the next `fitting` compare the certificate in force with the stored one.

        Another server may have stored another certificate. If that one is usable and not due, it is used, so
        that all servers show the same.
        """
        if identity in self._certificates:
            self._uncompared.add(identity)

    def fitting(
        self,
        identity: ServiceIdentity,
        dns_names: tuple[str, ...],
        now: datetime,
        *,
        patient: bool = False,
    ) -> ServiceCertificate | None:
        """Return a valid certificate for this identity with these DNS names; None if a new one is needed.

        The result is the certificate in force, or the stored one if names, key, root and remaining time fit.
        A stored certificate that is due for renewal is used until a new one is issued; with `patient` this
        includes the certificate in force, unless it is about to expire. Raises RequestError for invalid
        names, and StateError for unreadable files.
        """
        names = service_names(identity, dns_names, self._issuer.trust_domain)
        held = self._certificates.get(identity)
        if held is None or identity in self._uncompared:
            held = self._stored(identity, names, held, now)
        if held is None or held.dns_names != names.dns_names:
            return None
        if renewal.due(held, now, self._turn(identity)) and not (
            patient and held.not_before <= now < renewal.alarm_at(held)
        ):
            return None
        return held if self._is_below(held) else None

    def _stored(
        self, identity: ServiceIdentity, names: Names, held: ServiceCertificate | None, now: datetime
    ) -> ServiceCertificate | None:
        """Return the stored certificate, or `held` if that one is better or the same."""
        stored_pair = kept(self._pairs, holder_of(identity), self._issuer, Usage.SERVICE, names, now)
        self._uncompared.discard(identity)
        pair = stored_pair.pair
        if held is None:
            if pair is not None:
                return self._hold(identity, pair)
            self._unusable[identity] = stored_pair.seen
        # A stored pair that is due would be replaced at once, by each server that has taken it.
        elif pair is not None and not stored_pair.due and pair.leaf.serial != held.serial:
            _log.info(
                "service certificate of another server used", identity=str(identity), serial=pair.leaf.serial
            )
            return self._hold(identity, pair)
        return held

    def request(self, identity: ServiceIdentity, dns_names: tuple[str, ...]) -> Request:
        """Return a function to issue a certificate with a new key; Envoy gets both in one secret.

        Raises RequestError for invalid names; the function raises IssuerError or RequestError.
        """
        names = service_names(identity, dns_names, self._issuer.trust_domain)
        lifetime, held = jittered(self.validity, self._jitter()), self._certificates.get(identity)
        return partial(
            issued_pair,
            self._pairs,
            holder_of(identity),
            self._issuer,
            Usage.SERVICE,
            names,
            lifetime,
            making=self._making,
            before=self._unusable.get(identity) if held is None else held.serial,
        )

    def take(self, identity: ServiceIdentity, issued: IssuedPair) -> ServiceCertificate:
        """Use the result of a request for the identity.

        A certificate that is not stored lasts until a restart.
        """
        if issued.is_new:
            self.issued += 1
            _log_issued(identity, issued.pair, issued.unkept)
        else:
            serial = issued.pair.leaf.serial
            _log.info("service certificate of another server used", identity=str(identity), serial=serial)
        return self._hold(identity, issued.pair)

    def ensure(
        self, identity: ServiceIdentity, dns_names: tuple[str, ...], now: datetime
    ) -> ServiceCertificate:
        """Return a certificate for this identity with these DNS names; issue one only if necessary.

        Raises the errors of `fitting`, and IssuerError; then the certificate in force stays.
        """
        held = self.fitting(identity, dns_names, now)
        return held or self.take(identity, self.request(identity, dns_names)(now))

    def _hold(self, identity: ServiceIdentity, pair: Pair) -> ServiceCertificate:
        certificate = ServiceCertificate(
            identity,
            pair.leaf.serial,
            pair.leaf.not_before,
            pair.leaf.not_after,
            pair.leaf.names.dns_names,
            pair.chain_pem,
            pair.key,
        )
        self._unusable.pop(identity, None)
        self._certificates[identity] = certificate
        self._below[identity] = self._issuer.signing_bundle()
        return certificate

    def _is_below(self, certificate: ServiceCertificate) -> bool:
        """Return whether a certificate is below the current signing roots, which may have changed."""
        bundle = self._issuer.signing_bundle()
        if self._below.get(certificate.identity) != bundle:
            if not is_signed_by_bundle(certificate.chain_pem, bundle):
                return False
            self._below[certificate.identity] = bundle
        return True


def _log_issued(identity: ServiceIdentity, pair: Pair, unkept: str) -> None:
    fields = {
        "identity": str(identity),
        "serial": pair.leaf.serial,
        "not_after": pair.leaf.not_after.isoformat(),
        "dns_names": pair.leaf.names.dns_names,
    }
    if unkept:
        _log.warning("service certificate issued but not stored", **fields, reason=unkept)
    else:
        _log.info("service certificate issued", **fields)


def jittered(validity: timedelta, jitter: float) -> timedelta:
    """Return a validity up to JITTER_SHARE longer (`jitter` 1) or shorter (-1).

    For example, 100 hours with `jitter` 0.5 give 105 hours.
    """
    if not -1 <= jitter <= 1:
        raise ValueError(f"jitter is {jitter}; must be from -1 to 1")
    return validity * (1 + JITTER_SHARE * jitter)


def service_names(identity: ServiceIdentity, dns_names: tuple[str, ...], trust_domain: TrustDomain) -> Names:
    """Return the names in an identity's certificate: one SPIFFE URI, and the DNS names, sorted.

    The common name (`service-` and 16 hexadecimal digits of the URI's SHA-256) is for people. The length is
    fixed and below X.520's limit, and the form differs from a proxy's name, which has dots. For example:
    `service-5f2c8a1be0d94437` with the URI `spiffe://cluster.local/ns/shop/sa/cart`. Raises RequestError.
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
