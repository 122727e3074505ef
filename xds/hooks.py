"""Hooks of the server's owner: an Authenticator identifies clients, an Observer is notified of events."""

import enum
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from xds.budget import Excess
from xds.cache import NodeKey
from xds.errors import XdsError
from xds.protocol.wire import Node, Rejection, Response
from xds.stream_status import Variant

LARGE: Final = 4 * 1024 * 1024
"""Default limit of a gRPC client for one received message, in bytes."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Peer:
    """The other end of a connection: the client certificate verified by TLS, as PEM, and the address."""

    certificate: bytes | None = field(repr=False)
    address: str = ""


class StreamRefused(XdsError):
    """A refusal to serve a client. `reason` is one word for the log, the metric and the client.

    The client may read the word, because the client has shown a certificate of the mesh. Everything else is
    for the log alone.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class AuthenticationUnavailable(XdsError):
    """An answer is not possible now, because a part of the server is away. The client must try again later.

    `reason` is one word for the log and the metric.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


Prepare = Callable[[Peer], Awaitable[None]]
"""Get the data that an Authenticator needs for a new client; raises AuthenticationUnavailable."""


class Authenticator(Protocol):
    """The decision which node a client is.

    `authenticate` is repeated while a stream lives (`recheck_seconds`).
    """

    def authenticate(self, peer: Peer) -> NodeKey:
        """Return the node of which the peer gets the configuration; raise StreamRefused if there is none."""

    def accept_node(self, node_key: NodeKey, node: Node) -> None:
        """Check the node in a client's first request; raise StreamRefused for a wrong one."""


class AnyNode:
    """An Authenticator that maps every client accepted by TLS to one node key."""

    def __init__(self, node_key: NodeKey) -> None:
        self._node_key = node_key

    def authenticate(self, peer: Peer) -> NodeKey:
        """Return the node key given to the constructor, whatever the certificate of the peer."""
        del peer
        return self._node_key

    def accept_node(self, node_key: NodeKey, node: Node) -> None:
        """Accept any node."""


class StreamEnd(enum.StrEnum):
    """The reasons for which a stream ends."""

    CLIENT = "client"
    REFUSED = "refused"
    INVALID = "invalid-request"
    SLOW = "slow-reader"
    NOT_SERVED = "nothing-to-serve"
    HELD = "held"
    TOO_MANY = "too-many-streams"
    TOO_LARGE = "too-large"
    NOT_FOUND = "not-found"
    UNAVAILABLE = "unavailable"
    AGED = "maximum-age"
    MOVED = "moved"
    SHUTDOWN = "shutdown"
    FAILED = "failed"


class Cause(enum.StrEnum):
    """The reasons why the server ends a connection, for example too many calls."""

    CALLS = "too-many-calls"
    BYTES = "too-many-bytes"
    IDLE = "idle-too-long"
    CROWD = "too-many-idle"


class Observer(Protocol):
    """Callbacks for events of the server, on the event loop. They must return at once and not raise."""

    def handshake(self) -> None:
        """A client began a TLS handshake."""

    def ended(self, peer: Peer, cause: Cause) -> None:
        """The server closed a connection because of its cost.

        The certificate is known if the connection carried a call.
        """

    def opened(self, node_key: NodeKey, peer: Peer, variant: Variant) -> None:
        """A stream was authenticated."""

    def refused(self, peer: Peer, reason: str) -> None:
        """A stream was refused."""

    def exceeded(self, node_key: NodeKey | None, peer: Peer, excess: Excess) -> None:
        """A call was ended or turned away because of a limit.

        `node_key` is None if the node was not yet known.
        """

    def sent(self, node_key: NodeKey, response: Response, size: int) -> None:
        """A response of `size` bytes was passed to the transport."""

    def large(self, node_key: NodeKey, node: Node | None, response: Response, size: int) -> None:
        """A response of `size` bytes, more than LARGE, is about to be passed to the transport."""

    def answered(
        self, node_key: NodeKey, response: Response, rejection: Rejection | None, stream: int = 0
    ) -> None:
        """A response was accepted or rejected (see `blame.blamed` for the resources of a rejection).

        `stream` is the number of the stream, or 0.

        A snapshot published by the observer for the node because of a rejection is taken before the stream
        continues. Otherwise the stream could remove a resource needed by the client in place of the rejected
        one.
        """

    def held(self, node_key: NodeKey, response: Response) -> None:
        """A reconnecting client listed the resources in `response`, which are therefore not sent.

        The client accepted them on an earlier stream, perhaps of another server.
        """

    def closed(self, node_key: NodeKey, peer: Peer, ending: StreamEnd, detail: str, stream: int = 0) -> None:
        """A stream ended, with the number `stream`, as for `answered`."""


class NoObserver:
    """An observer that ignores every event."""

    def handshake(self) -> None:
        """Ignore a TLS handshake."""

    def ended(self, peer: Peer, cause: Cause) -> None:
        """Ignore a connection that the server closed because of its cost."""

    def opened(self, node_key: NodeKey, peer: Peer, variant: Variant) -> None:
        """Ignore a new stream."""

    def refused(self, peer: Peer, reason: str) -> None:
        """Ignore a refused stream."""

    def exceeded(self, node_key: NodeKey | None, peer: Peer, excess: Excess) -> None:
        """Ignore a call ended because of a limit."""

    def sent(self, node_key: NodeKey, response: Response, size: int) -> None:
        """Ignore a sent response."""

    def large(self, node_key: NodeKey, node: Node | None, response: Response, size: int) -> None:
        """Ignore a large response."""

    def answered(
        self, node_key: NodeKey, response: Response, rejection: Rejection | None, stream: int = 0
    ) -> None:
        """Ignore an ACK or NACK."""

    def held(self, node_key: NodeKey, response: Response) -> None:
        """Ignore the resources of a reconnecting client."""

    def closed(self, node_key: NodeKey, peer: Peer, ending: StreamEnd, detail: str, stream: int = 0) -> None:
        """Ignore an ended stream."""
