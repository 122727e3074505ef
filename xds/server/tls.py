"""TLS identity of a server. This module does not import gRPC, because that import is slow."""

import enum
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TlsIdentity:
    """Certificate chain, key and trust bundle of a server, as PEM. Clients must present a certificate.

    With `open_to_all` the server requests none; that is for servers whose clients have no certificate yet.
    grpcio negotiates TLS 1.2 or 1.3 and offers nothing older (a test verifies this).
    """

    chain: bytes = field(repr=False)
    key: bytes = field(repr=False)
    trust_bundle: bytes = field(repr=False)
    open_to_all: bool = field(default=False, kw_only=True)


class Plaintext(enum.Enum):
    """The marker for a server without TLS, which is allowed on loopback addresses only."""

    ON_LOOPBACK = "on loopback"
