"""What delivery counts of itself, for whoever keeps the numbers: it knows no metrics."""

from typing import Protocol

from xds.protocol.resources.resource import TypeUrl


class WaveMeter(Protocol):
    """Counts changes and waves; must return at once and not raise."""

    def event(self, source: str, kind: str, count: int = 1) -> None:
        """Count changes of a kind of object that a source brought."""

    def wave(self, seconds: float, *, published: bool) -> None:
        """Count a wave, and whether anything came of it."""

    def wave_work(self, *, computed: int, reused: int, stopped: int, encoded: int, touched: int) -> None:
        """Count the work of a wave: derived values, pieces encoded, connected proxies that it concerned."""

    def group_failed(self) -> None:
        """Count a group that could not be computed, and kept its last good snapshot."""

    def verified(self, differences: int) -> None:
        """Count a wave that was compared with one from nothing, and what that found."""


class StreamMeter(Protocol):
    """Counts connections, streams, and what goes to and fro on them; must return at once and not raise."""

    def handshake(self) -> None:
        """Count a TLS handshake."""

    def connection_used(self) -> None:
        """Count a connection on which a stream was asked for first."""

    def connection_ended(self, cause: str) -> None:
        """Count a connection that was ended for what it cost."""

    def stream_opened(self, protocol: str) -> None:
        """Count a stream that was let in."""

    def stream_refused(self, reason: str) -> None:
        """Count a stream that was refused."""

    def exceeded(self, bound: str) -> None:
        """Count a call that was over a bound of its budget."""

    def sent(self, type_url: TypeUrl, resources: int, size: int) -> None:
        """Count a response, the resources in it, and its bytes."""

    def large(self, type_url: TypeUrl) -> None:
        """Count a response that some clients cannot take."""

    def pushed(self, seconds: float) -> None:
        """Count a response that a change led to, so long after the change's first event."""

    def acked(self, type_url: TypeUrl) -> None:
        """Count a response acknowledged."""

    def acknowledged(self, seconds: float) -> None:
        """Count the ACK of a response that a change led to, so long after its first event."""

    def nacked(self, type_url: TypeUrl) -> None:
        """Count a response rejected."""


class Meter(WaveMeter, StreamMeter, Protocol):
    """Counts everything."""
