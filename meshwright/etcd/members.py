"""Channels to the members of an etcd, one for each, and the choice of the next member to ask."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeVar, cast

import grpc
import grpc.aio
import structlog

from meshwright.etcd.access import Access, Endpoint
from meshwright.etcd.errors import AccessError, EtcdError, UnavailableError, failures_as_errors
from meshwright.etcd.methods import STATUS, Method, Request, Response
from meshwright.tls.contents import TlsContents
from meshwright.tls.grpc_channel import channel_credentials
from protos.meshwright.etcd.v3 import etcd_pb2 as pb

Metadata = tuple[tuple[str, str], ...]

CONNECT: Final = 1.0
"""Seconds for a connection to one member."""

_PAUSE: Final = 0.05
"""Seconds between two rounds in which no member could be reached."""
_SHORTEST_LOOK, _LONGEST_LOOK = 0.001, 0.02
_EXPLANATION: Final = 0.2
"""Seconds for a call whose error has gRPC's reason for a failed connection."""

_OPTIONS: Final = (
    ("grpc.enable_http_proxy", 0),  # otherwise the proxy of the environment (https_proxy) would be used
    ("grpc.max_receive_message_length", -1),  # a page of large records; the store is trusted
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", int(CONNECT * 1000)),
    ("grpc.max_reconnect_backoff_ms", 2000),
    # etcd permits a ping every 5 s while a call is open.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.use_local_subchannel_pool", 1),  # a failure of one client's connection is not another's
)

_log = structlog.get_logger("etcd")


_Sent = TypeVar("_Sent", contravariant=True)
_Received = TypeVar("_Received", covariant=True)


class Stream(Protocol[_Sent, _Received]):
    """A call whose directions are both streams. Cancelling `read` or `write` cancels the call."""

    async def write(self, message: _Sent, /) -> None:
        """Send a message."""

    async def read(self) -> _Received:
        """Return the next message, or grpc.aio.EOF."""

    def cancel(self) -> bool:
        """End the call."""


class Member:
    """One member of an etcd. The channel begins with the first use, because it belongs to that event loop."""

    def __init__(self, endpoint: Endpoint, tls: TlsContents) -> None:
        self.endpoint = endpoint
        self._tls = tls
        self._channel: grpc.aio.Channel | None = None
        self._calls: dict[str, object] = {}

    @property
    def channel(self) -> grpc.aio.Channel:
        """Return the channel; call on the event loop of the client."""
        if self._channel is None:
            target = self.endpoint.target
            self._channel = (
                grpc.aio.secure_channel(target, channel_credentials(self._tls), options=_OPTIONS)
                if self.endpoint.tls
                else grpc.aio.insecure_channel(target, options=_OPTIONS)
            )
        return self._channel

    async def close(self) -> None:
        """Close the channel, if there is one, which ends its calls."""
        if self._channel is not None:
            await self._channel.close()

    async def call(
        self, method: Method[Request, Response], request: Request, seconds: float, metadata: Metadata = ()
    ) -> Response:
        """Call a method; raise EtcdError."""
        call = self._calls.get(method.path)
        if call is None:
            call = self._calls[method.path] = self.channel.unary_unary(
                method.path, method.request.SerializeToString, method.response.FromString
            )
        made = cast("Callable[..., Awaitable[Response]]", call)
        with failures_as_errors(method.name, str(self.endpoint)):
            return await made(request, timeout=seconds, metadata=metadata)

    def stream(
        self, method: Method[Request, Response], metadata: Metadata, seconds: float | None = None
    ) -> Stream[Request, Response]:
        """Begin a call with two streams, which the caller cancels at the end."""
        call = self.channel.stream_stream(
            method.path, method.request.SerializeToString, method.response.FromString
        )
        return cast("Stream[Request, Response]", call(metadata=metadata, timeout=seconds))

    async def is_connected(self, seconds: float) -> bool:
        """Return whether the channel is connected, or becomes connected within the time."""
        until, pause = asyncio.get_running_loop().time() + seconds, _SHORTEST_LOOK
        while (state := self.channel.get_state(try_to_connect=True)) is not grpc.ChannelConnectivity.READY:
            late = asyncio.get_running_loop().time() >= until
            if late or state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
                return False
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_LOOK)
        return True

    async def explanation(self) -> str:
        """Return a sentence with the reason for a failed connection."""
        try:
            await self.call(STATUS, pb.StatusRequest(), _EXPLANATION)
        except EtcdError as error:
            return str(error)
        return f"etcd at {self.endpoint} was not connected in time"


class Members:
    """The members of an etcd. Calls go to the present member, and after a failure to the next one.

    After a failure the TLS files are read again, and changed files replace all channels. A renewed client
    certificate therefore needs no restart.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self._tls = access.tls_contents()
        self._members = [Member(endpoint, self._tls) for endpoint in access.endpoints]
        self._present = 0
        self._complaint = ""
        self._closing: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        """Make the channels on the running event loop, without a connection."""
        for member in self._members:
            _ = member.channel

    @property
    def are_several(self) -> bool:
        """Return whether there is a next member."""
        return len(self._members) > 1

    async def connected(self, until: float) -> Member:
        """Return the first connected member from the present one on; raise UnavailableError at `until`.

        `until` is a time of the event loop. Without a connection a call certainly has no effect, so the
        caller may go on to the next member.
        """
        loop = asyncio.get_running_loop()
        while True:
            for _ in self._members:
                member = self._members[self._present]
                if await member.is_connected(min(CONNECT, until - loop.time())):
                    return member
                self.pass_over(member)
            if loop.time() + _PAUSE >= until:
                raise UnavailableError(await self._members[self._present].explanation(), is_undone=True)
            await asyncio.sleep(_PAUSE)

    def pass_over(self, member: Member) -> None:
        """Use the next member from now on, if `member` is still the one in use."""
        if member is not self._members[self._present]:
            return
        self._renew_tls()
        self._present = (self._present + 1) % len(self._members)

    def _renew_tls(self) -> None:
        if not any(item.endpoint.tls for item in self._members):
            return
        try:
            tls = self._access.tls_contents(self._tls)
        except AccessError as error:
            if str(error) != self._complaint:  # one warning, although there are many attempts
                _log.warning("TLS files cannot be used, the earlier ones stay in use", error=str(error))
            self._complaint = str(error)
            return
        self._complaint = ""
        if tls == self._tls:
            return
        self._tls = tls
        self._closing |= {asyncio.create_task(item.close()) for item in self._members}
        self._members = [Member(item.endpoint, tls) for item in self._members]

    async def close(self) -> None:
        """Close all channels, which ends their calls."""
        await asyncio.gather(*self._closing, *(item.close() for item in self._members))
