"""The control plane's record of one proxy: streams, pushes and acknowledged resources."""

from dataclasses import dataclass, field
from datetime import datetime

from meshwright.delivery.history.record import Record
from meshwright.delivery.proxies.large_responses import LargeResponses
from meshwright.delivery.proxies.status import ProxyState, ProxyStatus
from meshwright.delivery.quarantine.acknowledged_resources import Acknowledged
from meshwright.mesh.identity import ProxyName
from xds.cache import NodeKey
from xds.stream_status import Variant


@dataclass(slots=True, eq=False)
class Proxy:
    """Record of one proxy, whose parts are written by several modules and forgotten together.

    `expected` is the time since when the workload is known, or `None`. `since` is the time of the last
    connection or disconnection, or `None` before the first connection. `streams` are the open streams with
    the address of their peer and their variant, the newest last; `address` is the address of the newest one.
    `several_since` is the time since when the streams come from more than one connection, or `None`. `pushes`
    is `None` if nothing is remembered.
    """

    node: NodeKey
    name: ProxyName
    expected: datetime | None = None
    since: datetime | None = None
    address: str = ""
    streams: tuple[tuple[str, Variant], ...] = ()
    several_since: datetime | None = None
    pushes: Record | None = None
    acknowledged: Acknowledged = field(default_factory=dict)
    large: LargeResponses = field(default_factory=LargeResponses)

    @property
    def peers(self) -> tuple[str, ...]:
        """The addresses of connections with an open stream, each once, oldest first."""
        return tuple(dict.fromkeys(address for address, _ in self.streams))

    @property
    def state(self) -> ProxyState | None:
        """The state of the proxy; `None` for one that never connected and is not expected."""
        if self.streams:
            return ProxyState.CONNECTED
        if self.since is not None:
            return ProxyState.ENDED if self.expected is None else ProxyState.DISCONNECTED
        return None if self.expected is None else ProxyState.EXPECTED

    def status(self, *, is_shared: bool = False) -> ProxyStatus | None:
        """Return the state of the proxy and the time since when; `None` if `state` is `None`."""
        state, since = self.state, self.since or self.expected
        if state is None or since is None:
            return None
        peers = self.peers if is_shared else ()
        return ProxyStatus(self.name, state, self.address, since, self.expected is not None, peers)
