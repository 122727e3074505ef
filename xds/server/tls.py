"""What a server shows and whom it trusts. Without gRPC, which takes its time to import."""

import enum
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TlsIdentity:
    """What the server shows and whom it trusts, as PEM; a client certificate is always demanded.

    grpcio negotiates TLS 1.2 or 1.3; nothing below is offered (a test tries it).
    """

    chain: bytes = field(repr=False)
    key: bytes = field(repr=False)
    trust_bundle: bytes = field(repr=False)


class Plaintext(enum.Enum):
    """The name by which a server without TLS must be asked for; only loopback addresses will do."""

    ON_LOOPBACK = "on loopback"
