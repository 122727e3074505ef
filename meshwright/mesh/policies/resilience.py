"""What survives a dead endpoint: what is tried again, who is left alone for a while, when a peer is lost."""

import enum
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Self


class RetryOn(enum.StrEnum):
    """What became of a try that is followed by another.

    CONNECT_FAILURE: no connection was made. REFUSED_STREAM: HTTP/2's word for a request that nobody has
    begun with (RFC 9113, section 8.7). RESET_BEFORE_REQUEST: the connection ended before any of the request
    was sent. UNDELIVERED: the callee's proxy could not connect to its application. None of them has reached
    anybody.
    """

    CONNECT_FAILURE = "connect-failure"
    REFUSED_STREAM = "refused-stream"
    RESET_BEFORE_REQUEST = "reset-before-request"
    UNDELIVERED = "undelivered"


UNSEEN: Final = tuple(RetryOn)
"""All that can have come to no application: what may be tried again whatever the request does."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """A request that came to one of `on` is tried again, at most `retries` times, elsewhere if there is one.

    Of a TCP service it is the connection that is tried again.
    """

    on: tuple[RetryOn, ...] = UNSEEN
    retries: int = 2


@dataclass(frozen=True, slots=True)
class OutlierDetection:
    """An endpoint is left alone for a while after so many failures in a row, as one caller sees it.

    `failures` counts connections that fail by themselves, and answers 502, 503 and 504 by themselves.
    `server_errors` counts all answers of 500 and more; None: what an application says of itself is no
    failure. It is left alone for `ejected_for`, each time as much longer. Never more than `most_percent` of
    a service's endpoints are at once: of a single one, none.
    """

    failures: int = 5
    server_errors: int | None = None
    ejected_for: timedelta = timedelta(seconds=10)
    most_percent: int = 50


LEAST_SILENCE: Final = 4
"""Seconds: a peer is asked twice within them, and Linux counts in whole ones."""


@dataclass(frozen=True, slots=True)
class Keepalive:
    """A connection ends when its peer's machine has confirmed nothing for so long, asked or sent to.

    `silence` is in whole seconds, at least LEAST_SILENCE. Peers that speak HTTP/2 are asked as well.
    """

    silence: timedelta = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Resilience:
    """What holds for all calls in the mesh; None: nothing of that kind is done.

    `connect_timeout` is how long a connection to a peer may take, its TLS handshake included. `reuse` is how
    long a connection to an application, or to a host outside the mesh, waits for another HTTP request.
    """

    connect_timeout: timedelta = timedelta(seconds=2)
    retry: RetryPolicy | None = field(default_factory=RetryPolicy)
    outliers: OutlierDetection | None = field(default_factory=OutlierDetection)
    keepalive: Keepalive | None = field(default_factory=Keepalive)
    reuse: timedelta | None = timedelta(seconds=1)

    @classmethod
    def of(
        cls,
        *,
        connect_seconds: float,
        retries: int,
        failures: int,
        server_errors: int,
        ejected_seconds: float,
        ejected_percent: int,
        silence_seconds: int,
        reuse_seconds: int,
    ) -> Self:
        """Build the value from settings: 0 retries, failures or seconds are none of that kind.

        Server errors are counted where failures are.
        """
        outliers = OutlierDetection(
            failures, server_errors or None, timedelta(seconds=ejected_seconds), ejected_percent
        )
        return cls(
            timedelta(seconds=connect_seconds),
            RetryPolicy(retries=retries) if retries else None,
            outliers if failures else None,
            Keepalive(timedelta(seconds=silence_seconds)) if silence_seconds else None,
            timedelta(seconds=reuse_seconds) if reuse_seconds else None,
        )
