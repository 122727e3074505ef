"""One call of any method, from admission to end: the client, the cost, the reason for the end.

Every method runs inside a Call. Therefore each call is authenticated again from time to time, pays for the
cost, and ends for the same reasons in the same way. An ended call is free of reference cycles, so the memory
is freed at once, without waiting for the garbage collector.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Coroutine, MutableMapping

from xds.budget import Account, Bill, Excess
from xds.cache import NodeKey
from xds.hooks import Authenticator, Peer, StreamEnd, StreamRefused
from xds.limits import Limits
from xds.protocol.wire import WireError
from xds.server.streams.message_writer import MessageWriter
from xds.transport import ClientDisconnected, Transport

Result = tuple[StreamEnd, str]
"""The reason for the end of a call, and details for the log."""


Serve = Callable[["Call", Transport], Coroutine[object, object, Result]]
"""The work of a method for an admitted call, reading and writing bytes."""


def alone(work: Serve) -> Serve:
    """Return a Serve that runs one coroutine in the call."""

    async def serve(call: Call, transport: Transport) -> Result:
        return await call.run(work(call, transport))

    return serve


class Call:
    """One authenticated call. `run` does the work, and returns after the end of the call.

    `until` is the time of its scheduled end, on the loop's clock; the owner must call `check` from time to
    time. A reader of a long request must hold the lock `long`, which all calls of an account share, because a
    request being parsed takes several times its size. The lock is created when first needed, since long
    requests are rare.
    """

    __slots__ = (
        *("_ending", "_is_cut", "_locks", "_loop", "_until", "_worker", "_writing_since", "bill", "excess"),
        *("leaving", "node_key", "number", "on_leave", "outgoing", "peer"),
        "__weakref__",
    )

    def __init__(
        self,
        number: int,
        node_key: NodeKey,
        peer: Peer,
        account: Account,
        locks: MutableMapping[Account, asyncio.Lock],
        until: float = math.inf,
    ) -> None:
        self.number = number
        self.node_key = node_key
        self.peer = peer
        self.bill = Bill(account)
        self._locks = locks
        self._until = until
        self.excess: Excess | None = None
        self.leaving: Result | None = None
        self.on_leave: Callable[[], None] | None = None
        self.outgoing: MessageWriter | None = None
        self._loop = asyncio.get_running_loop()
        self._ending: Result | BaseException | None = None
        self._worker: asyncio.Task[object] | None = None
        self._is_cut = False
        self._writing_since: float | None = None

    @property
    def long(self) -> asyncio.Lock:
        """Return the lock that allows one call of the account at a time to read a long request."""
        return self._locks.setdefault(self.bill.account, asyncio.Lock())

    @property
    def is_over(self) -> bool:
        """Return whether the call has ended, although parts of it may still run."""
        return self._ending is not None

    async def run(self, work: Coroutine[object, object, Result]) -> Result:
        """Run the work until it returns, raises, or the call is ended; return the reason.

        The work runs in the caller's task, which is cancelled if something else ends the call. A task of its
        own would take 1 kB for the life of the call.
        """
        try:
            if self.is_over:
                work.close()
            else:
                await self._work(work)
        finally:
            outgoing, self.outgoing, self.on_leave = self.outgoing, None, None
            if outgoing is not None:
                outgoing.close()
        return self._result()

    async def _work(self, work: Coroutine[object, object, Result]) -> None:
        worker = self._worker = asyncio.current_task()
        try:
            try:
                ending = await work
            finally:
                self._worker = None  # breaks a cycle: the task holds frames, and these hold the call
        except asyncio.CancelledError:
            self.end(StreamEnd.CLIENT)
            if not self._is_cut:
                raise  # gRPC cancels the handler when the client is gone
            self._is_cut = False
        except Exception as error:  # noqa: BLE001 - each is looked at, and ours are passed on
            if not self.is_over:
                self.end_by(error)
        else:
            self.end(*ending)
        if self._is_cut:  # the cancellation arrived after the work: consume it, so that it hits nothing else
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        if worker is not None and worker.cancelling():
            worker.uncancel()

    def _result(self) -> Result:
        ending = self._ending
        if not isinstance(ending, BaseException):
            assert ending is not None  # noqa: S101 - it is over
            return ending
        self._ending = (StreamEnd.FAILED, "an error of ours")
        try:
            raise ending
        finally:
            del ending  # breaks a cycle: the traceback holds this frame

    def end(self, ending: StreamEnd, detail: str = "") -> None:
        """End the call for a reason. The first reason counts."""
        self._end((ending, detail))

    def fail(self, error: BaseException) -> None:
        """End the call with an internal error."""
        self._end(error)

    def _end(self, ending: Result | BaseException) -> None:
        if self._ending is None:
            self._ending = ending
            if self._worker is not None:
                self._is_cut = self._worker.cancel()

    def leave(self, ending: StreamEnd, detail: str = "") -> None:
        """End the call after pending messages are written (`on_leave`), or at once if `on_leave` is None."""
        self.leaving = self.leaving or (ending, detail)
        if self.on_leave is not None:
            self.on_leave()
        else:
            self.end(*self.leaving)

    def recheck(self, authenticator: Authenticator) -> None:
        """Authenticate the client again; end the call if it is refused now, or is another node."""
        try:
            if authenticator.authenticate(self.peer) != self.node_key:
                self.end(StreamEnd.REFUSED, "identity changed")
        except StreamRefused as refused:
            self.end(StreamEnd.REFUSED, refused.reason)
        except Exception as error:  # noqa: BLE001 - a hook that fails ends this call, not the round
            self.fail(error)

    def check(self, limits: Limits, now: float) -> None:
        """End the call if a write takes too long at `now` (the loop's clock), or at its maximum age.

        A too slow write cannot be continued after a cancellation, so the stream is lost. The owner calls this
        method for all calls from time to time, because a timer for each write would cost more than the write
        itself.
        """
        if now >= self._until and self.leaving is None:
            self.leave(StreamEnd.AGED)
        since, longest = self._writing_since, limits.write_seconds
        if self.outgoing is not None:
            since = self.outgoing.since
        if since is not None and now - since > longest:
            self.end(StreamEnd.SLOW, f"a write took over {longest} s")

    async def write(self, transport: Transport, message: bytes) -> None:
        """Write a message to the client; `check` ends the call if the write takes too long."""
        self._writing_since = self._loop.time()
        await transport.write(message)
        self._writing_since = None

    def spent(self, began: float) -> None:
        """Charge the account for time on the event loop since `began`, a value of `time.thread_time`."""
        self.bill.account.share.spend(time.thread_time() - began, self._loop.time())

    @property
    def must_rest(self) -> bool:
        """Return whether the account's share of the event loop was used up after the last charge."""
        return self.bill.account.share.is_spent

    async def rest(self) -> None:
        """Wait until the account has time on the event loop.

        Several calls may wake together, and the first may use up the time, so each checks again.
        """
        while wait := self.bill.account.share.wait(self._loop.time()):  # noqa: ASYNC110 - it is a clock
            await asyncio.sleep(wait)

    async def pause(self) -> None:
        """Give other tasks a turn during long work, and rest if the account has no time left."""
        await asyncio.sleep(0)
        await self.rest()

    def end_by(self, error: Exception) -> None:
        """End the call for an exception in one of its parts.

        Re-raise an internal error that would be lost otherwise.
        """
        match error:
            case StreamRefused():
                self.end(StreamEnd.REFUSED, error.reason)
            case Excess():
                # Without its traceback, which would keep the frames and all they hold alive in a cycle.
                self.excess = self.excess or error.with_traceback(None)
                self.end(StreamEnd.TOO_LARGE, str(error))
            case WireError():
                self.end(StreamEnd.INVALID, str(error))
            case ClientDisconnected():
                self.end(StreamEnd.CLIENT)
            case _ if self.is_over:
                raise error
            case _:
                self.fail(error)
