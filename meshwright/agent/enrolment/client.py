"""gRPC client for enrolment: join, renew, fetch roots, and report ejections.

Only short-lived programs import this module.
"""

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

os.environ.setdefault(
    "GRPC_VERBOSITY", "NONE"
)  # no raw log lines of gRPC; errors are reported in our own sentences

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from meshwright.agent.credentials import CredentialsError, tls_contents
from meshwright.agent.enrolment.settings import EnrolmentFailure, EnrolmentResult
from meshwright.mesh.host_port import HostPort
from meshwright.tls.contents import TlsContents, UnusableTlsError
from meshwright.tls.grpc_channel import channel_credentials
from protos.meshwright.enrolment.v1 import enrolment_pb2 as wire

JOIN: Final = "/meshwright.enrolment.v1.Enrolment/Join"
RENEW: Final = "/meshwright.enrolment.v1.Renewal/Renew"
TRUST: Final = "/meshwright.enrolment.v1.Renewal/Trust"
EJECT: Final = "/meshwright.enrolment.v1.Renewal/Eject"
SECONDS: Final = 30.0
_REASON: Final = "meshwright-reason"

Request = wire.JoinRequest | wire.RenewRequest | wire.TrustRequest | wire.EjectRequest
Response = TypeVar("Response", wire.Certificate, wire.TrustResponse, wire.EjectResponse)


class EnrolmentUnanswered(Exception):
    """A request to the control plane's enrolment service failed; `failed` has the reason."""

    def __init__(self, failed: EnrolmentFailure) -> None:
        super().__init__(failed.why)
        self.failed = failed


def join(at: HostPort, name: str, roots: bytes, csr_der: bytes, kind: str, proof: bytes) -> EnrolmentResult:
    """Send a proof and a certificate request to a server, verified as `name` by these roots.

    Raise EnrolmentUnanswered, and CredentialsError for unusable roots.
    """
    request = wire.JoinRequest(csr_der=csr_der, proof=wire.Proof(kind=kind, data=proof))
    try:
        tls = channel_credentials(TlsContents(roots))
    except UnusableTlsError as error:
        raise CredentialsError(str(error)) from None
    return _certified(_call(at, name, tls, JOIN, request, wire.Certificate))


def renew(at: HostPort, name: str, roots: bytes, csr_der: bytes, directory: Path) -> EnrolmentResult:
    """Send a certificate request, authenticated by the present certificate.

    Raise EnrolmentUnanswered, and CredentialsError for unusable files.
    """
    request = wire.RenewRequest(csr_der=csr_der)
    return _certified(_call(at, name, _own(roots, directory), RENEW, request, wire.Certificate))


def trust(at: HostPort, name: str, roots: bytes, digest: str, directory: Path) -> EnrolmentResult:
    """Send the digest of the trusted roots, and return the roots to trust; raise as `renew`."""
    request = wire.TrustRequest(bundle_digest=digest)
    trust_response = _call(at, name, _own(roots, directory), TRUST, request, wire.TrustResponse)
    due, clock = _moment(trust_response.renew_after), _moment(trust_response.now)
    return EnrolmentResult(b"", trust_response.trust_bundle_pem, due, clock, trust_response.ask_again_seconds)


def eject(at: HostPort, name: str, roots: bytes, directory: Path, ejected: Iterable[HostPort]) -> int:
    """Report the endpoints ejected by this machine's proxy.

    Return for how many seconds the report holds. Raise as `renew`.
    """
    endpoints = [wire.Endpoint(address=host_port.host, port=host_port.port) for host_port in ejected]
    eject_response = _call(
        at, name, _own(roots, directory), EJECT, wire.EjectRequest(ejected=endpoints), wire.EjectResponse
    )
    return eject_response.holds_seconds


def _own(roots: bytes, directory: Path) -> grpc.ChannelCredentials:
    return channel_credentials(tls_contents(directory, roots))


def _call(
    at: HostPort,
    name: str,
    tls: grpc.ChannelCredentials,
    method: str,
    request: Request,
    response: type[Response],
) -> Response:
    options = [("grpc.ssl_target_name_override", name), ("grpc.enable_http_proxy", 0)]
    with grpc.secure_channel(str(at), tls, options=options) as channel:
        call = channel.unary_unary(method, lambda asked: asked.SerializeToString(), response.FromString)
        try:
            answer: Response = call(request, timeout=SECONDS)
        except grpc.RpcError as error:
            raise EnrolmentUnanswered(
                _failed(at, error)
            ) from None  # the error holds the request, which has the proof
        return answer


def _failed(at: HostPort, error: grpc.RpcError) -> EnrolmentFailure:
    code, words = error.code(), " ".join((error.details() or "").split())[:300]
    trailers = {name: value for name, value in error.trailing_metadata() or () if isinstance(value, str)}
    match code:
        case grpc.StatusCode.PERMISSION_DENIED:
            text = trailers.get(_REASON, "")
            why = f": {text}" if text else "; see the log of the server for the reason"
            return EnrolmentFailure(f"{at} has refused the request{why}", refused=True)
        case grpc.StatusCode.INVALID_ARGUMENT:
            return EnrolmentFailure(f"{at} does not accept the request: {words}", refused=True)
        case grpc.StatusCode.UNIMPLEMENTED:
            return EnrolmentFailure(f"{at} is not the right port for this request: {words}", refused=True)
        case _:
            return EnrolmentFailure(f"unexpected answer of {at} ({code.name.lower()}): {words}")


def _certified(answer: wire.Certificate) -> EnrolmentResult:
    due, clock = _moment(answer.renew_after), _moment(answer.now)
    return EnrolmentResult(answer.chain_pem, answer.trust_bundle_pem, due, clock)


def _moment(stamp: Timestamp) -> datetime:
    return stamp.ToDatetime(UTC)
