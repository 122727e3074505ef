"""HTTP to an API server: kept-alive connections, authentication, and streams."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from functools import partial
from typing import Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from yarl import URL

from meshwright.kube.call import JSON, Call
from meshwright.kube.connection.connection import Connection, RequestParameters
from meshwright.kube.errors import ApiUnreachable, KubeError, Reason
from meshwright.kube.responses import body, connection_cause, demand_json, refusal
from meshwright.kube.streams import Lines

ANSWER_SECONDS: Final = 75.0
"""Maximum seconds until an answer. The API server itself gives up after 60 s."""

CONNECT_SECONDS: Final = 15.0

Batch = list[bytes]
"""Lines that arrived together."""

Batches = AsyncIterator[Batch]


_KEEPALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
)
"""Socket options with which the kernel ends a connection 25 s after the last packet of a vanished peer."""


class _Handler(ResponseHandler):
    """A connection that notices a vanished peer, and is aborted without aiohttp's orderly shutdown of TLS.

    An orderly shutdown waits for the peer, for 30 s if the peer is dead. This wait has no use at the end of a
    session: neither for a watch, nor for a request given up before its answer, nor for an idle connection.

    A watch may be silent for a minute. If its machine has vanished, or a firewall has forgotten the
    connection, the changes of other servers would be unheard for longer than that.
    """

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the connection."""
        super().connection_made(transport)
        if (opened := transport.get_extra_info("socket")) is not None:
            for level, option, value in _KEEPALIVE:
                opened.setsockopt(level, option, value)

    def close(self) -> None:
        """Abort the connection at once."""
        self.abort()


class _Connector(aiohttp.TCPConnector):
    """Connector of aiohttp with connections that are aborted at once when closed."""

    def __init__(self, *, limit: int) -> None:
        super().__init__(limit=limit)
        handler: Callable[..., ResponseHandler] = _Handler
        self._factory = partial(handler, loop=self._loop)


class Transport:
    """Authenticated HTTP requests to an API server over kept-alive connections."""

    def __init__(self, connection: Connection, agent: str, answer: float) -> None:
        self._connection = connection
        self._agent = agent
        self._answer = answer
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Create the HTTP session, on the event loop of the requests."""
        # No limit on connections: watches keep theirs, so a limit could block further watches for ever.
        self._session = aiohttp.ClientSession(
            connector=_Connector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            # No compression, because it costs more CPU on both sides than it saves on the network.
            headers={"User-Agent": self._agent, "Accept-Encoding": "identity", "Accept": JSON},
            auto_decompress=False,
        )

    async def close(self) -> None:
        """Close all connections to the API server."""
        if self._session is not None:
            await self._session.close()

    async def answered(
        self, call: Call, path: str = "", headers: Mapping[str, str] | None = None, *, is_json: bool = True
    ) -> bytes:
        """Return the body of an answer, at `path` if given, otherwise at the call's path; raise KubeError."""
        waiting = aiohttp.ClientTimeout(total=self._answer, sock_connect=CONNECT_SECONDS)
        try:
            async with self._send_request(call, path or call.path, headers or {}, waiting) as answer:
                if is_json:
                    demand_json(answer, call)
                return await body(answer, call)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:  # while the answer was read
            raise self._unreachable(call, error) from error

    @contextlib.asynccontextmanager
    async def parts(self, call: Call) -> AsyncIterator[AsyncIterator[bytes]]:
        """Send a request, and open the body of the answer as a stream of bytes; raise KubeError."""
        waiting = aiohttp.ClientTimeout(total=self._answer, sock_connect=CONNECT_SECONDS)
        async with self._send_request(call, call.path, {}, waiting) as answer:
            demand_json(answer, call)
            async with contextlib.aclosing(self._parts(call, answer)) as parts:
                yield parts

    async def _parts(self, call: Call, answer: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
        try:
            async for part in answer.content.iter_any():
                yield part
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._unreachable(call, error) from error

    @contextlib.asynccontextmanager
    async def lines(self, call: Call, silence: float) -> AsyncIterator[Batches]:
        """Send the request of a watch, and open the endless answer as batches of lines; see Api.watch."""
        waiting = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=silence)
        async with self._send_request(call, call.path, {}, waiting) as answer:
            demand_json(answer, call)
            async with contextlib.aclosing(_lines(call, answer, silence)) as lines:
                yield lines

    @contextlib.asynccontextmanager
    async def _send_request(
        self, call: Call, path: str, headers: Mapping[str, str], waiting: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request and yield its successful answer; after a 401 retry once with newer credentials."""
        ready = await self._connection.ready()
        answer = await self._sent(call, path, headers, ready, waiting)
        try:
            if answer.status == 401 and await self._connection.refused(ready):
                answer.close()
                answer = await self._sent(call, path, headers, await self._connection.ready(), waiting)
            if answer.status >= 300:
                raise await refusal(answer, call)
            yield answer
        finally:
            answer.close()

    async def _sent(
        self,
        call: Call,
        path: str,
        headers: Mapping[str, str],
        ready: RequestParameters,
        waiting: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("an Api can only be used within its `async with` block")
        sent = [*headers.items(), *ready.headers]
        if call.body is not None:
            sent.append(("Content-Type", call.content))
        try:
            return await self._session.request(
                call.method,
                URL(self._connection.server + path, encoded=True),
                data=None if call.body is None else json.dumps(call.body).encode(),
                headers=sent,
                ssl=True if ready.tls is None else ready.tls,
                proxy=ready.proxy or None,
                server_hostname=ready.server_name or None,
                timeout=waiting,
                allow_redirects=False,
            )
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise self._unreachable(call, error) from error

    def _unreachable(self, call: Call, error: Exception) -> KubeError:
        reason = Reason.TIMEOUT if isinstance(error, TimeoutError) else Reason.UNREACHABLE
        return ApiUnreachable(
            f"cannot {call.verb} {call.object_text} at {self._connection.server}: {connection_cause(error)}",
            reason,
        )


async def _lines(call: Call, answer: aiohttp.ClientResponse, silence: float) -> AsyncGenerator[Batch, None]:
    lines = Lines()
    while True:
        try:
            data = await answer.content.readany()
        except TimeoutError as error:
            quiet = f"the API server was silent on the watch of {call.object_text} for {silence:g} s"
            raise ApiUnreachable(quiet, Reason.INACTIVE) from error
        except (aiohttp.ClientError, OSError) as error:
            raise ApiUnreachable(
                f"the connection of the watch of {call.object_text} broke: {connection_cause(error)}",
                Reason.BROKEN,
            ) from error
        if not data:
            if lines.begun:
                raise ApiUnreachable(
                    f"the watch of {call.object_text} ended in the middle of an event", Reason.BROKEN
                )
            return
        complete = lines.complete(data)
        del data  # free it, because the next bytes may arrive hours later
        if complete:
            yield complete
        del complete
