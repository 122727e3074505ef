"""One call of any method, from its admission to its end: who calls, what it costs, why it ends.

Whatever a method does, it runs in here: so each call is asked again who it is, pays for what it takes, and is
ended for the same reasons in the same way. An ended call is in no cycle: what it held is free at once,
however seldom a collector looks.
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
"""Why a call ended, and details for a log."""


Serve = Callable[["Call", Transport], Coroutine[object, object, Result]]
"""What a method does for a call that was let in; whatever it reads and writes are bytes."""


def alone(work: Serve) -> Serve:
    """Return what serves a call by this one piece of work."""

    async def serve(call: Call, transport: Transport) -> Result:
        return await call.run(work(call, transport))

    return serve


class Call:
    """One authenticated call; what it does is done by `run`, and is over when that returns.

    It is to end at `until`, on the loop's clock: whoever serves has it looked at from time to time (`check`).
    Whoever reads a long request holds `long`, which all calls of its account have: in pieces a request is
    several times its bytes. It is made for the first of them: hardly anybody sends one.
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
        """The lock of the account's one call that reads a long request."""
        return self._locks.setdefault(self.bill.account, asyncio.Lock())

    @property
    def is_over(self) -> bool:
        """Say whether it has ended, though parts of it may still run."""
        return self._ending is not None

    async def run(self, work: Coroutine[object, object, Result]) -> Result:
        """Do the call's work until it returns or raises, or the call is ended; return why it was.

        It is done by the task that asks, which is cut off where somebody else ends the call: a task of its
        own would take a kilobyte as long as the call lasts.
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
                self._worker = None  # it holds its frames, and they hold the call
        except asyncio.CancelledError:
            self.end(StreamEnd.CLIENT)
            if not self._is_cut:
                raise  # as gRPC does where the client is gone
            self._is_cut = False
        except Exception as error:  # noqa: BLE001 - each is looked at, and ours are passed on
            if not self.is_over:
                self.end_by(error)
        else:
            self.end(*ending)
        if self._is_cut:  # but the work was over by then: whatever comes next is not to be cut off
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
            del ending  # its traceback holds this frame

    def end(self, ending: StreamEnd, detail: str = "") -> None:
        """End it; the first reason given counts."""
        self._end((ending, detail))

    def fail(self, error: BaseException) -> None:
        """End it with an error of ours."""
        self._end(error)

    def _end(self, ending: Result | BaseException) -> None:
        if self._ending is None:
            self._ending = ending
            if self._worker is not None:
                self._is_cut = self._worker.cancel()

    def leave(self, ending: StreamEnd, detail: str = "") -> None:
        """End it in order, when what is due has been written: `on_leave` sees to it; at once without."""
        self.leaving = self.leaving or (ending, detail)
        if self.on_leave is not None:
            self.on_leave()
        else:
            self.end(*self.leaving)

    def recheck(self, authenticator: Authenticator) -> None:
        """Ask again who the client is; end the call if it is refused by now, or somebody else."""
        try:
            if authenticator.authenticate(self.peer) != self.node_key:
                self.end(StreamEnd.REFUSED, "identity changed")
        except StreamRefused as refused:
            self.end(StreamEnd.REFUSED, refused.reason)
        except Exception as error:  # noqa: BLE001 - a hook that fails ends this call, not the round
            self.fail(error)

    def check(self, limits: Limits, now: float) -> None:
        """End it if a write takes too long at `now` (the loop's clock): cancelled, it has spoilt the stream.

        Have it end in order at its age. Whoever serves asks this of all its calls from time to time: a timer
        for each write costs more than the rest of it, and one for each call stays as long as that does.
        """
        if now >= self._until and self.leaving is None:
            self.leave(StreamEnd.AGED)
        since, longest = self._writing_since, limits.write_seconds
        if self.outgoing is not None:
            since = self.outgoing.since
        if since is not None and now - since > longest:
            self.end(StreamEnd.SLOW, f"a write took over {longest} s")

    async def write(self, transport: Transport, message: bytes) -> None:
        """Write a message, and be watched at it."""
        self._writing_since = self._loop.time()
        await transport.write(message)
        self._writing_since = None

    def spent(self, began: float) -> None:
        """Charge the account for the event loop's time since `began`, a moment of `time.thread_time`."""
        self.bill.account.share.spend(time.thread_time() - began, self._loop.time())

    @property
    def must_rest(self) -> bool:
        """Say whether the account had no time of the event loop left when it was last charged."""
        return self.bill.account.share.is_spent

    async def rest(self) -> None:
        """Wait until the account has time of the event loop, if it has none.

        Of calls that wake together the first may spend all there is: so each asks again.
        """
        while wait := self.bill.account.share.wait(self._loop.time()):  # noqa: ASYNC110 - it is a clock
            await asyncio.sleep(wait)

    async def pause(self) -> None:
        """Let others have their turn in the midst of long work, and rest if that is due."""
        await asyncio.sleep(0)
        await self.rest()

    def end_by(self, error: Exception) -> None:
        """End it as an error demands that a part of it raised; raise one of ours that nobody would see."""
        match error:
            case StreamRefused():
                self.end(StreamEnd.REFUSED, error.reason)
            case Excess():
                # Without its traceback: what the frames hold would be kept, in a cycle.
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
