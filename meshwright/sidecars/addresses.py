"""Addresses of clients in the form that people write."""

from urllib.parse import unquote


def plain_address(peer: str) -> str:
    """Return a peer's address without gRPC's scheme and escapes, for example `127.0.0.1:5` or `[::1]:5`."""
    scheme, colon, rest = peer.partition(":")
    return unquote(rest) if colon and scheme in ("ipv4", "ipv6") else peer
