"""Bounds on what clients may cost, and the decisions that follow from them."""

from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds in seconds, bytes and numbers; None is no bound.

    `streams_per_second` spreads new streams: one that would wait for more than `admission_seconds` is
    told to come back. `age_seconds` is a stream's longest life, made shorter or longer by up to a share
    of `age_jitter`, so that streams opened together do not end together.

    `connections` is never more than the process has descriptors for. A connection that carries no call is
    idle: the oldest end beyond `idle_connections`, those in their handshake included, and beyond a fourth of
    that of those that never sent a byte. The calls of one certificate may come to `calls_at_once`, less what
    leaks away at `calls_per_second`; the bytes that a connection receives to eight `request_bytes`, less what
    leaks away at `received_bytes_per_second`, and to `idle_bytes` while it is idle.

    What is *per certificate* is one budget for all its calls, of every service. `bytes_per_certificate` is
    what the server keeps of what they sent, as `xds.budget` counts it. `loop_share` is the part of the
    event loop's time that they may take in the long run, `loop_burst_seconds` what may be taken at once.
    """

    request_bytes: int = 4 * 1024 * 1024
    node_bytes: int = 256 * 1024
    name_characters: int = 4096
    type_url_characters: int = 512
    client_status_bytes: int = 4 * 1024 * 1024
    streams: int | None = 20_000
    streams_per_certificate: int | None = 8
    types_per_certificate: int | None = 64
    names_per_certificate: int | None = 100_000
    bytes_per_certificate: int | None = 20 * 1024 * 1024
    loop_share: float | None = 0.2
    loop_burst_seconds: float = 0.05
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

    def without_budgets(self) -> Self:
        """Return the same for clients that share one certificate: what is per certificate has no bound."""
        return replace(
            self,
            streams_per_certificate=None,
            calls_per_second=None,
            types_per_certificate=None,
            names_per_certificate=None,
            bytes_per_certificate=None,
            loop_share=None,
        )

    def age(self, chance: float) -> float:
        """Return how many seconds a stream may live, for a `chance` from 0 to 1."""
        return self.age_seconds * (1 + self.age_jitter * (2 * chance - 1))


class StreamQuota:
    """How long a new stream has to wait for its turn; `now` is any clock that only goes forward."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._next = 0.0

    def wait(self, now: float, streams: int) -> float | None:
        """Return the seconds until the stream may begin, or None if it must be turned away.

        `streams` are those open in all. Who is turned away takes nobody's turn.
        """
        limits = self._limits
        if limits.streams is not None and streams >= limits.streams:
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
