"""Joining, renewal and trust, one request at a time: only the name that a proof entitles to is certified."""

import asyncio
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Protocol

import structlog

from certs.errors import CertificateError, RefusalReason, RequestError
from certs.keys.bundle import TrustBundle
from certs.keys.material import PeerCertificate, SignedProxy
from certs.keys.signing_request import SigningRequest, judged
from certs.ledger.contract import Judge
from certs.ledger.entry import LedgerEntry, proof_line
from certs.peer import read_peer
from certs.renewal import renew_at
from meshwright.enrolment.ejections import HOLDS, Ejections
from meshwright.enrolment.entry import Entry, origin_of
from meshwright.enrolment.limits import Allowances, EnrolmentLimits, LimitExhausted
from meshwright.enrolment.proofs.contract import Entitlement, Evidence, Proof, ProofRefusal, ProofRefused
from meshwright.enrolment.readmission import revocation
from meshwright.enrolment.trust import Confirmation, Confirmations
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import ProxyUuid
from meshwright.traffic.statistics import Report
from meshwright.traffic.traffic import Traffic

ASK_SOON_SECONDS: Final = 5
"""Seconds between a machine's trust requests during a change of the root.

Short, because each step of the change waits for all machines.
"""

_KEPT: Final = timedelta(hours=1)
"""Minimum time for which a machine's confirmation is remembered outside of a change of the root."""

_FROM_KEYS: Final = uuid.UUID("7e0ffde6-1c1f-5be6-8b59-ff0e3c2d4a61")
"""Namespace (RFC 9562, 6.5) of UUIDs derived from keys."""

_log = structlog.get_logger("enrolment")


class Signer(Protocol):
    """Signer of proxy certificates, which also keeps the ledger; may block, so it is called in a thread."""

    def sign(
        self,
        name: ProxyName,
        request: SigningRequest,
        validity: timedelta | None,
        joined_by: str,
        judge: Judge,
    ) -> SignedProxy:
        """Return a certificate entered in the ledger, if `judge` allows it.

        Raises CertificateError and the errors of `judge`.
        """

    def trust_bundle(self) -> bytes:
        """Return the CA certificates for verifying the control plane, as PEM."""

    @property
    def changes_roots(self) -> bool:
        """Return whether a root rotation is in progress."""

    def replaces(self, certificate_pem: bytes) -> bool:
        """Return whether a proxy certificate must be renewed at any age, because another CA signs now."""


@dataclass(frozen=True, slots=True)
class EnrolmentGrant:
    """A signed proxy certificate with the CA bundle to trust; `now` is the server's time of day."""

    signed: SignedProxy
    bundle: TrustBundle = field(repr=False)
    now: datetime

    @property
    def renew_after(self) -> datetime:
        """Return the time from which the machine should renew the certificate."""
        return renew_at(self.signed)


@dataclass(frozen=True, slots=True)
class EnrolmentReply:
    """The CA bundle to trust (`None`: unchanged) and the time of renewal; `now` is the server's clock."""

    bundle: TrustBundle | None
    renew_after: datetime
    ask_again_seconds: int
    now: datetime


