"""TLS of the document server: 1.2 or newer, client certificates required, renewed without a restart."""

import os
import ssl
from collections.abc import Callable

from xds.server.tls import TlsIdentity


def server_context(identity: Callable[[], TlsIdentity]) -> ssl.SSLContext:
    """Return a context that uses the value of `identity` at each handshake."""
    shown = identity()
    current = _context(shown)

    def renewed(connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        nonlocal shown, current
        del name, context
        if (newest := identity()) != shown:
            shown, current = newest, _context(newest)
        connection.context = current

    listening = _context(shown)
    listening.sni_callback = renewed  # called for every handshake, with or without a server name
    return listening


def _context(identity: TlsIdentity) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=identity.trust_bundle.decode("ascii"))
    # The ssl module reads only files. This one is in memory, without a name that others could open.
    descriptor = os.memfd_create("tls")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(identity.key + identity.chain)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
    return context
