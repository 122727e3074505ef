"""gRPC methods of the two enrolment ports: decode the request, call the service, encode the response."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from ipaddress import ip_address
from typing import Final, TypeVar

from google.protobuf.message import DecodeError
from google.protobuf.timestamp_pb2 import Timestamp

from meshwright.enrolment.limits import EnrolmentLimits
from meshwright.enrolment.reports import report
from meshwright.enrolment.server import EnrolmentPort, UnreadableRequest
from meshwright.enrolment.service import Enrolment, EnrolmentGrant
from meshwright.mesh.host_port import HostPort
from protos.meshwright.enrolment.v1 import enrolment_pb2 as wire
from xds.connections.sockets import address
from xds.hooks import Peer
from xds.server.tls import TlsIdentity

JOINING: Final = "meshwright.enrolment.v1.Enrolment"


RENEWAL: Final = "meshwright.enrolment.v1.Renewal"


Message = TypeVar(
    "Message", wire.JoinRequest, wire.RenewRequest, wire.TrustRequest, wire.EjectRequest, wire.ReportRequest
)


def joining(
    enrolment: Enrolment,
    tls: Callable[[], TlsIdentity],
    limits: EnrolmentLimits,
    counted: Callable[[str, str], None],
) -> EnrolmentPort:
    """Return the joining port, for clients without a certificate.

    The port shows its CA certificates in the TLS handshake, so the client can verify the pin of a token.
    """

    async def join(request: bytes, peer: Peer) -> bytes:
        asked = _read(wire.JoinRequest, request)
        where = address(peer.address)[0]
        return _granted(await enrolment.join(asked.csr_der, asked.proof.kind, asked.proof.data, where))

    def shown() -> TlsIdentity:
        identity = tls()
        return replace(identity, chain=identity.chain + identity.trust_bundle, open_to_all=True)

    return EnrolmentPort(JOINING, {"Join": join}, shown, limits, counted)


def renewing(
    enrolment: Enrolment,
    tls: Callable[[], TlsIdentity],
    limits: EnrolmentLimits,
    counted: Callable[[str, str], None],
) -> EnrolmentPort:
    """Return the gRPC server of the renewal port, for clients with a proxy certificate."""

    async def renew(request: bytes, peer: Peer) -> bytes:
        asked = _read(wire.RenewRequest, request)
        where = address(peer.address)[0]
        return _granted(await enrolment.renew(asked.csr_der, peer.certificate, where))

    async def trust(request: bytes, peer: Peer) -> bytes:
        asked = _read(wire.TrustRequest, request)
        where = address(peer.address)[0]
        reply = await enrolment.trust(asked.bundle_digest[:64], peer.certificate, where)
        return wire.TrustResponse(
            trust_bundle_pem=b"" if reply.bundle is None else reply.bundle.pem,
            renew_after=_timestamp(reply.renew_after),
            ask_again_seconds=reply.ask_again_seconds,
            now=_timestamp(reply.now),
        ).SerializeToString()

    async def eject(request: bytes, peer: Peer) -> bytes:
        asked = _read(wire.EjectRequest, request)
        where = address(peer.address)[0]
        endpoints = [_endpoint(endpoint) for endpoint in asked.ejected]
        holds = await enrolment.eject(endpoints, peer.certificate, where)
        return wire.EjectResponse(holds_seconds=int(holds.total_seconds())).SerializeToString()

    async def reported(request: bytes, peer: Peer) -> bytes:
        answer = report(_read(wire.ReportRequest, request))
        where = address(peer.address)[0]
        again = await enrolment.report(answer, peer.certificate, where)
        return wire.ReportResponse(next_after_seconds=again).SerializeToString()

    methods = {"Renew": renew, "Trust": trust, "Eject": eject, "Report": reported}
    return EnrolmentPort(RENEWAL, methods, tls, limits, counted)


def _read(kind: type[Message], request: bytes) -> Message:
    try:
        return kind.FromString(request)
    except DecodeError as error:
        raise UnreadableRequest(f"the request is not a {kind.DESCRIPTOR.name}") from error


def _endpoint(endpoint: wire.Endpoint) -> HostPort:
    """Return a reported endpoint in canonical form, for example `[fd00::1]:8080`; raise UnreadableRequest."""
    try:
        host = str(ip_address(endpoint.address))
    except ValueError as error:
        raise UnreadableRequest("the address of an endpoint must be an IP address") from error
    if not 0 < endpoint.port < 65536:
        raise UnreadableRequest("the port of an endpoint must be from 1 to 65535")
    return HostPort(host, endpoint.port)


def _granted(granted: EnrolmentGrant) -> bytes:
    return wire.Certificate(
        chain_pem=granted.signed.chain_pem,
        trust_bundle_pem=granted.bundle.pem,
        not_after=_timestamp(granted.signed.not_after),
        renew_after=_timestamp(granted.renew_after),
        now=_timestamp(granted.now),
    ).SerializeToString()


def _timestamp(moment: datetime) -> Timestamp:
    return Timestamp(seconds=int(moment.timestamp()))
