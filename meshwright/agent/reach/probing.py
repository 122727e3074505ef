"""Diagnosis of the connection to the control plane, with the proxy's own credentials, step by step."""

import asyncio
import errno
import os
import socket
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from certs.keys.material import PeerCertificate
from meshwright.agent.credentials import CredentialsError, show_own
from meshwright.agent.reach.handshake import greeted
from meshwright.agent.reach.observations import (
    NoAnswer,
    NoRoute,
    PortClosed,
    PresentedCertificate,
    ReachObservation,
    UnresolvedName,
    Way,
)
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import TrustDomain
from meshwright.sidecars.envoy.bootstrap.bootstrap import server_name
from meshwright.sidecars.layout import AUTHORITY_FILE

PATIENCE_SECONDS: Final = 5.0
"""Seconds for each step; the same as Envoy's timeout for connecting."""


@dataclass(frozen=True, slots=True)
class ReachTarget:
    """The control plane's address, the directory of credential files, and the certificate's content."""

    control_plane: HostPort
    credentials: Path
    shown: PeerCertificate
    trust_domain: TrustDomain
    seconds: float = PATIENCE_SECONDS


async def observe(dialling: ReachTarget) -> ReachObservation:
    """Connect step by step until an obstacle; raise CredentialsError if the credentials cannot be used."""
    shown = dialling.shown
    try:
        way = await _led(dialling, server_name(dialling.trust_domain))
    except ssl.SSLError as error:  # from `_context`, which reads our own files
        raise CredentialsError(f"the files in {dialling.credentials} cannot be used: {error}") from error
    own = PresentedCertificate(shown.common_name, shown.serial, shown.not_before, shown.not_after)
    return ReachObservation(dialling.control_plane, own, datetime.now(UTC), way)


async def _led(dialling: ReachTarget, name: str) -> Way:
    way = await listener(dialling.control_plane, dialling.seconds)
    if not isinstance(way, HostPort):
        return way
    stands = await greeted(way, _context(dialling.credentials), name, dialling.seconds)
    if stands is not None:
        return stands
    from meshwright.agent.reach.client import ask  # imported late, because gRPC takes time and memory

    return await ask(way, dialling.credentials, name, dialling.seconds)


async def listener(at: HostPort, seconds: float = PATIENCE_SECONDS) -> Way | HostPort:
    """Resolve a name, and return its first address on which a server listens, or the obstacle."""
    result = await _resolved(at)
    if isinstance(result, UnresolvedName):
        return result
    way: Way | HostPort = UnresolvedName("no address")
    for address in result:
        way = await _connected(address, seconds)
        if isinstance(way, HostPort):
            break
    return way


async def _resolved(at: HostPort) -> tuple[HostPort, ...] | UnresolvedName:
    try:
        loop = asyncio.get_running_loop()
        result = await loop.getaddrinfo(at.host, at.port, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # not a valid host name
        return UnresolvedName(str(error))
    except OSError as error:
        return UnresolvedName(error.strerror or str(error))
    return tuple(dict.fromkeys(HostPort(str(address[0]), at.port) for *_, address in result))


async def _connected(at: HostPort, seconds: float) -> Way | HostPort:
    """Return the address if a server listens there, or the obstacle."""
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(at.host, at.port)
    except ConnectionRefusedError:
        return PortClosed(str(at))
    except TimeoutError:
        return NoAnswer(str(at), seconds)
    except OSError as error:
        if error.errno == errno.ETIMEDOUT:
            return NoAnswer(str(at), seconds)
        return NoRoute(str(at), os.strerror(error.errno) if error.errno else str(error))
    writer.close()
    return at


def _context(credentials: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(credentials / AUTHORITY_FILE))
    context.minimum_version = ssl.TLSVersion.TLSv1_3  # as Envoy's
    context.set_alpn_protocols(["h2"])
    show_own(context, credentials)
    return context
