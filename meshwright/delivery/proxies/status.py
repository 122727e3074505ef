"""Where proxies stand: here, expected, or gone."""

import enum
from dataclasses import dataclass
from datetime import datetime

from meshwright.mesh.identity import ProxyName


class ProxyState(enum.StrEnum):
    """CONNECTED: has a stream. EXPECTED: its workload is known, it never came. DISCONNECTED: it was here.

    ENDED: it has no stream any more, and its workload is gone. That is a normal end, as that of a Pod which
    a rollout replaced, and no fault.
    """

    CONNECTED = "connected"
    EXPECTED = "expected"
    DISCONNECTED = "disconnected"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class ProxyStatus:
    """Where one proxy stands; `address` is its peer's, empty before it came; `known` is its workload.

    `peers` are the addresses of all its connections where several proxies share its identity, else empty.
    """

    name: ProxyName
    state: ProxyState
    address: str
    since: datetime
    known: bool
    peers: tuple[str, ...] = ()
