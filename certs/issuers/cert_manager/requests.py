"""Our CertificateRequest objects, and the rule for removing abandoned ones."""

import base64
from datetime import datetime, timedelta
from typing import Final

from certs.contract import CertificateRequest, Usage
from certs.issuers.reference import CERT_MANAGER, IssuerReference
from meshwright.kube.resource import Raw, Resource

REQUESTS: Final = Resource(CERT_MANAGER, "v1", "certificaterequests", "CertificateRequest")

LABEL: Final = "meshwright.dev/request"
OURS: Final = "service-certificate"
"""Label of our requests, and the value of the label."""

IDENTITY: Final = "meshwright.dev/identity"
"""Annotation with the owner of the certificate, for people only."""

UNTIL: Final = "meshwright.dev/waited-for-until"
"""Annotation with the time until which the creator waits for the request."""

_CLOCKS: Final = timedelta(minutes=5)
"""Tolerated difference between our clock and that of a request's creator."""


def request(
    certificate_request: CertificateRequest, issuer: IssuerReference, duration: timedelta, until: datetime
) -> Raw:
    """Return the CertificateRequest for a certificate with this duration.

    The object's name begins with the certificate's common name and is completed by the API server, for
    example `meshwright-service-5f2c8a1be0d94437-x7k2p`. Only the CSR is sent: the public key, and the proof
    of possession.
    """
    annotations = {UNTIL: until.isoformat(timespec="seconds")}
    if certificate_request.names.uris:
        annotations[IDENTITY] = certificate_request.names.uris[0]
    return {
        "apiVersion": REQUESTS.api_version,
        "kind": REQUESTS.kind,
        "metadata": {
            "generateName": f"meshwright-{certificate_request.names.common_name}-",
            "labels": {LABEL: OURS},
            "annotations": annotations,
        },
        "spec": {
            "request": base64.b64encode(certificate_request.csr_pem).decode("ascii"),
            "duration": f"{max(int(duration.total_seconds()), 1)}s",
            "usages": _usages(certificate_request.usage),
            "isCA": False,
            "issuerRef": {"group": issuer.group, "kind": issuer.kind, "name": issuer.name},
        },
    }


def is_left_behind(raw: Raw, now: datetime) -> bool:
    """Return whether the waiting time of a request is over; False for a request without an end."""
    metadata = raw.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    answer = annotations.get(UNTIL) if isinstance(annotations, dict) else None
    try:
        until = datetime.fromisoformat(answer) if isinstance(answer, str) else None
    except ValueError:
        return False
    return until is not None and until.tzinfo is not None and until + _CLOCKS < now


def _usages(usage: Usage) -> list[str]:
    """Return key usages in cert-manager's words; like our own leaves, the certificate signs handshakes."""
    result = ["digital signature"]
    if usage.server_auth:
        result.append("server auth")
    if usage.client_auth:
        result.append("client auth")
    return result
