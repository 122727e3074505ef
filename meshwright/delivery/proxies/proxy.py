"""What is known of one proxy, in one record: its streams, what it was sent, and what it has acknowledged."""

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
    """One proxy; each part is written by its own room, and all of them are forgotten together.

    `expected` is since when its workload is known, None where it is not; `since` when it came or went, None
    before it ever came. `streams` are those that are open, each with the address of its peer, the newest
    last; `address` is the newest one's. `several_since` is since when streams come from more than one
    connection, None while they do not. `pushes` are None where nothing is remembered.
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
        """The addresses of the connections that have a stream, each once, the oldest first."""
        return tuple(dict.fromkeys(address for address, _ in self.streams))

    @property
    def state(self) -> ProxyState | None:
        """Where it stands; None for one that never came and is not expected."""
        if self.streams:
            return ProxyState.CONNECTED
        if self.since is not None:
            return ProxyState.ENDED if self.expected is None else ProxyState.DISCONNECTED
        return None if self.expected is None else ProxyState.EXPECTED

    def status(self, *, is_shared: bool = False) -> ProxyStatus | None:
        """Return where it stands, and since when; None as for `state`."""
        state, since = self.state, self.since or self.expected
        if state is None or since is None:
            return None
        peers = self.peers if is_shared else ()
        return ProxyStatus(self.name, state, self.address, since, self.expected is not None, peers)
