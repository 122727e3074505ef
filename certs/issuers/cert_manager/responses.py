"""Outcome of a CertificateRequest and state of the issuer, parsed from untrusted objects."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from cryptography import x509

from certs.issuers.chain import above
from certs.keys.bundle import TrustBundle
from certs.keys.leaf import signed_by
from meshwright.kube.errors import shortened
from meshwright.kube.resource import Raw
from meshwright.tls.pem import as_pem, certificates_in

_UNAPPROVED: Final = (
    "it is not approved yet: cert-manager's approver does not approve it if its settings "
    "(disableAutoApproval, approveSignerNames) forbid this; then add an approval policy "
    "(docs/operate/certificates.md)"
)
_BEGUN: Final = (
    "it is approved, but its issuer has not answered yet; check that a controller for this "
    "kind of issuer runs"
)


@dataclass(frozen=True, slots=True)
class SignedCertificate:
    """A certificate with its intermediates, without a root; and the roots delivered with the certificate."""

    chain: tuple[x509.Certificate, ...]
    roots: TrustBundle

    @property
    def chain_pem(self) -> bytes:
        """Return the chain as PEM."""
        return as_pem(self.chain)

    @property
    def leaf(self) -> x509.Certificate:
        """Return the requested certificate."""
        return self.chain[0]


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """Final refusal of a CertificateRequest, with the reason."""

    why: str


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """State of a CertificateRequest before the signature, with the condition still missing."""

    why: str = field(default=_UNAPPROVED)


Verdict = SignedCertificate | RefusedRequest | PendingRequest


def judged(raw: Raw) -> Verdict:
    """Return the outcome of a CertificateRequest by the conditions in the status."""
    status, conditions = _mapping(raw.get("status")), _conditions(raw)
    for kind in ("Denied", "InvalidRequest"):
        if (result := conditions.get(kind)) and result.get("status") == "True":
            return RefusedRequest(f"{_WORDS[kind]}: {_why(result)}")
    if (ready := conditions.get("Ready")) is not None:
        if ready.get("status") == "True":
            return _signed(status)
        ended = _WORDS.get(str(ready.get("reason")))
        return PendingRequest(_why(ready)) if ended is None else RefusedRequest(f"{ended}: {_why(ready)}")
    return PendingRequest(_BEGUN) if "Approved" in conditions else PendingRequest()


_WORDS: Final = {
    "Denied": "it was denied",
    "InvalidRequest": "it was found invalid",
    "Failed": "signing failed",
}


def unfit(issuer: Raw) -> str:
    """Return why an Issuer or a ClusterIssuer cannot sign for a mesh now; empty if ready.

    For example: `is not ready: Error getting keypair for CA issuer: secrets "mesh-ca" not found`.
    """
    if "selfSigned" in _mapping(issuer.get("spec")):
        return (
            "signs each certificate with the certificate's own key (selfSigned), so they do not have a CA; "
            "choose an issuer of another type"
        )
    ready = _conditions(issuer).get("Ready")
    if ready is None:
        return "does not have a status yet; check that the controllers of cert-manager run"
    return "" if ready.get("status") == "True" else f"is not ready: {_why(ready)}"


def ends(signed: SignedCertificate, roots: TrustBundle, now: datetime) -> datetime:
    """Return the end of the path from a certificate to a root: the earliest end of all CAs on the path.

    Raises ValueError if there is no path, or if a certificate on the path has expired or is not a CA.
    """
    trusted = sorted(
        certificates_in(roots.pem), key=lambda certificate: certificate.not_valid_after_utc, reverse=True
    )
    signers = [
        *signed.chain[1:],
        *(certificate for certificate in trusted if signed_by(signed.leaf, certificate)),
    ]
    if not signers:
        raise ValueError(
            f"it is signed by {signed.leaf.issuer.rfc4514_string()!r}, which is not one of the roots"
        )
    return above(signers[0], signers[1:], trusted, now).not_after


def _signed(status: Mapping[str, Any]) -> Verdict:
    try:
        leaf, *rest = certificates_in(_decoded(status, "certificate"))
        above = certificates_in(_decoded(status, "ca")) if status.get("ca") else []
    except ValueError as error:
        return RefusedRequest(f"the signed certificate cannot be read: it {error}")
    # An issuer without a root reports its highest CA as `ca`: that is another intermediate.
    upper = [certificate for certificate in (*rest, *above) if certificate.subject != certificate.issuer]
    roots = [certificate for certificate in above if certificate.subject == certificate.issuer]
    return SignedCertificate((leaf, *dict.fromkeys(upper)), TrustBundle.from_pems([as_pem(roots)]))


def _decoded(status: Mapping[str, Any], name: str) -> bytes:
    result = status.get(name)
    try:
        return base64.b64decode(result if isinstance(result, str) else "", validate=True)
    except ValueError:
        raise ValueError(f"has a field {name} that is not base64") from None


def _conditions(raw: Raw) -> dict[str, Mapping[str, Any]]:
    listed = _mapping(raw.get("status")).get("conditions")
    result = listed if isinstance(listed, list) else []
    return {str(item.get("type")): item for item in result if isinstance(item, dict)}


def _why(condition: Mapping[str, Any]) -> str:
    return shortened(str(condition.get("message") or condition.get("reason") or "without a reason"))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
