"""Which proxies are here, should be, or were: state to look at, never asked for a decision."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from catalog.store.inventory import sidecars
from catalog.store.view import View
from delivery.proxies.status import ProxyState, ProxyStatus
from mesh.identity import ProxyName
from xds.cache import NodeKey

REMEMBERED: Final = timedelta(hours=1)
"""How long a proxy is remembered that is gone and whose workload is gone as well."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A proxy's streams: how many there are now, where from, and since when it is here or gone."""

    streams: int
    address: str
    since: datetime


def expected(view: View) -> tuple[ProxyName, ...]:
    """Return the proxies that the view's workloads should have, sorted."""
    names = (workload.proxy_name for workload in sidecars(view))
    return tuple(sorted(name for name in names if name is not None))


class ProxyRegistry:
    """Follows streams as they open and close, and the workloads of each view."""

    def __init__(
        self,
        clock: Callable[[], datetime],
        forgotten: Callable[[Iterable[NodeKey]], None] = lambda _: None,
    ) -> None:
        """`forgotten` is told of the proxies that are remembered no longer."""
        self._clock = clock
        self._forgotten = forgotten
        self._seen: dict[NodeKey, _Seen] = {}
        self._expected: dict[ProxyName, datetime] = {}
        self._followed: tuple[ProxyName, ...] | None = None

    def opened(self, node: NodeKey, address: str) -> None:
        """Note a stream; a proxy may have several."""
        seen = self._seen.get(node)
        if seen is None or seen.streams == 0:
            self._seen[node] = _Seen(1, address, self._clock())
        else:
            self._seen[node] = replace(seen, streams=seen.streams + 1, address=address)

    def closed(self, node: NodeKey) -> None:
        """Note the end of a stream; the proxy is gone when it was its last."""
        seen = self._seen[node]
        if seen.streams == 1:
            self._seen[node] = replace(seen, streams=0, since=self._clock())
        else:
            self._seen[node] = replace(seen, streams=seen.streams - 1)

    def follow(self, names: tuple[ProxyName, ...]) -> None:
        """Take the proxies that should be here, as `expect`, unless they are the very same as last time."""
        if names is not self._followed:
            self._followed = names
            self.expect(names)

    def expect(self, names: Iterable[ProxyName]) -> None:
        """Take the proxies that should be here, and forget those gone for long that should not."""
        now = self._clock()
        self._expected = {name: self._expected.get(name, now) for name in sorted(names)}
        wanted = {NodeKey(str(name)) for name in self._expected}
        gone = [
            node
            for node, seen in self._seen.items()
            if not seen.streams and node not in wanted and now - seen.since >= REMEMBERED
        ]
        for node in gone:
            del self._seen[node]
        self._forgotten(gone)

    def expects(self, node: NodeKey) -> bool:
        """Say whether a proxy's workload is known."""
        return ProxyName.parse(node) in self._expected

    def statuses(self) -> tuple[ProxyStatus, ...]:
        """Return every proxy, sorted by name."""
        found = {
            name: ProxyStatus(name, ProxyState.EXPECTED, "", since, True)
            for name, since in self._expected.items()
        }
        for node, seen in self._seen.items():
            name = ProxyName.parse(node)
            state = ProxyState.CONNECTED if seen.streams else ProxyState.DISCONNECTED
            found[name] = ProxyStatus(name, state, seen.address, seen.since, name in self._expected)
        return tuple(found[name] for name in sorted(found))

    def counts(self) -> dict[str, int]:
        """Return how many proxies are in each state."""
        here = sum(1 for seen in self._seen.values() if seen.streams)
        never = sum(1 for name in self._expected if NodeKey(str(name)) not in self._seen)
        return {
            ProxyState.CONNECTED.value: here,
            ProxyState.EXPECTED.value: never,
            ProxyState.DISCONNECTED.value: len(self._seen) - here,
        }
