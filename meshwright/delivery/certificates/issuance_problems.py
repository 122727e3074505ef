"""Problems of service certificates: failed issuance, and expiry because the renewal fails."""

from collections.abc import Collection
from dataclasses import dataclass

from certs.errors import CertificateError, IssuerError, StateError
from certs.keys.material import ServiceCertificate
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import SERVICE_ACCOUNT
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import FromSource
from meshwright.mesh.problems.problem import Problem, Severity


@dataclass(frozen=True, slots=True)
class ExpiringCertificate:
    """Certificate in force that cannot be renewed and has less than a quarter of its validity left."""

    certificate: ServiceCertificate
    error: str


def remarks_on(expiring_certificates: Collection[ExpiringCertificate]) -> tuple[str, ...]:
    """Return a sentence about expiring certificates for the readiness page, in a tuple; empty without any."""
    if not expiring_certificates:
        return ()
    first = min(expiring_certificates, key=lambda certificate: certificate.certificate.not_after)
    until = f"{first.certificate.not_after:%Y-%m-%dT%H:%M:%SZ}"
    text = f"the first, of {first.certificate.identity}, expires at {until}: {first.error}"
    return (f"{len(expiring_certificates)} service certificates expire soon and cannot be renewed; {text}",)


def failure_kind(error: CertificateError) -> str:
    """Return the kind of a failed issuance for metrics: `issuer`, `state` or `request`."""
    match error:
        case IssuerError():
            return "issuer"
        case StateError():
            return "state"
        case _:
            return "request"


def problem(identity: ServiceIdentity, error: CertificateError) -> Problem:
    """Return the problem of a ServiceAccount whose certificate could not be issued."""
    return Problem(
        code="certificate-not-issued",
        severity=Severity.ERROR,
        origin=FromSource("certificates"),
        key=ObjectKey(SERVICE_ACCOUNT, Namespace(identity.namespace), identity.service_account),
        expected=str(error),
    )
