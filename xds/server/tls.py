"""What a server shows and whom it trusts. Without gRPC, which takes its time to import."""

import enum
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TlsIdentity:
    """What the server shows and whom it trusts, as PEM; a client certificate is demanded.

    Unless `open_to_all`: then none is asked for, by who serves clients that have none yet.

    grpcio negotiates TLS 1.2 or 1.3; nothing below is offered (a test tries it).
    """

    chain: bytes = field(repr=False)
    key: bytes = field(repr=False)
    trust_bundle: bytes = field(repr=False)
    open_to_all: bool = field(default=False, kw_only=True)


class Plaintext(enum.Enum):
    """The name by which a server without TLS must be asked for; only loopback addresses will do."""

    ON_LOOPBACK = "on loopback"