class Enrolment:
    """Service behind both ports, with values as arguments and results.

    `proofs` are the proofs accepted for joining, by kind; `at_hand` judges the certificate of a connection.
    `contradicts` returns the reason why a name must not be certified, else an empty text. `clock` returns the
    date, and `monotonic` seconds that never go back. The caller turns errors into messages that strangers may
    read.
    """

    def __init__(
        self,
        signer: Signer,
        proofs: Mapping[str, Proof],
        at_hand: Proof,
        *,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
        limits: EnrolmentLimits | None = None,
        contradicts: Callable[[ProxyName], str] = lambda _: "",
        confirmations: Confirmations | None = None,
        ejections: Ejections | None = None,
        traffic: Traffic | None = None,
        ask_again_seconds: int = 600,
    ) -> None:
        self._signer = signer
        self._proofs = proofs
        self._at_hand = at_hand
        self._clock = clock
        self._monotonic = monotonic
        limits = limits or EnrolmentLimits()
        self._entry = Entry(limits)
        self._by_proxy = Allowances(limits.by_proxy)
        self._trust_by_proxy = Allowances(limits.trust_by_proxy)
        self._ejects_by_proxy = Allowances(limits.ejects_by_proxy)
        self._reports_by_proxy = Allowances(limits.reports_by_proxy)
        self._log_allowances = Allowances(limits.log_lines)
        self._contradicts = contradicts
        self._ask_again = ask_again_seconds
        self.confirmations = confirmations or Confirmations()
        self.ejections = ejections or Ejections()
        self.traffic = traffic or Traffic()
        self._keys: set[str] = set()

    async def join(self, csr_der: bytes, kind: str, data: bytes, address: str) -> EnrolmentGrant:
        """Certify a key for the name that the proof entitles to.

        Raises RequestError for an invalid request, ProofRefused, ProofUndecided, LimitExhausted, and
        CertificateError if signing fails. An error never uses up a part of the proof.
        """
        try:
            proof = self._proofs.get(kind)
            await self._entry.require(Evidence(data, "", address), proof, self._monotonic())
            # In a thread, because a stranger's request is parsed and its signature verified.
            request = await asyncio.to_thread(judged, csr_der)
            with _KeyLocks(self._keys, request.key_digest):
                if proof is None:
                    raise ProofRefused(ProofRefusal.KIND, f"proof kind {kind[:80]!r} is not accepted")
                granted, entitled = await self._grant(
                    proof, Evidence(data, request.key_digest, address), request
                )
        except (ProofRefused, RequestError, LimitExhausted) as error:
            self._entry.failed(address, self._monotonic())
            self._log_refusal("join refused", error, address, kind)
            raise
        _log.info("proxy joined", proof=kind, shown=entitled.proof, **_described(granted, address))
        return granted

    async def renew(self, csr_der: bytes, certificate: bytes | None, address: str) -> EnrolmentGrant:
        """Sign a new key for the holder of the present certificate; raises the errors of `join`."""
        try:
            request = await asyncio.to_thread(judged, csr_der)
            evidence = Evidence(b"", request.key_digest, address, certificate)
            with _KeyLocks(self._keys, request.key_digest):
                granted, _ = await self._grant(self._at_hand, evidence, request)
        except (ProofRefused, RequestError, LimitExhausted) as error:
            self._log_refusal("renewal refused", error, address, self._at_hand.kind)
            raise
        _log.info("proxy certificate renewed", **_described(granted, address))
        return granted

    async def trust(self, bundle_digest: str, certificate: bytes | None, address: str) -> EnrolmentReply:
        """Record the CA bundle trusted by a machine, and return the current one.

        Raises ProofRefused and LimitExhausted.
        """
        now = self._clock()
        entitled = await self._at_hand.prove(Evidence(b"", "", address, certificate), now)
        name = _name(entitled, "")
        self._trust_by_proxy.require(str(name), self._monotonic(), f"proxy {name}")
        shown = _read_certificate(certificate)
        self.confirmations.note(name, Confirmation(bundle_digest, shown.serial, now.replace(microsecond=0)))
        if not self._signer.changes_roots:
            self.confirmations.tidy(now, max(_KEPT, 3 * timedelta(seconds=self._ask_again)))
        bundle = self._bundle()
        trust_bundle = None if bundle.digest == bundle_digest else bundle
        # Until the next confirmation the machine may have the old bundle or the new one.
        self.confirmations.give(name, bundle.digest)
        replaced = certificate is not None and await asyncio.to_thread(self._signer.replaces, certificate)
        again = min(self._ask_again, ASK_SOON_SECONDS) if self._signer.changes_roots else self._ask_again
        return EnrolmentReply(trust_bundle, now if replaced else renew_at(shown), again, now)

    async def eject(
        self, endpoints: Iterable[HostPort], certificate: bytes | None, address: str
    ) -> timedelta:
        """Record the endpoints ejected by a machine's proxy; return the validity of the report.

        Raises ProofRefused and LimitExhausted.
        """
        now = self._clock()
        entitled = await self._at_hand.prove(Evidence(b"", "", address, certificate), now)
        name = _name(entitled, "")
        self._ejects_by_proxy.require(str(name), self._monotonic(), f"proxy {name}")
        self.ejections.note(name, endpoints, now)
        return HOLDS

    async def report(self, received: Report, certificate: bytes | None, address: str) -> int:
        """Record the calls counted by a machine's proxy; return the seconds until the next report.

        Raises ProofRefused and LimitExhausted.
        """
        entitled = await self._at_hand.prove(Evidence(b"", "", address, certificate), self._clock())
        name = _name(entitled, "")
        self._reports_by_proxy.require(str(name), self._monotonic(), f"proxy {name}")
        return self.traffic.take(name, received, self._monotonic())

    async def _grant(
        self, proof: Proof, evidence: Evidence, request: SigningRequest
    ) -> tuple[EnrolmentGrant, Entitlement]:
        entitled = await proof.prove(evidence, self._clock())
        try:
            name = _name(entitled, evidence.key_digest)
            if words := self._contradicts(name):
                raise ProofRefused(ProofRefusal.OTHER_WORKLOAD, f"{name}: {words}", entitled.proof)
            # Each certificate adds a permanent row to the ledger, so repeated joins are limited as well.
            self._by_proxy.require(str(name), self._monotonic(), f"proxy {name}")
            signed = await asyncio.to_thread(self._sign, name, request, entitled, proof.kind)
        # No certificate was issued, so the use of the token is restored for another attempt.
        except Exception:
            await _give_back(entitled)
            raise
        bundle = self._bundle()
        self.confirmations.give(name, bundle.digest)
        return EnrolmentGrant(signed, bundle, self._clock()), entitled

    def _sign(
        self, name: ProxyName, request: SigningRequest, entitled: Entitlement, kind: str
    ) -> SignedProxy:
        by = f"{kind} {entitled.proof}" if entitled.proof else ""

        def judge(known: tuple[LedgerEntry, ...]) -> None:
            if (revoked := revocation(known, proof_line(by), entitled.since, entitled.serial)) is not None:
                words = f"{name}: certificate {revoked.serial} was revoked at {revoked.revoked_at}"
                at_hand = revoked.serial == entitled.serial
                reason = RefusalReason.REVOKED if at_hand else ProofRefusal.PROXY_REVOKED
                raise ProofRefused(reason, words, entitled.proof)

        return self._signer.sign(name, request, entitled.validity, by or entitled.joined_by, judge)

    def _bundle(self) -> TrustBundle:
        return TrustBundle.from_pems((self._signer.trust_bundle(),))

    def _log_refusal(self, event: str, error: Exception, address: str, kind: str) -> None:
        """Log a refused join or renewal request, with a rate limit per client address."""
        if not self._log_allowances.take(origin_of(address), self._monotonic()):
            return
        match error:
            case ProofRefused():
                reason, shown = error.reason, error.proof
            case LimitExhausted():
                reason, shown = "too_many", error.limit
            case _:
                reason, shown = "signing_request", ""
        _log.warning(event, reason=reason, detail=str(error), proof=kind[:80], shown=shown, peer=address)


