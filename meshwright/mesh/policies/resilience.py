"""Resilience of calls against failing endpoints: retries, outlier detection, detection of lost peers."""

import enum
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Self


class RetryOn(enum.StrEnum):
    """Failure of an attempt, to be retried.

    - CONNECT_FAILURE: the connection failed.
    - REFUSED_STREAM: HTTP/2 error for an unprocessed request (RFC 9113, section 8.7).
    - RESET_BEFORE_REQUEST: the connection ended before the first byte of the request.
    - UNDELIVERED: the callee's proxy could not connect to the application.
    An application never sees the request in these cases.
    """

    CONNECT_FAILURE = "connect-failure"
    REFUSED_STREAM = "refused-stream"
    RESET_BEFORE_REQUEST = "reset-before-request"
    UNDELIVERED = "undelivered"


UNSEEN: Final = tuple(RetryOn)
"""Failures before an application has seen the request, so any request may be retried."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Retries, at most `retries`, of a request after a failure in `on`, on another endpoint if possible.

    For a TCP service the connection is retried.
    """

    on: tuple[RetryOn, ...] = UNSEEN
    retries: int = 2


@dataclass(frozen=True, slots=True)
class OutlierDetection:
    """Ejection of an endpoint after consecutive failures, as seen by each caller.

    - `failures`: number of failed connections, or of answers 502, 503 and 504; each kind is counted
      separately.
    - `server_errors`: number of answers with status 500 or higher; None if errors of the application do not
      count.
    - `ejected_for`: time of the first ejection; each further ejection is longer by this time, for example 30
      s, 60 s, 90 s.
    - `most_percent`: limit of a service's endpoints ejected at once; a single endpoint is never ejected.
    """

    failures: int = 5
    server_errors: int | None = None
    ejected_for: timedelta = timedelta(seconds=10)
    most_percent: int = 50


LEAST_SILENCE: Final = 4
"""Shortest `silence` in seconds: two probes must fit in, and Linux counts whole seconds."""


@dataclass(frozen=True, slots=True)
class Keepalive:
    """Limit of the time without an acknowledgement of data or probes by a peer's machine.

    `silence` is in whole seconds, at least LEAST_SILENCE. Peers with HTTP/2 are probed in HTTP/2 too.
    """

    silence: timedelta = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Resilience:
    """Settings for all calls in the mesh; None turns a feature off.

    `connect_timeout` limits the connection to a peer, including the TLS handshake. `reuse` is the time for
    which an idle connection to an application, or to a host outside the mesh, is kept for another HTTP
    request.
    """

    connect_timeout: timedelta = timedelta(seconds=2)
    retry: RetryPolicy | None = field(default_factory=RetryPolicy)
    outliers: OutlierDetection | None = field(default_factory=OutlierDetection)
    keepalive: Keepalive | None = field(default_factory=Keepalive)
    reuse: timedelta | None = timedelta(seconds=1)

    @classmethod
    def from_settings(
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
        """Build the value from settings; 0 retries, failures or seconds turn a feature off.

        Server errors are counted only if failures are.
        """
        # In the settings 0 turns a feature off; the values have None instead.
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
