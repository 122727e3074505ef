"""Questions to the other servers of the mesh; implements `meshwright.admin.replicas.peers.Peers`."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final

import aiohttp

from certs.keys.replica import replica_host
from meshwright.admin.replicas.peers import PeerAnswer, PeerAnswers
from meshwright.admin.replicas.taps import LostServerError
from meshwright.admin.replicas.view import Query
from meshwright.controller.sharing.peers.tls import PeerTls
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import TrustDomain
from meshwright.records.contract import ReplicaId
from meshwright.replicas.membership import Membership

SECONDS: Final = 2.0
"""Time limit of a question in seconds, from the wait for a connection to the last byte of the answer."""

LARGEST: Final = 64 * 1024 * 1024
"""Limit of an answer in bytes; the facts of 1000 proxies take about 2 MB."""

AT_ONCE: Final = 8
"""Maximum number of questions to one server at the same time; others wait, within their time limit."""

_PIECE: Final = 64 * 1024


class _NoAnswer(Exception):
    """The other server did not answer; the message is the reason, for people."""


class PeerClient:
    """Client of the other servers, for one event loop."""

    def __init__(
        self, membership: Membership, tls: PeerTls, domain: TrustDomain, seconds: float = SECONDS
    ) -> None:
        self._membership, self._tls, self._domain, self._seconds = membership, tls, domain, seconds
        self._session: aiohttp.ClientSession | None = None
        self._turns: dict[ReplicaId, asyncio.Semaphore] = {}

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Keep connections to the other servers as long as the context lasts."""
        connector = aiohttp.TCPConnector(limit=0, limit_per_host=AT_ONCE, ttl_dns_cache=10)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:
            self._session = session
            try:
                yield
            finally:
                self._session = None

    @property
    def replica(self) -> str:
        """Return the name of this server."""
        return self._membership.replica

    def names(self) -> Sequence[str]:
        """Return the names of all servers that are here, this one included, sorted."""
        return tuple(self._membership.states)

    async def ask(self, path: str, query: Query = (), only: str | None = None) -> PeerAnswers:
        """Send a question to all other servers at once, or to one of them."""
        return await self._ask("GET", path, query, None, only)

    async def act(self, path: str, body: Mapping[str, object], only: str | None = None) -> PeerAnswers:
        """Ask all other servers to do something, or one of them."""
        return await self._ask("POST", path, (), body, only)

    async def _ask(
        self, method: str, path: str, query: Query, body: Mapping[str, object] | None, only: str | None
    ) -> PeerAnswers:
        names = self._others(only)
        results = await asyncio.gather(*(self._one(name, method, path, query, body) for name in names))
        by_name = dict(zip(names, results, strict=True))
        return PeerAnswers(
            {name: of for name, of in by_name.items() if isinstance(of, PeerAnswer)},
            {name: of for name, of in by_name.items() if isinstance(of, str)},
        )

    def _others(self, only: str | None) -> list[ReplicaId]:
        own = self._membership.replica
        return [name for name in self._membership.states if name != own and only in (None, name)]

    async def _one(
        self, name: ReplicaId, method: str, path: str, query: Query, body: Mapping[str, object] | None
    ) -> PeerAnswer | str:
        """Return the answer of one server, or the reason why there is none."""
        turns = self._turns.setdefault(name, asyncio.Semaphore(AT_ONCE))
        try:
            async with (
                asyncio.timeout(self._seconds),
                turns,
                self._request(name, method, path, query, body) as it,
            ):
                return PeerAnswer(it.status, await _content(it))
        except TimeoutError:
            return f"no answer within {self._seconds:g} s"
        except _NoAnswer as error:
            return str(error)
        except (aiohttp.ClientError, OSError) as error:
            return " ".join(str(error).split()) or type(error).__name__

    @asynccontextmanager
    async def _request(
        self, name: ReplicaId, method: str, path: str, query: Query, body: Mapping[str, object] | None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        at, session = self._address(name), self._session
        if session is None:
            raise _NoAnswer("this server is starting or stopping")
        async with session.request(
            method,
            f"https://{at}{path}",
            params=list(query),
            json=body,
            ssl=self._tls.client(),
            # The name in the certificate of exactly this server, whoever has its address by now.
            server_hostname=replica_host(name, self._domain),
            allow_redirects=False,
            headers={"Accept": "application/json"},
            timeout=aiohttp.ClientTimeout(total=None),
        ) as response:
            yield response

    def _address(self, name: ReplicaId) -> HostPort:
        state = self._membership.states.get(name)
        if state is None:
            raise _NoAnswer("its announced state cannot be read, perhaps because the version differs")
        if not state.peer_address:
            raise _NoAnswer("it does not listen for other servers yet")
        try:
            return HostPort.parse(state.peer_address)
        except ValueError:
            raise _NoAnswer(f"its announced address {state.peer_address[:80]!r} is not HOST:PORT") from None

    @asynccontextmanager
    async def follow(self, name: str, path: str, query: Query) -> AsyncIterator[AsyncIterable[bytes]]:
        """Yield the lines of a long answer of another server. Raises LostServerError."""
        try:
            async with asyncio.timeout(self._seconds) as limit:
                async with self._request(ReplicaId(name), "GET", path, query, None) as response:
                    if response.status != HTTPStatus.OK:
                        raise LostServerError(f"answered with status {response.status}")
                    limit.reschedule(None)
                    yield _lines(response)
        except TimeoutError:
            raise LostServerError(f"no answer within {self._seconds:g} s") from None
        except (_NoAnswer, aiohttp.ClientError, OSError) as error:
            raise LostServerError(" ".join(str(error).split()) or type(error).__name__) from error


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    async for line in response.content:
        yield line


async def _content(response: aiohttp.ClientResponse) -> bytes:
    pieces, size = list[bytes](), 0
    async for piece in response.content.iter_chunked(_PIECE):
        size += len(piece)
        if size > LARGEST:
            raise _NoAnswer(f"the answer is larger than {LARGEST // 2**20} MiB")
        pieces.append(piece)
    return b"".join(pieces)
