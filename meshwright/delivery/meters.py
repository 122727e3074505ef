"""Interfaces for the counters of delivery; the metrics behind them are in `meshwright.admin.metrics`."""

from typing import Protocol

from xds.protocol.resources.resource import TypeUrl


class WaveMeter(Protocol):
    """Counters of changes and waves; each method must be quick and must not raise."""

    def event(self, source: str, kind: str, count: int = 1) -> None:
        """Count changed objects of one kind from a source."""

    def wave(self, seconds: float, *, published: bool) -> None:
        """Count a wave of `seconds`, and whether it published anything."""

    def wave_work(self, *, computed: int, reused: int, stopped: int, encoded: int, touched: int) -> None:
        """Count the work of a wave: derived values, encoded pieces, and connected proxies concerned."""

    def group_failed(self) -> None:
        """Count a group that could not be computed and keeps its last snapshot."""

    def verified(self, differences: int) -> None:
        """Count a wave compared with a computation from scratch, and its differences."""


class StreamMeter(Protocol):
    """Counters of connections, streams and messages; each method must be quick and must not raise."""

    def handshake(self) -> None:
        """Count a TLS handshake of a proxy with the xDS port."""

    def connection_used(self) -> None:
        """Count a connection of a proxy when the first stream on the connection is requested."""

    def connection_ended(self, cause: str) -> None:
        """Count a proxy connection closed by the server because of an exceeded limit."""

    def stream_opened(self, protocol: str) -> None:
        """Count an accepted xDS stream; `protocol` is the variant, `delta` or `sotw`."""

    def stream_refused(self, reason: str) -> None:
        """Count a refused stream."""

    def exceeded(self, bound: str) -> None:
        """Count a call in which a client exceeded a limit; `bound` names the limit."""

    def sent(self, type_url: TypeUrl, resources: int, size: int) -> None:
        """Count an xDS response with the number of resources and the size in bytes."""

    def large(self, type_url: TypeUrl) -> None:
        """Count an xDS response larger than the default message limit of gRPC clients."""

    def pushed(self, seconds: float) -> None:
        """Count a response caused by a change, with the seconds since the first event of the change."""

    def acked(self, type_url: TypeUrl) -> None:
        """Count an acknowledged response."""

    def acknowledged(self, seconds: float) -> None:
        """Count the ACK of a response caused by a change, with the seconds since the change's first event."""

    def nacked(self, type_url: TypeUrl) -> None:
        """Count a rejected response."""


class Meter(WaveMeter, StreamMeter, Protocol):
    """Counters of both waves and streams."""
