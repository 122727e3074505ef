"""A machine that joins by plain gRPC and bytes, without any code of the agent."""

from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from certs.keys.material import PrivateKey
from certs.keys.pair import Pair, matched_pair
from protos.meshwright.enrolment.v1 import enrolment_pb2 as wire

JOIN = "/meshwright.enrolment.v1.Enrolment/Join"
RENEW = "/meshwright.enrolment.v1.Renewal/Renew"
TRUST = "/meshwright.enrolment.v1.Renewal/Trust"
EJECT = "/meshwright.enrolment.v1.Renewal/Eject"
REPORT = "/meshwright.enrolment.v1.Renewal/Report"
TOKEN = {"service": "store", "namespace": "shop"}


@dataclass
class Machine:
    """A machine's key and requests. `names` is the common name in its signing requests."""

    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    names: str = "admin.everything.kube-system"

    @property
    def csr(self) -> bytes:
        """Return a PKCS#10 request in DER."""
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.names)])
        sans = x509.SubjectAlternativeName(
            [x509.UniformResourceIdentifier("spiffe://cluster.local/ns/a/sa/b")]
        )
        builder = (
            x509.CertificateSigningRequestBuilder().subject_name(name).add_extension(sans, critical=True)
        )
        return builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)

    @property
    def pem(self) -> bytes:
        """Return the private key."""
        form, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        return self.key.private_bytes(serialization.Encoding.PEM, form, none)

    def pair(self, certificate: wire.Certificate) -> Pair:
        """Return an answered certificate with the key."""
        return matched_pair(certificate.chain_pem, PrivateKey(self.pem))

    def joining(self, token: str, kind: str = "join-token") -> bytes:
        """Return the join request."""
        proof = wire.Proof(kind=kind, data=token.encode())
        return wire.JoinRequest(csr_der=self.csr, proof=proof).SerializeToString()


@dataclass
class Answered:
    """Result of a call: status, message, trailer names, reason of a refusal, and response."""

    code: grpc.StatusCode
    words: str = ""
    trailers: tuple[str, ...] = ()
    reason: str = ""
    message: bytes = b""

    @property
    def certificate(self) -> wire.Certificate:
        """Return the certificate in the response."""
        assert self.code is grpc.StatusCode.OK, (self.code, self.words)
        return wire.Certificate.FromString(self.message)


def channel(server: Any, port: str, pair: Pair | None = None) -> grpc.aio.Channel:
    """Return a separate channel to a port, with or without a certificate."""
    shown = (None, None) if pair is None else (pair.key.reveal(), pair.chain_pem)
    tls = grpc.ssl_channel_credentials(server.authority.trust_bundle(), *shown)
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
    return grpc.aio.secure_channel(str(server.bound.enrolment[port]), tls, options)


async def call(opened: grpc.aio.Channel, method: str, request: bytes) -> Answered:
    """Make one call with these bytes."""
    made = opened.unary_unary(method)(request, timeout=60)
    try:
        message = await made
    except grpc.aio.AioRpcError as error:
        trailers = dict(error.trailing_metadata() or ())
        return Answered(
            error.code(),
            error.details() or "",
            tuple(sorted(trailers)),
            str(trailers.get("meshwright-reason", "")),
        )
    return Answered(grpc.StatusCode.OK, message=message)


async def join(server: Any, machine: Machine, token: str, kind: str = "join-token") -> Answered:
    """Join over a separate connection."""
    async with channel(server, "enrolment") as opened:
        return await call(opened, JOIN, machine.joining(token, kind))


async def renew(server: Any, holder: Pair, machine: Machine) -> Answered:
    """Renew over a separate connection."""
    async with channel(server, "renewal", holder) as opened:
        return await call(opened, RENEW, wire.RenewRequest(csr_der=machine.csr).SerializeToString())