class _KeyLocks:
    """Lock per key: of two concurrent requests, one might give back the use that the other one needs."""

    def __init__(self, keys: set[str], key: str) -> None:
        self._keys, self._key = keys, key

    def __enter__(self) -> None:
        if self._key in self._keys:
            raise LimitExhausted("another request with the same key is under way")
        self._keys.add(self._key)

    def __exit__(self, *_: object) -> None:
        self._keys.discard(self._key)


def _name(entitled: Entitlement, key_digest: str) -> ProxyName:
    if isinstance(entitled.holder, ProxyName):
        return entitled.holder
    service, namespace = entitled.holder
    return ProxyName(ProxyUuid(str(uuid.uuid5(_FROM_KEYS, key_digest))), service, namespace)


async def _give_back(entitled: Entitlement) -> None:
    try:
        await asyncio.to_thread(entitled.give_back)
    except CertificateError as error:
        _log.error(
            "join failed and used up its proof: the machine needs a new one",
            shown=entitled.proof,
            reason=str(error),
        )


def _read_certificate(certificate: bytes | None) -> PeerCertificate:
    if certificate is None:
        raise ProofRefused("no_certificate")
    return read_peer(certificate)


def _described(granted: EnrolmentGrant, address: str) -> dict[str, str]:
    signed = granted.signed
    until = signed.not_after.isoformat()
    return {"proxy": str(signed.name), "serial": signed.serial, "not_after": until, "peer": address}
