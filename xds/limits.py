"""Bounds on what clients may cost, and the decisions that follow from them."""

from dataclasses import dataclass

from xds.channel import Channel
from xds.wire import Node, WireError


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds in seconds, bytes and numbers; None is no bound.

    `streams_per_second` spreads new streams: one that would wait for more than `admission_seconds` is
    told to come back. `age_seconds` is a stream's longest life, made shorter or longer by up to a share
    of `age_jitter`, so that streams opened together do not end together.

    `connections` is never more than the process has descriptors for. A connection that carries no call is
    idle: the oldest end beyond `idle_connections`, those in their handshake included, and beyond a fourth of
    that of those that never sent a byte. The calls of one certificate may come to `calls_at_once`, less what
    leaks away at `calls_per_second`; the bytes that a connection receives to twice `request_bytes`, less what
    leaks away at `received_bytes_per_second`, and to `idle_bytes` while it is idle.
    """

    request_bytes: int = 16 * 1024 * 1024
    node_bytes: int = 256 * 1024
    name_characters: int = 4096
    names_per_type: int = 100_000
    types: int = 64
    streams: int | None = 20_000
    streams_per_certificate: int | None = 8
    streams_per_second: float | None = 1000.0
    admission_seconds: float = 10.0
    unsent_responses: int = 8
    write_seconds: float = 20.0
    warming_seconds: float = 16.0
    unserved_seconds: float = 300.0
    recheck_seconds: float = 30.0
    age_seconds: float = 1800.0
    age_jitter: float = 0.1
    connections: int | None = None
    idle_connections: int = 4000
    idle_seconds: float = 60.0
    idle_bytes: int = 256 * 1024
    handshake_seconds: float = 5.0
    calls_at_once: int = 100
    calls_per_second: float | None = 10.0
    received_bytes_per_second: float = 1024 * 1024

    def age(self, chance: float) -> float:
        """Return how many seconds a stream may live, for a `chance` from 0 to 1."""
        return self.age_seconds * (1 + self.age_jitter * (2 * chance - 1))


class Excess(WireError):
    """A client asks for more than is good."""


class Admission:
    """How long a new stream has to wait for its turn; `now` is any clock that only goes forward."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._next = 0.0

    def wait(self, now: float, streams: int, streams_of_certificate: int) -> float | None:
        """Return the seconds until the stream may begin, or None if it must be turned away.

        `streams` are those open in all, `streams_of_certificate` those with the same certificate. Who is
        turned away takes nobody's turn.
        """
        limits = self._limits
        if limits.streams is not None and streams >= limits.streams:
            return None
        if (
            limits.streams_per_certificate is not None
            and streams_of_certificate >= limits.streams_per_certificate
        ):
            return None
        if limits.streams_per_second is None:
            return 0.0
        # A tenth of a second's streams may come at once: a clock that is asked rarely must not slow them.
        turn = max(self._next, now - 0.1)
        wait = max(0.0, turn - now)
        if wait > limits.admission_seconds:
            return None
        self._next = turn + 1 / limits.streams_per_second
        return wait


def check_node(node: Node, limits: Limits) -> None:
    """Raise Excess for a node that is too large."""
    if node.size > limits.node_bytes:
        raise Excess(f"the node has {node.size} bytes; {limits.node_bytes} are allowed")


def check_names(names: tuple[str, ...], limits: Limits) -> None:
    """Raise Excess for too many names in one request, or too long a name."""
    if len(names) > limits.names_per_type:
        raise Excess(f"{len(names)} resource names; {limits.names_per_type} are allowed")
    longest = max(map(len, names), default=0)
    if longest > limits.name_characters:
        raise Excess(f"a resource name of {longest} characters; {limits.name_characters} are allowed")


def check_channel(types: int, channel: Channel, limits: Limits) -> None:
    """Raise Excess for too many types on a stream, or too many names of the type just asked for."""
    if types > limits.types:
        raise Excess(f"{types} types on one stream; {limits.types} are allowed")
    if len(channel.subscription.names) > limits.names_per_type:
        raise Excess(f"more than {limits.names_per_type} names of {channel.type_url}")
