"""Surroundings of cert-manager's issuers: CAs in Secrets, issuers, and answers to requests."""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from certs.contract import Issuer, Names, Usage
from certs.issuers.cert_manager.issuer import CertificateRequestSettings, CertManagerIssuer
from certs.issuers.exchanges import Exchanges
from certs.issuers.reference import IssuerReference
from certs.keys.bundle import TrustBundle
from certs.keys.pair import KeyPairOptions, Pair, issue_pair
from meshwright.kube.connection.connection import find_connection
from meshwright.mesh.names import TrustDomain
from tests.kubernetes.tools.api_requests import Answer, Asking
from tests.tools.deadline import wait_until
from tests.unit.certs.issuers.example_cas import Ca, ca

Document = dict[str, Any]

GROUP: Final = "cert-manager.io/v1"
DOMAIN: Final = TrustDomain("mesh.example")
SECONDS: Final = 60.0
HOUR: Final = timedelta(hours=1)
NAMES: Final = Names(
    "service-1fd669f05426379b",
    uris=("spiffe://mesh.example/ns/shop/sa/store",),
    dns_names=("store.shop", "store.shop.svc.cluster.local"),
)


def now() -> datetime:
    """Return the current time."""
    return datetime.now(UTC)


def new_ca(name: str = "root", **more: Any) -> Ca:
    """Make a CA."""
    return ca(name, now(), **more)


def issued(issuer: Issuer, making: KeyPairOptions | None = None) -> Pair:
    """Request a certificate that is valid for an hour."""
    return issue_pair(issuer, Usage.SERVICE, NAMES, HOUR, now(), making or KeyPairOptions())


def text(content: bytes) -> str:
    """Return bytes in the form of a Secret's data."""
    return base64.b64encode(content).decode("ascii")


def self_signed(name: str) -> tuple[ec.EllipticCurvePrivateKey, bytes]:
    """Return a key and a CSR of a CA, signed by that key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    csr = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return key, csr.public_bytes(serialization.Encoding.PEM)


@dataclass(frozen=True)
class Signing:
    """A namespace for requests, and its administrator."""

    ask: Asking
    kubeconfig: Path
    namespace: str

    def make(self, kind: str, name: str, version: str = GROUP, at: str | None = None, **more: Any) -> Answer:
        """Create an object, by default in the namespace; an empty `at` is for cluster-scoped objects."""
        metadata = {"name": name} | ({"namespace": self.namespace} if at is None else {})
        metadata |= {"namespace": at} if at else {}
        answer = self.ask.create({"apiVersion": version, "kind": kind, "metadata": metadata, **more}, "")
        assert answer.status == 201, answer
        return answer

    def secret(
        self, ca: Ca, *roots: Ca, between: bytes = b"", name: str = "ca", at: str | None = None
    ) -> None:
        """Put a CA into a Secret, in cert-manager's form."""
        data = {"tls.crt": text(ca.pem + between), "tls.key": text(ca.key_pem)}
        if roots:
            data["ca.crt"] = text(b"".join(root.pem for root in roots))
        self.make("Secret", name, "v1", at, type="kubernetes.io/tls", data=data)

    def replace_secret(self, ca: Ca, name: str = "ca") -> None:
        """Replace the CA in the Secret."""
        data = {"tls.crt": text(ca.pem), "tls.key": text(ca.key_pem)}
        path = f"/api/v1/namespaces/{self.namespace}/secrets/{name}"
        assert self.ask("PATCH", path, {"data": data}, "application/merge-patch+json").status == 200

    def ca_issuer(self) -> str:
        """Create an Issuer with the CA in the Secret; return its name once it is ready."""
        self.make("Issuer", "mesh", spec={"ca": {"secretName": "ca"}})
        self.until_ready("mesh")
        return "Issuer/mesh"

    def until_ready(self, name: str) -> None:
        """Wait until an Issuer is ready."""
        path = f"/apis/{GROUP}/namespaces/{self.namespace}/issuers/{name}"
        self.ask.until(path, is_ready)

    def open(
        self,
        issuer: str,
        *,
        seconds: float = SECONDS,
        roots: Path | None = None,
        known: TrustBundle | None = None,
        kubeconfig: Path | None = None,
        namespace: str = "",
    ) -> CertManagerIssuer:
        """Open an issuer like a server."""
        asked = CertificateRequestSettings(
            IssuerReference.parse(issuer), namespace or self.namespace, seconds, roots
        )
        connection = find_connection(kubeconfig or self.kubeconfig, "")
        return CertManagerIssuer.open(
            connection, asked, DOMAIN, known or TrustBundle.from_pems([]), now(), Exchanges()
        )

    @property
    def requests(self) -> str:
        """Return the path of the requests."""
        return f"/apis/{GROUP}/namespaces/{self.namespace}/certificaterequests"

    def listed(self) -> list[Document]:
        """Return all requests."""
        return list(self.ask("GET", self.requests).body["items"])

    def waiting(self) -> Document:
        """Return the only request, once it exists."""
        wait_until(lambda: len(self.listed()) == 1, SECONDS, self.listed)
        return self.listed()[0]

    def answer(self, request: Mapping[str, Any], *conditions: Mapping[str, str], **status: str) -> None:
        """Set the conditions and the status of a request, like a signer or an approver."""
        at = now().strftime("%Y-%m-%dT%H:%M:%SZ")
        response = [
            {"lastTransitionTime": at, "message": "by a test", **condition} for condition in conditions
        ]
        body = {"status": {"conditions": response, **status}}
        path = f"{self.requests}/{request['metadata']['name']}/status"
        answer = self.ask("PATCH", path, body, "application/merge-patch+json")
        assert answer.status == 200, answer


Opened = Callable[[CertManagerIssuer], CertManagerIssuer]
"""Takes note of an issuer that the test is to close, and returns it."""


def is_ready(result: Mapping[str, Any]) -> bool:
    """Return whether an object has the condition Ready."""
    conditions = result.get("status", {}).get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
