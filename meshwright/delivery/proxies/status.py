"""Status of a proxy: connected, expected or gone."""

import enum
from dataclasses import dataclass
from datetime import datetime

from meshwright.mesh.identity import ProxyName


class ProxyState(enum.StrEnum):
    """State of a proxy.

    CONNECTED: at least one stream is open. EXPECTED: the workload is known, and the proxy has never
    connected. DISCONNECTED: the stream has ended, and the workload still exists. ENDED: the stream has ended
    and the workload is gone, as after a rollout, which is not an error.
    """

    CONNECTED = "connected"
    EXPECTED = "expected"
    DISCONNECTED = "disconnected"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class ProxyStatus:
    """Status of one proxy.

    `address` is the address of the peer, for example `ipv4:10.0.3.7:41522`, empty before the first
    connection. `known` is True if the workload is known. `peers` are the addresses of all connections if
    several proxies share the identity, else empty.
    """

    name: ProxyName
    state: ProxyState
    address: str
    since: datetime
    known: bool
    peers: tuple[str, ...] = ()
