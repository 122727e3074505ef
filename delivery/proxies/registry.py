"""Which proxies are here, should be, or were: their records, never asked for a decision."""

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Final

from delivery.proxies.proxy import Proxy
from delivery.proxies.status import ProxyState, ProxyStatus
from delivery.quarantine.accepted import Acknowledged
from mesh.identity import ProxyName
from xds.cache import NodeKey
from xds.server.status import Variant

REMEMBERED: Final = timedelta(hours=1)
"""How long a proxy is remembered that is gone and whose workload is gone as well."""


class ProxyRegistry:
    """The one record of each proxy; follows streams, and the workloads of each view."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._proxies: dict[NodeKey, Proxy] = {}
        self._followed: tuple[ProxyName, ...] | None = None

    def find(self, node: NodeKey) -> Proxy | None:
        """Return a proxy's record, None where there is none."""
        return self._proxies.get(node)

    def of(self, node: NodeKey) -> Proxy:
        """Return a proxy's record, which begins if there is none."""
        found = self._proxies.get(node)
        if found is None:
            found = self._proxies[node] = Proxy(node, ProxyName.parse(node))
        return found

    def acknowledged(self, node: NodeKey) -> Acknowledged:
        """Return what a proxy has acknowledged, to be written and read."""
        return self.of(node).acknowledged

    def opened(self, node: NodeKey, address: str, variant: Variant) -> Proxy:
        """Note a stream; a proxy may have several."""
        proxy = self.of(node)
        if not proxy.streams:
            proxy.since = self._clock()
        proxy.address = address
        proxy.streams.setdefault(address, []).append(variant)
        return proxy

    def closed(self, node: NodeKey, address: str) -> Variant:
        """Note the end of a stream, and return which it was; the proxy is gone when it was its last."""
        proxy = self._proxies[node]
        variants = proxy.streams[address]
        ended = variants.pop()
        if not variants:
            del proxy.streams[address]
        if not proxy.streams:
            proxy.since = self._clock()
        return ended

    def follow(self, names: tuple[ProxyName, ...]) -> None:
        """Take the proxies that should be here, as `expect`, unless they are the very same as last time."""
        if names is not self._followed:
            self._followed = names
            self.expect(names)

    def expect(self, names: Iterable[ProxyName]) -> None:
        """Take the proxies that should be here, and forget those gone for long that should not."""
        now = self._clock()
        wanted = {NodeKey(str(name)) for name in names}
        for node in wanted:
            proxy = self.of(node)
            proxy.expected = proxy.expected or now
        for proxy in [each for each in self._proxies.values() if each.node not in wanted]:
            proxy.expected = None
            if not proxy.streams and (proxy.since is None or now - proxy.since >= REMEMBERED):
                del self._proxies[proxy.node]

    def statuses(self) -> tuple[ProxyStatus, ...]:
        """Return every proxy, sorted by name."""
        found = (status for proxy in self._proxies.values() if (status := proxy.status()) is not None)
        return tuple(sorted(found, key=lambda each: each.name))

    def counts(self) -> dict[str, int]:
        """Return how many proxies are in each state."""
        found = Counter(proxy.state for proxy in self._proxies.values())
        return {state.value: found[state] for state in ProxyState}
