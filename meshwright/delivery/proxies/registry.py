"""Registry of connected, expected and former proxies; it records states and leaves decisions to others."""

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
"""Minimum duration of several connections of one identity that proves several proxies.

A hot restart of Envoy runs two processes for 60 seconds. The connection of a vanished machine is closed after
80.
"""

REMEMBERED: Final = timedelta(hours=1)
"""Time after which a disconnected proxy without a workload is forgotten."""


def never(node: NodeKey) -> bool:
    """Return False: no two proxies with this identity are known to collide."""
    del node
    return False


class ProxyRegistry:
    """Registry with one record per proxy, updated by streams and by the workloads of each view."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._proxies: dict[NodeKey, Proxy] = {}
        self._followed: Picture[SidecarKey, ProxyName] = Picture()
        self._strays: dict[NodeKey, None] = {}  # proxies without a known workload
        self._states: Counter[ProxyState | None] = Counter()
        self._several: dict[NodeKey, None] = {}  # proxies with streams from more than one connection

    def find(self, node: NodeKey) -> Proxy | None:
        """Return the record of a proxy, or `None`."""
        return self._proxies.get(node)

    def proxy(self, node: NodeKey) -> Proxy:
        """Return the record of a proxy, and create it if necessary."""
        proxy = self._proxies.get(node)
        if proxy is None:
            proxy = self._proxies[node] = Proxy(node, ProxyName.parse(node))
            self._strays[node] = None
            self._states[proxy.state] += 1
        return proxy

    def acknowledged(self, node: NodeKey) -> Acknowledged:
        """Return the mutable record of the resources that a proxy has acknowledged."""
        return self.proxy(node).acknowledged

    def is_connected(self, node: NodeKey) -> bool:
        """Return whether a proxy has a stream."""
        proxy = self._proxies.get(node)
        return proxy is not None and bool(proxy.streams)

    def opened(self, node: NodeKey, address: str, variant: Variant) -> Proxy:
        """Record a new stream; a proxy may have several."""
        proxy = self.proxy(node)
        with self._counted(proxy):
            if not proxy.streams:
                proxy.since = self._clock()
            proxy.address = address
            proxy.streams = (*proxy.streams, (address, variant))
            self._compare(proxy)
        return proxy

    def closed(self, node: NodeKey, address: str) -> Variant:
        """Record the end of a proxy's stream; return the variant of the stream (delta or SotW)."""
        proxy = self._proxies[node]
        # Streams of one connection are not distinguished, so the newest one is taken.
        newest = max(at for at, (peer, _) in enumerate(proxy.streams) if peer == address)
        _, ended = proxy.streams[newest]
        with self._counted(proxy):
            proxy.streams = (*proxy.streams[:newest], *proxy.streams[newest + 1 :])
            self._compare(proxy)
            if not proxy.streams:
                proxy.since = self._clock()
        return ended

    def follow(self, proxies: Picture[SidecarKey, ProxyName]) -> tuple[NodeKey, ...]:
        """Set the expected proxies; return those that are not expected any more.

        Examines changed proxies and proxies without a workload only. The latter are forgotten when they have
        been disconnected for REMEMBERED.
        """
        # The picture is the same object as long as no workload was added or removed.
        if proxies is self._followed:
            return ()
        now, before = self._clock(), self._followed
        self._followed = proxies
        changed = proxies.since(before)
        gone = tuple(NodeKey(str(name)) for sidecar in changed if (name := before.get(sidecar)) is not None)
        for node in gone:
            self._strays[node] = None
            with self._counted(self.proxy(node)) as proxy:
                proxy.expected = None
        for name in changed.values():
            if name is not None:
                with self._counted(self.proxy(NodeKey(str(name)))) as proxy:
                    proxy.expected = proxy.expected or now
                del self._strays[proxy.node]
        for proxy in [self._proxies[node] for node in self._strays]:
            if not proxy.streams and (proxy.since is None or now - proxy.since >= REMEMBERED):
                del self._proxies[proxy.node], self._strays[proxy.node]
                self._states[proxy.state] -= 1
        return gone

    def statuses(self, collided: Callable[[NodeKey], bool] = never) -> tuple[ProxyStatus, ...]:
        """Return the status of every proxy, sorted by name; `collided` as for `shared`."""
        shared = {item.node for item in self.shared(collided)}
        result = (
            status
            for proxy in self._proxies.values()
            if (status := proxy.status(is_shared=proxy.node in shared)) is not None
        )
        return tuple(sorted(result, key=lambda proxy_status: proxy_status.name))

    def has_several(self, node: NodeKey) -> bool:
        """Return whether the streams of an identity now come from more than one connection."""
        return node in self._several

    def shared(self, collided: Callable[[NodeKey], bool] = never) -> tuple[Proxy, ...]:
        """Return the records of identities that several proxies use, sorted by name.

        The proof is SHARED_AFTER, or a collision: one proxy could not bind a port that another one has
        (`collided`).
        """
        now = self._clock()
        result = (self._proxies[node] for node in sorted(self._several))
        return tuple(
            proxy
            for proxy in result
            if proxy.several_since is not None
            and (now - proxy.several_since >= SHARED_AFTER or collided(proxy.node))
        )

    def connected(self) -> tuple[Proxy, ...]:
        """Return the proxies with a stream; may be called from any thread."""
        return tuple(proxy for proxy in tuple(self._proxies.values()) if proxy.streams)

    def counts(self) -> dict[str, int]:
        """Return the number of proxies in each state."""
        return {state.value: self._states[state] for state in ProxyState}

    def _compare(self, proxy: Proxy) -> None:
        """Record whether the streams of a proxy come from more than one connection."""
        # Several streams over one connection are a single proxy.
        if len(proxy.peers) < 2:
            proxy.several_since = None
            self._several.pop(proxy.node, None)
        elif proxy.several_since is None:
            proxy.several_since = self._clock()
            self._several[proxy.node] = None

    @contextlib.contextmanager
    def _counted(self, proxy: Proxy) -> Iterator[Proxy]:
        """Update the counts of proxies by state after the block has changed this proxy."""
        before = proxy.state
        yield proxy
        self._states[before] -= 1
        self._states[proxy.state] += 1
