"""Limits of clients at a gateway's listeners, how their addresses are found, and their rates.

The defaults are those of Envoy's guide "Configuring Envoy as an edge proxy", as far as they do not break
uploads and streams that last.
"""

import enum
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from meshwright.mesh.policies.limits import RateLimit, RateLimits
from meshwright.mesh.policies.smi import PolicyKey

KIBIBYTE: Final = 1024


class ClientSlashes(enum.StrEnum):
    """Treatment of an escaped slash or backslash in the path of a request (`%2f`, `%5c`, in any case).

    - REJECT: the request is answered with 400.
    - KEEP: routes match the path as written, and the backend gets the path unchanged.
    - REDIRECT: the client is redirected to the unescaped path (307, or for gRPC an error).
    - FORWARD: routes match the unescaped path, and the backend gets the unescaped path.
    """

    REJECT = "Reject"
    KEEP = "Keep"
    REDIRECT = "UnescapeAndRedirect"
    FORWARD = "UnescapeAndForward"


@dataclass(frozen=True, slots=True)
class ClientTimeouts:
    """Times for clients; a time of 0 stands for no limit.

    `idle` is for a connection without a request, or a TCP connection without a byte (None: the mesh's own
    timeout for TCP, and one hour for HTTP). `request_headers` runs until all headers of a request have
    arrived, `request` until its last byte has arrived, `stream_idle` is for a request or response without a
    byte, and `handshake` is for TLS.
    """

    idle: timedelta | None = None
    request_headers: timedelta = timedelta(seconds=10)
    request: timedelta = timedelta()
    stream_idle: timedelta = timedelta(minutes=5)
    handshake: timedelta = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class ClientHttp2:
    """Limits of HTTP/2: concurrent streams of a connection, and the flow-control windows in bytes."""

    streams: int = 100
    stream_window: int = 64 * KIBIBYTE
    connection_window: int = 1024 * KIBIBYTE


@dataclass(frozen=True, slots=True)
class ClientRates:
    """Rates of clients at a listener: of all clients together, and `per_client` of each client address.

    Each proxy counts `limits` and `per_client` by itself; a rate limit service may count for all proxies.
    """

    limits: RateLimits = field(default_factory=RateLimits)
    per_client: RateLimit | None = None


@dataclass(frozen=True, slots=True)
class PortSettings:
    """Settings of all connections at a port, in force before the listener of a connection is known.

    `buffer_bytes` are kept for a connection whose other end reads slowly. With `proxy_protocol` each
    connection must begin with a header of the PROXY protocol, version 1 or 2.
    """

    buffer_bytes: int = 32 * KIBIBYTE
    proxy_protocol: bool = False


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Settings for the clients of a listener; the defaults hold without a ClientTrafficPolicy.

    - `connections`: concurrent connections at each proxy; None for the proxy's own limit only.
    - `header_bytes`, `header_count`: limits of a request's headers; None for the mesh's own limits.
    - `merge_slashes`: `//` in a path is read as `/`.
    - `trusted_hops`: proxies in front of the gateway that append the client's address to X-Forwarded-For.
    """

    connections: int | None = None
    header_bytes: int | None = None
    header_count: int | None = None
    timeouts: ClientTimeouts = field(default_factory=ClientTimeouts)
    http2: ClientHttp2 = field(default_factory=ClientHttp2)
    merge_slashes: bool = True
    slashes: ClientSlashes = ClientSlashes.REJECT
    trusted_hops: int = 0
    rates: ClientRates = field(default_factory=ClientRates)


DEFAULTS: Final = ClientSettings()
"""Settings of a listener without a ClientTrafficPolicy."""

PORT_DEFAULTS: Final = PortSettings()
"""Settings of a port without a ClientTrafficPolicy."""


@dataclass(frozen=True, slots=True)
class ClientTarget:
    """A Gateway of the policy's namespace; with `section` only its listener of this name."""

    gateway: str
    section: str = ""


@dataclass(frozen=True, slots=True)
class ClientTrafficPolicy:
    """policy.meshwright.dev ClientTrafficPolicy: settings for the clients of gateways' listeners.

    `fields` are the names of the written fields of the specification, for example `connections`. `created` is
    `metadata.creationTimestamp` as written, or empty; the age decides precedence.
    """

    key: PolicyKey
    targets: tuple[ClientTarget, ...]
    settings: ClientSettings = DEFAULTS
    port: PortSettings = PORT_DEFAULTS
    fields: tuple[str, ...] = ()
    created: str = ""

    def gateway_of(self, target: ClientTarget) -> PolicyKey:
        """Return the name of the gateway of a target, which may be missing."""
        return PolicyKey(self.key.namespace, target.gateway)
