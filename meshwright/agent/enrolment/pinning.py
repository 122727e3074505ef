"""Verification of the server while joining: roots by their pins, and the server by the roots.

For short-lived programs.
"""

import socket
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from certs.errors import PeerRefused
from certs.keys.bundle import pinned
from certs.peer import read_peer
from meshwright.agent.credentials import show_own
from meshwright.agent.enrolment.settings import EnrolmentFailure
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import TrustDomain
from meshwright.sidecars.envoy.bootstrap.bootstrap import server_name

SECONDS: Final = 10.0
_NOT_YET_VALID, _EXPIRED = 9, 10
"""OpenSSL's X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED."""


class ServerDistrusted(Exception):
    """The control plane's server cannot be verified or reached; `failed` has the reason."""

    def __init__(self, why: str, *, refused: bool = False) -> None:
        super().__init__(why)
        self.failed = EnrolmentFailure(why, refused)


def roots_by(at: HostPort, pins: tuple[str, ...]) -> bytes:
    """Return the roots (PEM) that a server presents and that match the pins.

    Only a TLS handshake is sent to the server. Raises ServerDistrusted without a matching root: then the
    server belongs to another mesh, or to an attacker.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Nothing can be verified yet: the pins select the roots, and `require_believed` then verifies the server.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with _shaken(at, context, None) as connection:
        result = pinned(_shown(connection), pins)
    if not result:
        raise ServerDistrusted(
            f"{at} presents roots that do not match the pin in the join token: the token belongs "
            "to another mesh, or the server is not the control plane. The token was not sent",
            refused=True,
        )
    return result


def require_believed(at: HostPort, roots: bytes, domain: TrustDomain, own: Path | None = None) -> str:
    """Verify that the control plane of a trust domain answers, and return its DNS name.

    Raises ServerDistrusted if the roots do not verify the server. If the server requires a client
    certificate, the one in the directory `own` is used.
    """
    name = server_name(domain)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # "ignore", because comments in PEM may have other characters.
    context.load_verify_locations(cadata=roots.decode("ascii", "ignore"))
    # gRPC needs HTTP/2, which TLS clients select by ALPN (RFC 9113, section 3.2).
    context.set_alpn_protocols(["h2"])
    if own is not None:
        show_own(context, own)
    _shaken(at, context, name).close()
    return name


def _shaken(at: HostPort, context: ssl.SSLContext, name: str | None) -> ssl.SSLSocket:
    try:
        connection = socket.create_connection((at.host, at.port), timeout=SECONDS)
    except OSError as error:
        raise ServerDistrusted(f"{at} cannot be reached: {error.strerror or error}") from error
    try:
        return context.wrap_socket(connection, server_hostname=name)
    except ssl.SSLCertVerificationError as error:
        connection.close()
        raise ServerDistrusted(_why(at, error)) from error
    except OSError as error:
        connection.close()
        raise ServerDistrusted(f"the TLS handshake with {at} fails: {error.strerror or error}") from error


def _why(at: HostPort, error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code not in (_NOT_YET_VALID, _EXPIRED):
        return f"the certificate of {at} is not trusted: {error.verify_message}"
    now = datetime.now(UTC).isoformat(timespec="seconds")
    clock = f"the clock of this machine shows {now}; set the clock if it is wrong"
    return f"the certificate of {at} is not valid now: it is valid {_validity(at)}, and {clock}"


def _validity(at: HostPort) -> str:
    try:
        shown = read_peer(ssl.get_server_certificate((at.host, at.port), timeout=SECONDS).encode("ascii"))
    except (OSError, ValueError, PeerRefused):
        return "at another time"
    times = (moment.isoformat(timespec="seconds") for moment in (shown.not_before, shown.not_after))
    return "from {} to {}".format(*times)


def _shown(connection: ssl.SSLSocket) -> list[bytes]:
    """Return all certificates of the peer (DER); before Python 3.13 this was not a public method."""
    session: Any = connection
    if hasattr(session, "get_unverified_chain"):
        return list(session.get_unverified_chain())
    chain = session._sslobj.get_unverified_chain() or ()  # noqa: SLF001 - as above
    return [ssl.PEM_cert_to_DER_cert(item.public_bytes()) for item in chain]
