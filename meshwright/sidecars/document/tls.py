"""TLS of the document server: 1.2 or newer, client certificates required, renewed without a restart."""

import ssl
from collections.abc import Callable

from meshwright.tls.key_pair import load_key_pair
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
    load_key_pair(context, identity.chain, identity.key)
    return context
