"""What happens on the ADS server, told to the registry, the metrics and the log."""

from typing import Final

import structlog

from admin.metrics import Metrics, short_type
from controller.registry import ProxyRegistry
from xds.access import Ending, Peer
from xds.cache import NodeKey
from xds.status import Variant
from xds.wire import Rejection, Response

REMEMBERED_CONNECTIONS: Final = 10_000
"""Connections known by their peer's address; a new stream on one that was forgotten counts it again."""

_log = structlog.get_logger("controller.ads")


class MeshObserver:
    """The ADS server's observer; counts open streams by variant besides passing everything on."""

    def __init__(self, registry: ProxyRegistry, metrics: Metrics) -> None:
        self._registry = registry
        self._metrics = metrics
        self._variants: dict[tuple[NodeKey, str], list[Variant]] = {}
        self._connections: dict[str, None] = {}
        self.streams = {variant.value: 0 for variant in Variant}

    def handshake(self) -> None:
        """Count it."""
        self._metrics.handshake()

    def opened(self, node_key: NodeKey, peer: Peer, variant: Variant) -> None:
        """Note a stream."""
        self._used(peer)
        self._registry.opened(node_key, peer.address)
        self._metrics.stream_opened(variant.value)
        self._variants.setdefault((node_key, peer.address), []).append(variant)
        self.streams[variant.value] += 1
        said = {"proxy": node_key, "peer": peer.address, "protocol": variant.value}
        if self._registry.expects(node_key):
            _log.info("stream opened", **said)
        else:
            _log.warning("stream held until its workload is known", **said)

    def refused(self, peer: Peer, reason: str) -> None:
        """Count it; whoever refused has said more in the log."""
        self._used(peer)
        self._metrics.stream_refused(reason)
        _log.info("stream refused", peer=peer.address, reason=reason)

    def _used(self, peer: Peer) -> None:
        if peer.address in self._connections:
            return
        if len(self._connections) >= REMEMBERED_CONNECTIONS:
            del self._connections[next(iter(self._connections))]
        self._connections[peer.address] = None
        self._metrics.connection_used()

    def sent(self, node_key: NodeKey, response: Response, size: int) -> None:
        """Count it."""
        self._metrics.sent(response.type_url, len(response.resources))
        _log.debug(
            "response sent",
            proxy=node_key,
            type=short_type(response.type_url),
            resources=len(response.resources),
            removed=len(response.removed),
            bytes=size,
        )

    def answered(self, node_key: NodeKey, response: Response, rejection: Rejection | None) -> None:
        """Count an ACK; a NACK is an error of ours, and said with the proxy's words."""
        if rejection is None:
            self._metrics.acked(response.type_url)
            return
        self._metrics.nacked(response.type_url)
        _log.error(
            "response rejected",
            proxy=node_key,
            type=short_type(response.type_url),
            code=rejection.code,
            said=rejection.message,
        )

    def closed(self, node_key: NodeKey, peer: Peer, ending: Ending, detail: str) -> None:
        """Note the end of a stream; one that was refused after it was opened counts as refused, too."""
        self._registry.closed(node_key)
        if ending is Ending.REFUSED:
            self._metrics.stream_refused(detail)
        variants = self._variants[node_key, peer.address]
        self.streams[variants.pop().value] -= 1
        if not variants:
            del self._variants[node_key, peer.address]
        _log.info("stream closed", proxy=node_key, peer=peer.address, ending=ending.value, detail=detail)
