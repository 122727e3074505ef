"""Client of an etcd: single calls with time limits, at one member after another until one answers.

A call that only reads, or may be repeated, is sent again to the next member until the time limit. A compared
change is sent once, because a lost answer leaves the outcome unknown. Only a call without an effect goes to
the next member: for example, there was no connection, or the member had no leader.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Self, TypeVar

from meshwright.etcd.access import Access
from meshwright.etcd.errors import TokenError, UnavailableError, failures_as_errors
from meshwright.etcd.members import Member, Members, Metadata
from meshwright.etcd.methods import (
    AUTHENTICATE,
    GRANT,
    KEEP_ALIVE,
    PUT,
    RANGE,
    REVOKE,
    TXN,
    WATCH,
    Method,
    Request,
    Response,
)
from meshwright.etcd.values import NO_LEASE, KeyValue, LeaseId, Page, Position, Span
from meshwright.etcd.watch import Watch
from protos.meshwright.etcd.v3 import etcd_pb2 as pb

T = TypeVar("T")

_HAS_LEADER: Final = (("hasleader", "true"),)
"""Metadata with which a member without a leader refuses a call at once, and ends a watch."""

_PAUSE: Final = 0.05
"""Seconds between two attempts of one call."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Time limits of calls in seconds, for all attempts together.

    The first of several members gets half of the time of a read, so a store that takes two seconds for each
    answer is slow, and not away. After `quiet` without a response a watch asks for progress, and after
    `answer` more the watch is given up.
    """

    read: float = 5.0
    write: float = 5.0
    quiet: float = 10.0
    answer: float = 5.0


LIMITS: Final = Limits()


@dataclass(frozen=True, slots=True)
class Swap:
    """Outcome of a compared change: done at a revision, or not, with the present key."""

    revision: int
    is_done: bool
    current: KeyValue | None = None


class Client:
    """Client of an etcd, for one event loop: a context manager, or closed by the caller.

    It may be made outside of the event loop. Raises AccessError for a missing file.
    """

    def __init__(self, access: Access, limits: Limits = LIMITS) -> None:
        self.limits = limits
        self._access = access
        self._members = Members(access)
        self._token = ""
        self._authenticates = asyncio.Lock()

    async def __aenter__(self) -> Self:
        self._members.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End all calls and connections."""
        await self._members.close()

    async def get(self, key: bytes, revision: int = 0) -> KeyValue | None:
        """Return the present state of a key, never an older one, or the state at a revision; None for no key.

        Raises RevisionGoneError if the revision was compacted, or is still to come.
        """
        response = await self._read(RANGE, pb.RangeRequest(key=key, revision=revision))
        return KeyValue.of(response.kvs[0]) if response.kvs else None

    async def revision(self, key: bytes) -> int:
        """Return the newest revision of the store, by a read of a key that need not exist."""
        return (await self._read(RANGE, pb.RangeRequest(key=key))).header.revision

    async def page(self, span: Span, revision: int, limit: int) -> Page:
        """Return the first `limit` keys of a span in their order, at a revision; 0 for the present one.

        Raises RevisionGoneError if the revision was compacted.
        """
        request = pb.RangeRequest(key=span.start, range_end=span.end, revision=revision, limit=limit)
        response = await self._read(RANGE, request)
        items = tuple(map(KeyValue.of, response.kvs))
        return Page(items, Position.of(response.header), response.more)

    async def put(self, key: bytes, value: bytes, lease: LeaseId) -> None:
        """Write a key with a lease, without a comparison; raise LeaseNotFoundError."""
        await self._read(PUT, pb.PutRequest(key=key, value=value, lease=lease))

    async def swap(self, key: bytes, value: bytes, modified: int, lease: LeaseId = NO_LEASE) -> Swap:
        """Write a key whose last change was at revision `modified`, 0 for a missing key."""
        write = pb.RequestOp(request_put=pb.PutRequest(key=key, value=value, lease=lease))
        return await self._compared(key, modified, write)

    async def delete(self, key: bytes, modified: int) -> Swap:
        """Delete a key whose last change was at revision `modified`."""
        removal = pb.RequestOp(request_delete_range=pb.DeleteRangeRequest(key=key))
        return await self._compared(key, modified, removal)

    async def _compared(self, key: bytes, modified: int, change: pb.RequestOp) -> Swap:
        same = pb.Compare(target=pb.Compare.MOD, key=key, mod_revision=modified)
        look = pb.RequestOp(request_range=pb.RangeRequest(key=key))
        request = pb.TxnRequest(compare=[same], success=[change], failure=[look])
        response = await self._attempts(
            lambda member, left, words: member.call(TXN, request, left, words),
            self.limits.write,
            may_repeat=False,
        )
        if response.succeeded:
            return Swap(response.header.revision, is_done=True)
        found = response.responses[0].response_range.kvs
        return Swap(response.header.revision, is_done=False, current=KeyValue.of(found[0]) if found else None)

    async def grant(self, seconds: int) -> LeaseId:
        """Return a new lease, which ends after the seconds unless the lease is renewed."""
        response = await self._read(GRANT, pb.LeaseGrantRequest(TTL=seconds))
        return LeaseId(response.ID)

    async def renew(self, lease: LeaseId) -> bool:
        """Renew a lease for the whole duration; return False for an ended lease."""

        async def once(member: Member, left: float, words: Metadata) -> pb.LeaseKeepAliveResponse:
            call = member.stream(KEEP_ALIVE, words, left)
            try:
                with failures_as_errors(KEEP_ALIVE.name, str(member.endpoint)):
                    await call.write(pb.LeaseKeepAliveRequest(ID=lease))
                    response = await call.read()
            finally:
                call.cancel()
            if not isinstance(response, pb.LeaseKeepAliveResponse):
                raise UnavailableError(f"etcd at {member.endpoint} has ended the call")
            return response

        return (await self._attempts(once, self.limits.read, may_repeat=True)).TTL > 0

    async def revoke(self, lease: LeaseId) -> None:
        """End a lease, and delete all keys with the lease; raise LeaseNotFoundError for an ended one."""
        await self._read(REVOKE, pb.LeaseRevokeRequest(ID=lease))

    @asynccontextmanager
    async def watch(self, span: Span, revision: int) -> AsyncIterator[Watch]:
        """Watch a span from a revision on, at one member, until the end of the block.

        Raises RevisionGoneError for a compacted revision, and UnavailableError where the watch breaks; the
        next watch is then at another member.
        """
        loop = asyncio.get_running_loop()
        member = await self._members.connected(loop.time() + self.limits.read)
        words = await self._metadata(member, self.limits.read)
        call = member.stream(WATCH, words)
        watch = Watch(call, str(member.endpoint), self.limits.quiet, self.limits.answer)
        try:
            await watch.begin(span, revision)
            yield watch
        except TokenError:
            self._forget_token(words)
            raise
        except UnavailableError:
            self._members.pass_over(member)
            raise
        finally:
            call.cancel()

    async def _read(self, method: Method[Request, Response], request: Request) -> Response:
        """Call a method whose repetition does no harm."""
        return await self._attempts(
            lambda member, left, words: member.call(method, request, left, words),
            self.limits.read,
            may_repeat=True,
        )

    async def _attempts(
        self,
        attempt: Callable[[Member, float, Metadata], Awaitable[T]],
        seconds: float,
        *,
        may_repeat: bool,
    ) -> T:
        """Make attempts at one member after another, until one succeeds or the time is over."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while True:
            member = await self._members.connected(until)
            left = max(until - loop.time(), 0.0)
            if may_repeat and self._members.are_several:
                left /= 2  # a silent member leaves time for the next one
            try:
                return await self._authenticated(member, attempt, left)
            except UnavailableError as error:
                self._members.pass_over(member)
                if not (may_repeat or error.is_undone) or loop.time() + _PAUSE >= until:
                    raise
            await asyncio.sleep(_PAUSE)

    async def _authenticated(
        self, member: Member, attempt: Callable[[Member, float, Metadata], Awaitable[T]], seconds: float
    ) -> T:
        """Make one attempt, and a second one with a new token if the store no longer knows the token."""
        until = asyncio.get_running_loop().time() + seconds
        words = await self._metadata(member, seconds)
        try:
            return await attempt(member, seconds, words)
        except TokenError:
            if self._access.user_file is None:
                raise
            self._forget_token(words)
        left = max(until - asyncio.get_running_loop().time(), 0.0)
        return await attempt(member, left, await self._metadata(member, left))

    async def _metadata(self, member: Member, seconds: float) -> Metadata:
        """Return the metadata of a call, with the token of the user if there is one."""
        if self._access.user_file is None:
            return _HAS_LEADER
        async with self._authenticates:  # the store computes a tenth of a second for each
            if not self._token and (user := self._access.user()) is not None:
                request = pb.AuthenticateRequest(name=user.name, password=user.password)
                try:
                    self._token = (await member.call(AUTHENTICATE, request, seconds)).token
                except UnavailableError as error:
                    raise UnavailableError(str(error), is_undone=True) from None
        return (*_HAS_LEADER, ("token", self._token))

    def _forget_token(self, words: Metadata) -> None:
        """Forget the token of a refused call, unless another call has a new token already."""
        if ("token", self._token) in words:
            self._token = ""
