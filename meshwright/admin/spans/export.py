"""Export of the control plane's own spans to a collector, by OTLP over gRPC, without delaying a wave."""

import asyncio
import os
import platform
import time
import uuid
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final, Protocol

import grpc
import grpc.aio
import structlog

from meshwright.admin.spans.change import spans
from meshwright.admin.spans.otlp import EXPORT, rejected, request
from meshwright.admin.spans.span import Span, Value
from meshwright.delivery.history.open_waves import OpenWaves
from meshwright.mesh.host_port import HostPort
from meshwright.tls.contents import TlsContents, TlsFiles
from meshwright.tls.grpc_channel import channel_credentials

QUEUE: Final = 4096
"""Maximum number of spans in the queue; a trace without room is dropped as a whole."""

BATCH: Final = 128
"""Maximum number of spans in a request: encoding them blocks the event loop for about 3 ms."""

SECONDS: Final = 10.0
"""Timeout of a request in seconds."""

LOOK: Final = 0.5
"""Seconds between two checks for finished waves."""

_AGAIN: Final = (1.0, 2.0, 5.0)
"""Seconds until the next attempt after the first, second and every further failure in a row."""

_LATER: Final = frozenset(
    {
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    }
)
"""Status codes after which OTLP demands a retry; other errors are permanent."""

_OPTIONS: Final = (
    # Otherwise gRPC would send spans through the HTTP proxy of the environment (https_proxy).
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 5000),
)

_log = structlog.get_logger("controller.span_export")


class SpanMeter(Protocol):
    """Counter of exported and dropped trace spans."""

    def spans_exported(self, count: int) -> None:
        """Count spans that the collector has accepted."""

    def spans_dropped(self, reason: str, count: int) -> None:
        """Count dropped spans, with the reason."""


class SpanExport:
    """Conversion of finished waves to traces, and their export; used on the event loop.

    `waves` has the waves that delivery follows. Without `tls`, spans are sent in plain text.
    """

    def __init__(
        self,
        waves: OpenWaves,
        at: HostPort,
        tls: grpc.ChannelCredentials | None,
        meter: SpanMeter,
        clock: Callable[[], datetime],
    ) -> None:
        self._waves = waves
        self._at = at
        self._tls = tls
        self._meter = meter
        self._clock = clock
        self._queue: deque[Span] = deque()
        self._any = asyncio.Event()
        self._failed = 0

    def works(
        self, known_until: Callable[[float], float]
    ) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield the background tasks of the export, by name.

        `known_until` converts the current time to the time until which all events of waves are recorded, both
        by `time.monotonic`.
        """
        yield "spans", self._making(known_until)
        yield "span collector", self._sending()

    def offer(self, trace: Sequence[Span]) -> None:
        """Queue the spans of a trace for export, or drop them if the queue is full. Never waits."""
        if len(self._queue) + len(trace) > QUEUE:
            self._meter.spans_dropped("queue-full", len(trace))
            return
        self._queue.extend(trace)
        self._any.set()

    async def _making(self, known_until: Callable[[float], float]) -> None:
        while True:
            await asyncio.sleep(LOOK)
            now = time.monotonic()
            for record in self._waves.take(known_until(now)):
                self.offer(spans(record, self._clock().timestamp() - now, os.urandom))
                await asyncio.sleep(
                    0
                )  # other tasks run between two traces, which have about a hundred pushes each

    async def _sending(self) -> None:
        teller, ours = resource_attributes(), version("meshwright")
        async with self._channel() as channel:
            export = channel.unary_unary(EXPORT)  # bytes to bytes
            while True:
                await self._any.wait()
                self._any.clear()
                while self._queue:
                    batch = [self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))]
                    await self._sent(export, request(teller, ours, batch), len(batch))

    async def _sent(
        self, export: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes], message: bytes, count: int
    ) -> None:
        """Repeat an export request until the collector accepts the request or refuses it permanently."""
        while True:
            try:
                answer = await export(message, timeout=SECONDS)
            except grpc.aio.AioRpcError as error:
                self._log_failure(error)
                if error.code() not in _LATER:
                    self._meter.spans_dropped("rejected", count)
                    return
                await asyncio.sleep(_AGAIN[min(self._failed, len(_AGAIN)) - 1])
                continue
            if self._failed:
                _log.info("span export works again", collector=str(self._at))
            self._failed = 0
            untaken = min(rejected(answer), count)
            self._meter.spans_exported(count - untaken)
            if untaken:
                self._meter.spans_dropped("rejected", untaken)
            return

    def _log_failure(self, error: grpc.aio.AioRpcError) -> None:
        self._failed += 1
        # One warning for each outage, not for each attempt.
        if self._failed == 1:
            text = " ".join((error.details() or "").split())[:300]
            code = error.code().name.lower()
            _log.warning("span export failed", collector=str(self._at), code=code, said=text)

    def _channel(self) -> grpc.aio.Channel:
        if self._tls is None:
            return grpc.aio.insecure_channel(str(self._at), options=_OPTIONS)
        return grpc.aio.secure_channel(str(self._at), self._tls, options=_OPTIONS)


def collector_tls(ca: Path | None) -> grpc.ChannelCredentials:
    """Return TLS credentials with the CAs in a file, or with gRPC's default CAs (None).

    Raises UnusableTlsError.
    """
    return channel_credentials(TlsContents.read(TlsFiles(ca=ca)))


def resource_attributes() -> Mapping[str, Value]:
    """Return this process's resource attributes by OpenTelemetry's conventions, with a new instance ID."""
    return {
        "service.name": "meshwright",
        "service.version": version("meshwright"),
        "service.instance.id": str(uuid.uuid4()),
        "host.name": platform.node(),
        "process.pid": os.getpid(),
    }
