"""Relays between a server and the store that count the writes of a root rotation, and kill at one of them."""

import asyncio
import enum
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import grpc
import grpc.aio
from aiohttp import web

from certs.authority_records.fields import AUTHORITY
from certs.report_records.fields import REPORTS
from meshwright.etcd.methods import KEEP_ALIVE, TXN, WATCH
from meshwright.records.kubernetes.store import CUSTODY
from tests.kubernetes.replicas.engines import Engine, EtcdEngine, KubernetesEngine
from tests.kubernetes.tools.faulty_proxy import by_way_of, spoiling
from tools.real_parts.keys import LOOPBACK

_STREAMS: Final = (WATCH.path, KEEP_ALIVE.path)
_WRITING: Final = ("POST", "PUT", "PATCH", "DELETE")


class Moment(enum.StrEnum):
    """The side of a write at which a server is killed."""

    BEFORE = "before"
    AFTER = "after"


@dataclass
class CountedWrites:
    """Writes of one server to the records of a root rotation: the authority, and the server's report."""

    seen: list[str] = field(default_factory=list)
    """The record of each write so far."""
    _number: int = 0
    _moment: Moment = Moment.BEFORE
    _kill: Callable[[], None] = lambda: None
    has_killed: bool = False

    def begin(self) -> None:
        """Count anew, without a kill."""
        self.seen, self._number, self.has_killed = [], 0, False

    def arm(self, number: int, moment: Moment, kill: Callable[[], None]) -> None:
        """Count anew, and call `kill` before or after the write with this number reaches the store."""
        self.begin()
        self._number, self._moment, self._kill = number, moment, kill

    def sent(self, record: str) -> bool:
        """Count a write that the server has sent; return whether the write must not reach the store."""
        self.seen.append(record)
        return self._kills(Moment.BEFORE)

    def done(self) -> bool:
        """Return whether the server must not hear that its last write is done."""
        return self._kills(Moment.AFTER)

    def _kills(self, moment: Moment) -> bool:
        if self.has_killed or (len(self.seen), moment) != (self._number, self._moment):
            return self.has_killed
        self.has_killed = True
        self._kill()
        return True


@dataclass(frozen=True)
class CountedEngine:
    """An engine whose servers reach the store by way of counting relays; all else is the engine's."""

    engine: Engine
    writes: Mapping[str, CountedWrites]
    _flags: Mapping[str, tuple[str, ...]]

    def flags(self, server: str) -> tuple[str, ...]:
        """Return the flags by which this server reaches its relay."""
        return self._flags[server]

    def __getattr__(self, name: str) -> Any:
        """Return what the engine has."""
        return getattr(self.engine, name)


@asynccontextmanager
async def counted(engine: Engine) -> AsyncIterator[CountedEngine]:
    """Run a relay for each server until the end of the block."""
    flags, writes = dict[str, tuple[str, ...]](), dict[str, CountedWrites]()
    async with AsyncExitStack() as ends:
        for server in engine.networks:
            writes[server] = counting = CountedWrites()
            match engine:
                case EtcdEngine():
                    port = await ends.enter_async_context(_etcd_relay(engine, counting))
                    url = f"http://{LOOPBACK}:{port}"
                    flags[server] = ("--set", "store=etcd", "--set", f"etcd_endpoints={url}")
                case KubernetesEngine():
                    proxy = await ends.enter_async_context(spoiling(engine.cluster, certificate="admin"))
                    proxy.spoil = partial(_spoilt, counting)
                    proxy.after = partial(_is_lost, counting)
                    ours = engine.folder / f"{server}.kubeconfig"
                    counted_by = by_way_of(ours, proxy.server, engine.folder / f"{server}.counted")
                    flags[server] = tuple(
                        str(counted_by) if flag == str(ours) else flag for flag in engine.flags(server)
                    )
                case _:
                    raise AssertionError(f"no relay for the store {engine.name}")
        yield CountedEngine(engine, writes, flags)


def _spoilt(counting: CountedWrites, request: web.Request) -> web.Response | None:
    record = _written(request)
    if record and counting.sent(record):
        return web.Response(status=503)
    return None


def _is_lost(counting: CountedWrites, request: web.Request) -> bool:
    return bool(_written(request)) and counting.done()


def _written(request: web.Request) -> str:
    """Return the record of a rotation that a request changes, or an empty text."""
    name = request.path.rpartition("/")[2]
    if request.method not in _WRITING:
        return ""
    if name == CUSTODY:
        return AUTHORITY
    return REPORTS if name.startswith(REPORTS) or request.path.endswith("/records") else ""


@asynccontextmanager
async def _etcd_relay(engine: EtcdEngine, counting: CountedWrites) -> AsyncIterator[int]:
    """Run a relay to the first member; yield its port."""
    server = grpc.aio.server()
    member = engine.members[0].endpoint
    async with grpc.aio.insecure_channel(f"{member.host}:{member.port}") as channel:
        server.add_generic_rpc_handlers((_EtcdRelay(channel, counting),))
        port = server.add_insecure_port(f"{LOOPBACK}:0")
        await server.start()
        try:
            yield port
        finally:
            await server.stop(None)


class _EtcdRelay(grpc.GenericRpcHandler):  # type: ignore[misc] # gRPC has no types here
    """Passes all calls on as bytes."""

    def __init__(self, channel: grpc.aio.Channel, counting: CountedWrites) -> None:
        self._channel, self._counting = channel, counting

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        """Return the handler of a method."""
        path = handler_call_details.method
        if path in _STREAMS:
            return grpc.stream_stream_rpc_method_handler(partial(self._stream, path))
        return grpc.unary_unary_rpc_method_handler(partial(self._call, path))

    async def _call(self, path: str, request: bytes, context: Any) -> bytes:
        record = _changed(request) if path == TXN.path else ""
        if record and self._counting.sent(record):
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the server is killed")
        call = self._channel.unary_unary(path)(request, metadata=_kept(context))
        try:
            answer: bytes = await call
        except grpc.aio.AioRpcError as error:
            await context.abort(error.code(), error.details() or "")
        if record and self._counting.done():
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the server is killed")
        return answer

    async def _stream(self, path: str, requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        call = self._channel.stream_stream(path)(metadata=_kept(context))

        async def ahead() -> None:
            async for request in requests:
                await call.write(request)
            await call.done_writing()

        passing = asyncio.create_task(ahead(), name="requests to etcd")
        try:
            async for answer in call:
                yield answer
        except grpc.aio.AioRpcError as error:
            await context.abort(error.code(), error.details() or "")
        finally:
            passing.cancel()
            call.cancel()


def _changed(request: bytes) -> str:
    """Return the record of a rotation that a transaction changes, or an empty text."""
    return next((name for name in (AUTHORITY, REPORTS) if f"/records/{name}".encode() in request), "")


def _kept(context: Any) -> tuple[tuple[str, str], ...]:
    return tuple((key, value) for key, value in context.invocation_metadata() or () if key == "hasleader")
