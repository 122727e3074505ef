"""External services for sidecars: an authorizer, a rate limit service, and collectors of spans and logs."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Self

import grpc
from aiohttp import web

from protos.envoy.service.auth.v3 import external_auth_pb2
from protos.envoy.service.ratelimit.v3 import rls_pb2
from protos.opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from protos.opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from protos.opentelemetry.proto.common.v1 import common_pb2
from protos.opentelemetry.proto.logs.v1 import logs_pb2
from protos.opentelemetry.proto.trace.v1 import trace_pb2

_DENIED = 7
"""google.rpc.Code PERMISSION_DENIED."""


@dataclass
class Authorizer:
    """`envoy.service.auth.v3.Authorization`: decides with `decide` and records the requests.

    For an admitted request it overwrites the headers `sets` and removes the headers `removes`.
    """

    port: int = 0
    sets: dict[str, str] = field(default_factory=dict)
    removes: tuple[str, ...] = ()
    decide: Callable[[external_auth_pb2.CheckRequest], bool] = lambda _: True
    asked: list[external_auth_pb2.CheckRequest] = field(default_factory=list)

    @classmethod
    async def start(cls, ends: AsyncExitStack) -> Self:
        """Serve on a free port until the stack is unwound."""
        made = cls()
        server = grpc.aio.server()
        handler = grpc.unary_unary_rpc_method_handler(
            made._check,
            request_deserializer=external_auth_pb2.CheckRequest.FromString,
            response_serializer=external_auth_pb2.CheckResponse.SerializeToString,
        )
        service = "envoy.service.auth.v3.Authorization"
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Check": handler}),))
        made.port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        ends.push_async_callback(server.stop, None)
        return made

    async def _check(
        self, request: external_auth_pb2.CheckRequest, _: object
    ) -> external_auth_pb2.CheckResponse:
        self.asked.append(request)
        answer = external_auth_pb2.CheckResponse()
        answer.status.code = 0 if self.decide(request) else _DENIED
        for name, value in self.sets.items():
            option = answer.ok_response.headers.add(append_action="OVERWRITE_IF_EXISTS_OR_ADD")
            option.header.key, option.header.value = name, value
        answer.ok_response.headers_to_remove.extend(self.removes)
        return answer


@dataclass
class RateLimiter:
    """`envoy.service.ratelimit.v3.RateLimitService`: admits a number of each descriptor, without reset.

    `asked` has the requests in order: the domain, and each descriptor as pairs. `limits` are by descriptor;
    one without a limit is always admitted. While `answering` is not set, no response is sent.
    """

    port: int = 0
    limits: dict[tuple[tuple[str, str], ...], int] = field(default_factory=dict)
    asked: list[tuple[str, tuple[tuple[tuple[str, str], ...], ...]]] = field(default_factory=list)
    answering: asyncio.Event = field(default_factory=asyncio.Event)
    _seen: Counter[tuple[tuple[str, str], ...]] = field(default_factory=Counter)

    @classmethod
    async def start(cls, ends: AsyncExitStack) -> Self:
        """Serve on a free port until the stack is unwound."""
        made = cls()
        made.answering.set()
        server = grpc.aio.server()
        handler = grpc.unary_unary_rpc_method_handler(
            made._should,
            request_deserializer=rls_pb2.RateLimitRequest.FromString,
            response_serializer=rls_pb2.RateLimitResponse.SerializeToString,
        )
        service, method = "envoy.service.ratelimit.v3.RateLimitService", "ShouldRateLimit"
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: handler}),))
        made.port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        ends.push_async_callback(server.stop, None)
        return made

    def begin(self, limits: dict[tuple[tuple[str, str], ...], int]) -> None:
        """Restart the counters with other limits."""
        self.limits = limits
        self.asked.clear()
        self._seen.clear()

    async def _should(self, request: rls_pb2.RateLimitRequest, _: object) -> rls_pb2.RateLimitResponse:
        messages = tuple(
            tuple((entry.key, entry.value) for entry in descriptor.entries)
            for descriptor in request.descriptors
        )
        self.asked.append((request.domain, messages))
        await self.answering.wait()
        self._seen.update(messages)
        code = rls_pb2.RateLimitResponse.Code
        over = any(self._seen[item] > self.limits.get(item, self._seen[item]) for item in messages)
        answer = rls_pb2.RateLimitResponse(overall_code=code.OVER_LIMIT if over else code.OK)
        for item in messages:
            limit = self.limits.get(item)
            left = 0 if limit is None else max(0, limit - self._seen[item])
            state = answer.statuses.add(code=code.OVER_LIMIT if over else code.OK, limit_remaining=left)
            if limit is not None:
                state.current_limit.requests_per_unit = limit
                state.current_limit.unit = rls_pb2.RateLimitResponse.RateLimit.Unit.HOUR
        return answer


@dataclass
class Collector:
    """A collector of Zipkin's spans; `paths` are the requested paths."""

    port: int = 0
    spans: list[dict[str, Any]] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)

    @classmethod
    async def start(cls, ends: AsyncExitStack) -> Self:
        """Serve on a free port until the stack is unwound."""
        made = cls()
        app = web.Application()
        app.router.add_post("/{path:.*}", made._take)
        runner = web.AppRunner(app)
        await runner.setup()
        ends.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        made.port = runner.addresses[0][1]
        return made

    async def _take(self, request: web.Request) -> web.Response:
        self.paths.add(request.path)
        self.spans += await request.json()
        return web.Response(status=202)

    async def traced(self, trace: str, count: int) -> list[dict[str, Any]]:
        """Return the spans of a trace once there are `count`; TimeoutError after 20 seconds."""
        async with asyncio.timeout(20):
            while len(result := [span for span in self.spans if span["traceId"] == trace]) < count:
                await asyncio.sleep(0.05)
        return result


