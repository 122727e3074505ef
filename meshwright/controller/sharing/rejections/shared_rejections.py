"""Verdicts on rejected policy that several servers share, in the records of the proxies."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from functools import partial
from typing import Final

import structlog

from catalog.policy.units import UnitId
from certs.shared_records.domains import PROXIES, key_of_proxy
from meshwright.controller.sharing.rejections.agreement import Agreement, VerdictChange
from meshwright.controller.sharing.rejections.feed import RejectionFeed, read_rejections
from meshwright.controller.sharing.store.listed_records import ListedRecords
from meshwright.controller.sharing.store.server_loop import ServerLoop
from meshwright.controller.state_files import PersistentValue
from meshwright.delivery.quarantine.verdict_fields import with_verdicts
from meshwright.delivery.quarantine.verdicts import Verdict
from meshwright.mesh.identity import ProxyName
from meshwright.records.content import UnreadableContentError
from meshwright.records.contract import RecordsError, ReplicaId, TooLargeError
from meshwright.records.threads import ThreadCalls
from meshwright.records.update import Writer, update
from xds.cache import NodeKey

LOOK_SECONDS: Final = 5.0
"""Seconds until verdicts are compared with the records again, also after a failed write."""

AT_ONCE: Final = 16
"""Number of records that are written at the same time."""

Heard = Callable[[NodeKey, tuple[Verdict, ...], frozenset[UnitId]], None]
"""Receiver of verdicts on a proxy that other servers have found, and of units whose verdicts have ended."""

_log = structlog.get_logger("controller.sharing.rejections")


class SharedRejections:
    """The verdicts of all servers, as `PersistentValue`.

    Make this on the server's event loop, before the store is followed.

    While the store is away, the verdicts of this server are in force here, and in `file`, so that a restart
    does not lose them. They are written when the store is back. `file` has no others: a verdict that another
    server has ended would otherwise come back with a restart.
    """

    def __init__(
        self,
        store: ListedRecords,
        replica: ReplicaId,
        loop: asyncio.AbstractEventLoop,
        file: PersistentValue[tuple[Verdict, ...]],
        server_loop: ServerLoop,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        """Listen to the records of `store`, whose event loop is `loop`."""
        self._store, self._writer, self._calls = store, Writer(replica), ThreadCalls(loop)
        self._file, self._look_seconds = file, look_seconds
        self._server_loop = server_loop
        self._heard, self._changed = asyncio.Event(), asyncio.Event()
        self._feed = RejectionFeed(partial(server_loop.call, self._heard.set))
        self._agreement = Agreement()
        self._saved: tuple[Verdict, ...] = ()
        self._error, self._refused = "", dict[NodeKey, str]()
        store.listen(PROXIES, self._feed.hear)

    def load(self) -> tuple[Verdict, ...]:
        """Return all verdicts at the start; call this on the server's event loop after the first lists."""
        for stored in self._feed.take():
            self._agreement.hear(stored)
        self._saved = self._file.load()
        self._agreement.add_unwritten(self._saved)
        return (*self._agreement.verdicts(), *self._agreement.unwritten())

    def keep(self, value: tuple[Verdict, ...]) -> None:
        """Have the verdicts of this server compared with the records. May be called from any thread."""
        del value  # older than those that are read when they are compared
        self._server_loop.call(self._changed.set)

    def works(
        self, heard: Heard, own: Callable[[], tuple[Verdict, ...]], serves: Callable[[NodeKey], bool]
    ) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield the names and coroutines of the tasks for the server's event loop.

        `own` returns the verdicts on the proxies of this server, `serves` whether a proxy is one of these.
        """
        yield "rejections found by other servers", self._hearing(heard)
        yield "rejections for other servers", self._writing(own, serves)

    async def _hearing(self, heard: Heard) -> None:
        while True:
            for stored in self._feed.take():
                change = self._agreement.hear(stored)
                if change:
                    heard(change.node, change.found, change.ended)
                self._changed.set()  # this server may have found more meanwhile
            await self._heard.wait()
            self._heard.clear()

    async def _writing(
        self, own: Callable[[], tuple[Verdict, ...]], serves: Callable[[NodeKey], bool]
    ) -> None:
        while True:
            self._changed.clear()
            changes = self._agreement.differences(own(), serves)
            if self._error:  # the next write may take as long as the store's time limit
                await self._save()
            self._note(await self._write(changes))
            await self._save()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._look_seconds):
                    await self._changed.wait()

    async def _write(self, changes: tuple[VerdictChange, ...]) -> str:
        """Write changes; return the error because of which some are not written, or an empty text."""
        rest, errors = iter(changes), list[str]()

        async def work() -> None:
            for change in rest:
                if errors:
                    return
                try:
                    await self._write_one(change)
                except (UnreadableContentError, TooLargeError) as error:
                    self._leave_out(change, str(error))
                except RecordsError as error:
                    errors.append(str(error))

        await asyncio.gather(*(work() for _ in range(min(AT_ONCE, len(changes)))))
        return errors[0] if errors else ""

    async def _write_one(self, change: VerdictChange) -> None:
        key = key_of_proxy(ProxyName.parse(change.node))
        changed = partial(with_verdicts, found=change.found, ended=change.ended)
        version = await self._calls.wait_for(update(self._store, key, changed, self._writer))
        content = version.content
        count, fields = (0, None) if content is None else (content.count, content.fields)
        self._refused.pop(change.node, None)
        self._agreement.written(change, read_rejections(change.node, count, fields))

    def _leave_out(self, change: VerdictChange, reason: str) -> None:
        """Leave a record as it is that cannot be changed, and log the reason once."""
        self._agreement.leave_out(change.node, (verdict.unit for verdict in change.found))
        if self._refused.get(change.node) != reason:
            _log.error("rejections of a proxy are not shared", proxy=change.node, reason=reason)
        self._refused[change.node] = reason

    def _note(self, error: str) -> None:
        """Note the error of the last writes, empty for none; log changes."""
        if error and not self._error:
            _log.warning("rejections are not shared with the other servers yet", reason=error)
        elif self._error and not error:
            _log.info("rejections are shared with the other servers again")
        self._error = error

    async def _save(self) -> None:
        """Save the unwritten verdicts in the file, if they have changed."""
        unwritten = self._agreement.unwritten()
        if unwritten != self._saved:
            self._saved = unwritten
            await asyncio.to_thread(self._file.keep, unwritten)
