"""Which proxies are here, should be, or were: their records, never asked for a decision."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final

from meshwright.delivery.proxies.proxy import Proxy
from meshwright.delivery.proxies.status import ProxyState, ProxyStatus
from meshwright.delivery.quarantine.acknowledged_resources import Acknowledged
from meshwright.mesh.identity import ProxyName, SidecarKey
from meshwright.mesh.values.picture import Picture
from xds.cache import NodeKey
from xds.stream_status import Variant

SHARED_AFTER: Final = timedelta(minutes=2)
"""How long several connections of one identity must last to be proof of several proxies.

A hot restart has two Envoys for 60 seconds. The connection of a machine that vanished is ended after 80.
"""

REMEMBERED: Final = timedelta(hours=1)
"""How long a proxy is remembered that is gone and whose workload is gone as well."""


def never(node: NodeKey) -> bool:
    """Return that no proxy of an identity collided with another one."""
    del node
    return False


class ProxyRegistry:
    """The one record of each proxy; follows streams, and the workloads of each view."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._proxies: dict[NodeKey, Proxy] = {}
        self._followed: Picture[SidecarKey, ProxyName] = Picture()
        self._strays: dict[NodeKey, None] = {}  # those that should not be here
        self._states: Counter[ProxyState | None] = Counter()
        self._several: dict[NodeKey, None] = {}  # whose streams come from more than one connection

    def find(self, node: NodeKey) -> Proxy | None:
        """Return a proxy's record, None where there is none."""
        return self._proxies.get(node)

    def of(self, node: NodeKey) -> Proxy:
        """Return a proxy's record, which begins if there is none."""
        found = self._proxies.get(node)
        if found is None:
            found = self._proxies[node] = Proxy(node, ProxyName.parse(node))
            self._strays[node] = None
            self._states[found.state] += 1
        return found

    def acknowledged(self, node: NodeKey) -> Acknowledged:
        """Return what a proxy has acknowledged, to be written and read."""
        return self.of(node).acknowledged

    def opened(self, node: NodeKey, address: str, variant: Variant) -> Proxy:
        """Note a stream; a proxy may have several."""
        proxy = self.of(node)
        with self._counted(proxy):
            if not proxy.streams:
                proxy.since = self._clock()
            proxy.address = address
            proxy.streams = (*proxy.streams, (address, variant))
            self._compare(proxy)
        return proxy

    def closed(self, node: NodeKey, address: str) -> Variant:
        """Note the end of a stream, and return which it was; the proxy is gone when it was its last."""
        proxy = self._proxies[node]
        newest = max(at for at, (peer, _) in enumerate(proxy.streams) if peer == address)
        _, ended = proxy.streams[newest]
        with self._counted(proxy):
            proxy.streams = (*proxy.streams[:newest], *proxy.streams[newest + 1 :])
            self._compare(proxy)
            if not proxy.streams:
                proxy.since = self._clock()
        return ended

    def follow(self, proxies: Picture[SidecarKey, ProxyName]) -> tuple[NodeKey, ...]:
        """Take the proxies that should be here; return those that should not any more.

        Forgets those gone for long. Looks at those that are other than the last time, and at all that are
        known and should not be here.
        """
        if proxies is self._followed:
            return ()
        now, before = self._clock(), self._followed
        self._followed = proxies
        changed = proxies.since(before)
        gone = tuple(NodeKey(str(name)) for each in changed if (name := before.get(each)) is not None)
        for node in gone:
            self._strays[node] = None
            with self._counted(self.of(node)) as proxy:
                proxy.expected = None
        for name in changed.values():
            if name is not None:
                with self._counted(self.of(NodeKey(str(name)))) as proxy:
                    proxy.expected = proxy.expected or now
                del self._strays[proxy.node]
        for proxy in [self._proxies[node] for node in self._strays]:
            if not proxy.streams and (proxy.since is None or now - proxy.since >= REMEMBERED):
                del self._proxies[proxy.node], self._strays[proxy.node]
                self._states[proxy.state] -= 1
        return gone

    def statuses(self, collided: Callable[[NodeKey], bool] = never) -> tuple[ProxyStatus, ...]:
        """Return every proxy, sorted by name; `collided` as for `shared`."""
        shared = {each.node for each in self.shared(collided)}
        found = (
            status
            for proxy in self._proxies.values()
            if (status := proxy.status(is_shared=proxy.node in shared)) is not None
        )
        return tuple(sorted(found, key=lambda each: each.name))

    def has_several(self, node: NodeKey) -> bool:
        """Return whether the streams of an identity come from more than one connection now."""
        return node in self._several

    def shared(self, collided: Callable[[NodeKey], bool] = never) -> tuple[Proxy, ...]:
        """Return the records of identities that several proxies use, sorted by name.

        The proof is SHARED_AFTER, or that one proxy could not bind what another one has (`collided`).
        """
        now = self._clock()
        found = (self._proxies[node] for node in sorted(self._several))
        return tuple(
            each
            for each in found
            if each.several_since is not None
            and (now - each.several_since >= SHARED_AFTER or collided(each.node))
        )

    def connected(self) -> tuple[Proxy, ...]:
        """Return the proxies that have a stream; may be called from any thread."""
        return tuple(each for each in tuple(self._proxies.values()) if each.streams)

    def counts(self) -> dict[str, int]:
        """Return how many proxies are in each state."""
        return {state.value: self._states[state] for state in ProxyState}

    def _compare(self, proxy: Proxy) -> None:
        """Note whether the streams of a proxy come from one connection."""
        if len(proxy.peers) < 2:
            proxy.several_since = None
            self._several.pop(proxy.node, None)
        elif proxy.several_since is None:
            proxy.several_since = self._clock()
            self._several[proxy.node] = None

    @contextlib.contextmanager
    def _counted(self, proxy: Proxy) -> Iterator[Proxy]:
        """Count a proxy where it stands when the block ends."""
        before = proxy.state
        yield proxy
        self._states[before] -= 1
        self._states[proxy.state] += 1
