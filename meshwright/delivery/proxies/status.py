"""Status of a proxy: connected, expected or gone."""

import enum
from dataclasses import dataclass
from datetime import datetime

from meshwright.mesh.identity import ProxyName


class ProxyState(enum.StrEnum):
    """State of a proxy.

    CONNECTED: it has a stream. EXPECTED: its workload is known, and it has never connected. DISCONNECTED: its
    stream has ended, and its workload still exists. ENDED: its stream has ended and its workload is gone, as
    after a rollout, which is not an error.
    """

    CONNECTED = "connected"
    EXPECTED = "expected"
    DISCONNECTED = "disconnected"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class ProxyStatus:
    """Status of one proxy.

    `address` is the address of its peer, empty before the first connection. `known` is True if its workload
    is known. `peers` are the addresses of all its connections if several proxies share its identity, else
    empty.
    """

    name: ProxyName
    state: ProxyState
    address: str
    since: datetime
    known: bool
    peers: tuple[str, ...] = ()
