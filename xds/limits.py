"""Limits on the cost of clients, and the decisions based on them."""

from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits in seconds, bytes and numbers; None turns a limit off.

    `streams_per_second` spreads new streams; a stream with a wait longer than `admission_seconds` is turned
    away and must retry. `age_seconds` is the longest life of a stream, varied by up to the fraction
    `age_jitter` in both directions, so streams begun together do not end together.

    `connections` is capped by the descriptors of the process. A connection without a call is idle. Idle
    connections beyond `idle_connections` are ended, oldest first; handshakes count as idle. A quarter of this
    number is the limit for connections without any received byte. `calls_at_once` is the burst of new calls
    of one certificate, refilled at `calls_per_second`. The burst of received bytes per connection is eight
    `request_bytes`, refilled at `received_bytes_per_second`; while idle a connection may receive
    `idle_bytes`.

    The limits with `per_certificate` are one budget for all calls of a certificate, whatever the service.
    `bytes_per_certificate` limits the memory kept for these calls, as counted by `xds.budget`. `loop_share`
    is their long-term fraction of the event loop's time, for example 0.2 for 20 %, and `loop_burst_seconds`
    the burst.
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
        """Return these limits without the ones per certificate, for clients with a common certificate."""
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
        """Return the longest life of a stream in seconds; `chance` is a random number from 0 to 1."""
        return self.age_seconds * (1 + self.age_jitter * (2 * chance - 1))


class StreamQuota:
    """The delay of new streams. `now` is any monotonic clock in seconds."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._next = 0.0

    def wait(self, now: float, streams: int) -> float | None:
        """Return the seconds until a new stream may begin, or None to turn the stream away.

        `streams` is the number of open streams. A stream turned away does not delay others. For example, at
        100 streams per second, ten simultaneous streams begin at once, and a twentieth would wait 0.09 s.
        """
        limits = self._limits
        if limits.streams is not None and streams >= limits.streams:
            return None
        if limits.streams_per_second is None:
            return 0.0
        # Allow a burst of 0.1 s worth of streams, so that a clock that is read rarely does not slow them.
        turn = max(self._next, now - 0.1)
        wait = max(0.0, turn - now)
        if wait > limits.admission_seconds:
            return None
        self._next = turn + 1 / limits.streams_per_second
        return wait
