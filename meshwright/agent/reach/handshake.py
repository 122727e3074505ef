"""TLS handshake that reports an obstacle: the server's other protocol, or its wrong certificate."""

import asyncio
import ssl
from typing import Final

from certs.errors import PeerRefused
from certs.keys.material import PeerCertificate
from meshwright.agent.reach.observations import (
    ClosedAfterHandshake,
    MisnamedServer,
    OtherProtocol,
    PlaintextServer,
    PortClosed,
    ServerNotValid,
    UntrustedServer,
    Way,
)
from meshwright.mesh.host_port import HostPort

_NOT_YET_VALID, _EXPIRED, _OTHER_NAME = 9, 10, 62
"""OpenSSL's X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED, X509_V_ERR_HOSTNAME_MISMATCH."""
_MOST_BYTES: Final = 16 * 1024


async def greeted(at: HostPort, context: ssl.SSLContext, name: str, seconds: float) -> Way | None:
    """Make a handshake with a server that must be `name`, and wait for the first bytes; return the obstacle.

    None means that there is no obstacle. `seconds` limits each of the three steps.
    """
    try:
        async with asyncio.timeout(seconds):
            session = await _Session.begun(at, context, name)
    except (OSError, TimeoutError):  # the port was open a moment ago
        return PortClosed(str(at))
    try:
        return await _shaken(session, seconds) or await _first_words(session, seconds)
    except ssl.SSLCertVerificationError as error:
        return _not_believed(error, await _presented(at, seconds), name)
    finally:
        session.close()


class _Session:
    """A TLS client that keeps the first bytes received, before decryption."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        context: ssl.SSLContext,
        name: str | None,
    ) -> None:
        self._reader, self._writer = reader, writer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)
        self.received = b""

    @classmethod
    async def begun(cls, at: HostPort, context: ssl.SSLContext, name: str | None) -> "_Session":
        return cls(*await asyncio.open_connection(at.host, at.port), context, name)

    async def shake_hands(self) -> bool:
        """Finish the handshake; return False if the peer ended the connection."""
        while True:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                if not await self._more():
                    return False
            else:
                await self._send()
                return True

    async def read(self) -> bytes:
        """Return the next decrypted bytes from the server; empty at the end of the connection."""
        while True:
            try:
                return self.tls.read(_MOST_BYTES)
            except ssl.SSLWantReadError:
                if not await self._more():
                    return b""
            except ssl.SSLZeroReturnError:
                return b""

    def close(self) -> None:
        self._writer.close()

    async def _more(self) -> bool:
        await self._send()
        received = await self._reader.read(_MOST_BYTES)
        self.received = self.received or received
        self._incoming.write(received)
        return bool(received)

    async def _send(self) -> None:
        self._writer.write(self._outgoing.read())
        await self._writer.drain()


async def _shaken(session: _Session, seconds: float) -> Way | None:
    try:
        async with asyncio.timeout(seconds):
            ended = not await session.shake_hands()
    except TimeoutError:
        return PlaintextServer(_instead(session.received), closed=False)
    except ssl.SSLCertVerificationError:
        raise
    except ssl.SSLError as error:
        answer = _instead(session.received)
        return PlaintextServer(answer, closed=True) if answer else OtherProtocol(_reason(error))
    except OSError:
        ended = True
    return PlaintextServer(_instead(session.received), closed=True) if ended else None


async def _first_words(session: _Session, seconds: float) -> Way | None:
    """Wait for an HTTP/2 server's settings, sent unprompted.

    A server that refuses our certificate just closes the connection.
    """
    try:
        async with asyncio.timeout(seconds):
            words = await session.read()
    except TimeoutError:
        return OtherProtocol("it does not speak HTTP/2")
    except ssl.SSLError as error:
        return ClosedAfterHandshake(_reason(error))
    except OSError:
        words = b""
    if not words:
        return ClosedAfterHandshake()
    if session.tls.selected_alpn_protocol() != "h2":
        return OtherProtocol("it does not speak HTTP/2")
    return None


def _instead(received: bytes) -> bytes:
    """Return the received bytes if they are not a TLS record.

    A handshake (22) or an alert (21) of version 3.
    """
    return b"" if received[:2] in (b"", b"\x15", b"\x16", b"\x15\x03", b"\x16\x03") else received


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or str(error)).lower().replace("_", " ")


def _not_believed(error: ssl.SSLCertVerificationError, presented: PeerCertificate | None, name: str) -> Way:
    if presented is None:
        return UntrustedServer((), error.verify_message)
    match error.verify_code:
        case code if code in (_NOT_YET_VALID, _EXPIRED):
            return ServerNotValid(presented.not_before, presented.not_after)
        case code if code == _OTHER_NAME:
            return MisnamedServer(_names(presented), name)
        case _:
            return UntrustedServer(_names(presented), error.verify_message)


def _names(presented: PeerCertificate) -> tuple[str, ...]:
    return (presented.common_name,) if presented.common_name else presented.uri_sans


async def _presented(at: HostPort, seconds: float) -> PeerCertificate | None:
    """Return a server's certificate, without verification and without presenting ours."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # without CAs
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        async with asyncio.timeout(seconds):
            session = await _Session.begun(at, context, None)
            try:
                await session.shake_hands()
                shown = session.tls.getpeercert(binary_form=True)
            finally:
                session.close()
        from certs.peer import read_peer  # imported late, because it takes memory and is rarely needed

        return read_peer(ssl.DER_cert_to_PEM_cert(shown).encode()) if shown else None
    except (OSError, ValueError, TimeoutError, PeerRefused):
        return None