@dataclass
class OtlpCollector:
    """`opentelemetry.proto.collector.trace.v1.TraceService`: records spans with their resources."""

    port: int = 0
    spans: list[tuple[dict[str, str], trace_pb2.Span]] = field(default_factory=list)

    @classmethod
    async def start(
        cls, ends: AsyncExitStack, at: int = 0, tls: grpc.ServerCredentials | None = None
    ) -> Self:
        """Serve on a port, a free one without, until the stack is unwound; in plain text without `tls`."""
        made = cls()
        server = grpc.aio.server()
        handler = grpc.unary_unary_rpc_method_handler(
            made._export,
            request_deserializer=trace_service_pb2.ExportTraceServiceRequest.FromString,
            response_serializer=trace_service_pb2.ExportTraceServiceResponse.SerializeToString,
        )
        service = "opentelemetry.proto.collector.trace.v1.TraceService"
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Export": handler}),))
        here = f"127.0.0.1:{at}"
        made.port = server.add_secure_port(here, tls) if tls else server.add_insecure_port(here)
        await server.start()
        ends.push_async_callback(server.stop, None)
        return made

    async def _export(
        self, request: trace_service_pb2.ExportTraceServiceRequest, _: object
    ) -> trace_service_pb2.ExportTraceServiceResponse:
        for resource_span in request.resource_spans:
            teller = {
                attribute.key: attribute.value.string_value for attribute in resource_span.resource.attributes
            }
            for scope in resource_span.instrumentation_library_spans:  # scope_spans, by its older name
                self.spans += [(teller, span) for span in scope.spans]
        return trace_service_pb2.ExportTraceServiceResponse()

    async def traced(self, trace: str, count: int) -> list[tuple[dict[str, str], trace_pb2.Span]]:
        """Return the spans of a trace once there are `count`; TimeoutError after 20 seconds."""
        async with asyncio.timeout(20):
            while len(result := [span for span in self.spans if span[1].trace_id.hex() == trace]) < count:
                await asyncio.sleep(0.05)
        return result


@dataclass
class LogCollector:
    """`opentelemetry.proto.collector.logs.v1.LogsService`: records log records with resource attributes."""

    port: int = 0
    records: list[tuple[dict[str, Any], logs_pb2.LogRecord]] = field(default_factory=list)

    @classmethod
    async def start(cls, ends: AsyncExitStack) -> Self:
        """Serve on a free port until the stack is unwound."""
        made = cls()
        server = grpc.aio.server()
        handler = grpc.unary_unary_rpc_method_handler(
            made._export,
            request_deserializer=logs_service_pb2.ExportLogsServiceRequest.FromString,
            response_serializer=logs_service_pb2.ExportLogsServiceResponse.SerializeToString,
        )
        service = "opentelemetry.proto.collector.logs.v1.LogsService"
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Export": handler}),))
        made.port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        ends.push_async_callback(server.stop, None)
        return made

    async def _export(
        self, request: logs_service_pb2.ExportLogsServiceRequest, _: object
    ) -> logs_service_pb2.ExportLogsServiceResponse:
        for resource_log in request.resource_logs:
            labels = pairs(resource_log.resource.attributes)
            for scope in resource_log.instrumentation_library_logs:  # scope_logs, by its older name
                self.records += [(labels, log) for log in scope.logs]
        return logs_service_pb2.ExportLogsServiceResponse()


def pairs(key_values: Iterable[common_pb2.KeyValue]) -> dict[str, Any]:
    """Return attributes in the form of JSON: mappings and texts."""
    return {key_value.key: _value(key_value.value) for key_value in key_values}


def _value(any_value: common_pb2.AnyValue) -> Any:
    return (
        pairs(any_value.kvlist_value.values) if any_value.HasField("kvlist_value") else any_value.string_value
    )
