"""The hooks by which whoever serves says who a client is, and learns what happens."""

import enum
from dataclasses import dataclass, field
from typing import Final, Protocol

from xds.budget import Excess
from xds.cache import NodeKey
from xds.errors import XdsError
from xds.protocol.wire import Node, Rejection, Response
from xds.stream_status import Variant

LARGE: Final = 4 * 1024 * 1024
"""Bytes of a response that a gRPC client takes, unless it is told to take more."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Peer:
    """Who is at the other end: the client certificate that TLS verified, as PEM, and the address."""

    certificate: bytes | None = field(repr=False)
    address: str = ""


class StreamRefused(XdsError):
    """A client gets nothing. `reason`, one word, is for our log and metric, and the client is told it.

    It has shown a certificate of ours, so it is no stranger; what there is besides is for the log alone.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Authenticator(Protocol):
    """Decides who a client is. Both are asked on each stream, and `authenticate` again while it lives."""

    def authenticate(self, peer: Peer) -> NodeKey:
        """Return whose configuration the peer gets; raise StreamRefused."""

    def accept_node(self, node_key: NodeKey, node: Node) -> None:
        """Look at what the client says of itself in its first request.

        Raise StreamRefused if it contradicts.
        """


class AnyNode:
    """Takes a client at its word: everybody who passed TLS gets the configuration of one node key."""

    def __init__(self, node_key: NodeKey) -> None:
        self._node_key = node_key

    def authenticate(self, peer: Peer) -> NodeKey:
        """Return the one node key there is."""
        del peer
        return self._node_key

    def accept_node(self, node_key: NodeKey, node: Node) -> None:
        """Accept any node."""


class StreamEnd(enum.StrEnum):
    """Why a stream ended."""

    CLIENT = "client"
    REFUSED = "refused"
    INVALID = "invalid-request"
    SLOW = "slow-reader"
    NOT_SERVED = "nothing-to-serve"
    HELD = "held"
    TOO_MANY = "too-many-streams"
    TOO_LARGE = "too-large"
    NOT_FOUND = "not-found"
    AGED = "maximum-age"
    SHUTDOWN = "shutdown"
    FAILED = "failed"


class Cause(enum.StrEnum):
    """Why a connection was ended, by its client's doing."""

    CALLS = "too-many-calls"
    BYTES = "too-many-bytes"
    IDLE = "idle-too-long"
    CROWD = "too-many-idle"


class Observer(Protocol):
    """Is told what happens, on the event loop: must return at once and not raise."""

    def handshake(self) -> None:
        """A client has begun a TLS handshake."""

    def ended(self, peer: Peer, cause: Cause) -> None:
        """A connection was ended that cost too much; the certificate is known if it carried a call."""

    def opened(self, node_key: NodeKey, peer: Peer, variant: Variant) -> None:
        """A stream was authenticated."""

    def refused(self, peer: Peer, reason: str) -> None:
        """A stream was refused."""

    def exceeded(self, node_key: NodeKey | None, peer: Peer, excess: Excess) -> None:
        """A call was ended, or turned away, for what it took; who it was is not always known by then."""

    def sent(self, node_key: NodeKey, response: Response, size: int) -> None:
        """A response of `size` bytes was handed to the transport."""

    def large(self, node_key: NodeKey, node: Node | None, response: Response, size: int) -> None:
        """A response of `size` bytes, more than LARGE, is about to be handed to the transport."""

    def answered(
        self, node_key: NodeKey, response: Response, rejection: Rejection | None, stream: int = 0
    ) -> None:
        """A response was accepted, or rejected with these words (`blame.blamed`: what it is about).

        `stream` is the number of the stream, 0 where there is none.

        What is published for the node because of a rejection is taken before the stream goes on, so that
        nothing is removed that the client needs in the place of what it rejected.
        """

    def closed(self, node_key: NodeKey, peer: Peer, ending: StreamEnd, detail: str, stream: int = 0) -> None:
        """A stream ended; `stream` is its number, as for `answered`."""


class NoObserver:
    """An observer that looks away."""

    def handshake(self) -> None:
        """Do nothing."""

    def ended(self, peer: Peer, cause: Cause) -> None:
        """Do nothing."""

    def opened(self, node_key: NodeKey, peer: Peer, variant: Variant) -> None:
        """Do nothing."""

    def refused(self, peer: Peer, reason: str) -> None:
        """Do nothing."""

    def exceeded(self, node_key: NodeKey | None, peer: Peer, excess: Excess) -> None:
        """Do nothing."""

    def sent(self, node_key: NodeKey, response: Response, size: int) -> None:
        """Do nothing."""

    def large(self, node_key: NodeKey, node: Node | None, response: Response, size: int) -> None:
        """Do nothing."""

    def answered(
        self, node_key: NodeKey, response: Response, rejection: Rejection | None, stream: int = 0
    ) -> None:
        """Do nothing."""

    def closed(self, node_key: NodeKey, peer: Peer, ending: StreamEnd, detail: str, stream: int = 0) -> None:
        """Do nothing."""
