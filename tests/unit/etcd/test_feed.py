"""Tests of feeds over a scripted store, where the order of a watch's responses matters."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Final, cast

from meshwright.etcd.client import Client
from meshwright.etcd.errors import EtcdError, RevisionGoneError, UnavailableError
from meshwright.etcd.feed import SMALLEST_PAGE, Difference, Feed, Pauses
from meshwright.etcd.values import KeyValue, Page, Position, Span
from meshwright.etcd.watch import Events
from tests.tools.deadline import until

SPAN: Final = Span(b"a", b"b")
ONE, TWO, THREE = (KeyValue(b"a1", b"x", 2, revision) for revision in (2, 3, 4))
OTHER: Final = KeyValue(b"a2", b"y", 5, 5)
NOW: Final = Pauses(first=0.0, longest=0.0, refused=0.0)


def at(revision: int, cluster: int = 1, term: int = 2) -> Position:
    """Return a position of the store."""
    return Position(cluster, term, revision)


class Script:
    """A store with scripted lists and watches; the last watch is silent at its end.

    A list is its pages, and a watch is the position of its member, and then events or an error.
    """

    def __init__(
        self, lists: Sequence[Sequence[Page]], watches: Sequence[Sequence[Position | Events | EtcdError]]
    ) -> None:
        self._lists = [list(pages) for pages in lists]
        self._watches = [list(watch) for watch in watches]
        self._present: list[Position | Events | EtcdError] = []
        self.history: dict[tuple[bytes, int], KeyValue] = {}
        self.calls: list[object] = []
        self.limits: list[int] = []
        self.failures: list[EtcdError] = []

    async def page(self, span: Span, revision: int, limit: int) -> Page:
        """Return the next page."""
        self.calls.append(("page", span.start, revision))
        self.limits.append(limit)
        if self.failures:
            raise self.failures.pop()
        if not self._lists[0]:
            del self._lists[0]
        return self._lists[0].pop(0)

    async def get(self, key: bytes, revision: int) -> KeyValue | None:
        """Return a key of the history."""
        return self.history.get((key, revision))

    @contextlib.asynccontextmanager
    async def watch(self, span: Span, revision: int) -> AsyncIterator["Script"]:
        """Begin the next watch."""
        self.calls.append(("watch", revision))
        self._present = self._watches.pop(0)
        begun = self._present.pop(0)
        assert isinstance(begun, Position)
        self.position = begun
        yield self

    async def events(self) -> Events:
        """Return the next events, or raise the next error, after which the watch is over."""
        if not self._present:
            await asyncio.Event().wait()
        told = self._present.pop(0)
        if isinstance(told, EtcdError):
            raise told
        assert isinstance(told, Events)
        return told

    async def run(self, count: int) -> list[Difference]:
        """Return what a feed delivers, until there are `count` differences."""
        received: list[Difference] = []
        feed = Feed(cast("Client", self), SPAN, received.append, NOW)
        task = asyncio.create_task(feed.run())
        await until(lambda: task.done() or (len(received) >= count and not self._watches + self._present))
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return received


CUT: Final = UnavailableError("the network is cut")


async def test_position_is_moved_by_events_and_progress_only() -> None:
    """The header of a new watch is ahead of events that are still to come, and never counts."""
    script = Script(
        [[Page((ONE,), at(2), more=False)]],
        [
            [at(30_605), CUT],
            [at(30_605), Events(3, (TWO,)), CUT],
            [at(30_605), Events(4, (THREE,)), Events(9), CUT],
            [at(30_605)],
        ],
    )
    script.history = {(item.key, item.modified): item for item in (ONE, TWO, THREE)}
    received = await script.run(3)
    assert received == [Difference((ONE,)), Difference((TWO,)), Difference((THREE,))]
    assert script.calls == [("page", b"a", 0), *(("watch", revision) for revision in (2, 2, 3, 9))]


async def test_pages_are_read_at_one_revision() -> None:
    """The later pages begin after the last key, and the first call of the receiver has all keys."""
    pages = [Page((ONE,), at(7), more=True), Page((OTHER,), at(9), more=False)]
    script = Script([pages], [[at(9)]])
    assert await script.run(1) == [Difference((ONE, OTHER))]
    assert script.calls == [("page", b"a", 0), ("page", b"a1\0", 7), ("watch", 7)]


async def test_pages_are_smaller_after_failures() -> None:
    """A page of large contents may take longer than its time limit; without a connection none is smaller."""
    pages = [Page((ONE,), at(7), more=True), Page((OTHER,), at(9), more=False)]
    script = Script([pages], [[at(9)]])
    script.failures = [
        *[UnavailableError("the store does not answer Range in time")] * 6,
        *[UnavailableError("no connection", is_undone=True)] * 3,
    ]
    assert await script.run(1) == [Difference((ONE, OTHER))]
    assert script.limits == [*[1000] * 4, 500, 250, 125, 62, *[SMALLEST_PAGE] * 3]


async def test_list_is_begun_anew_after_a_compaction() -> None:
    """The difference of the second list has removed and changed keys, but no equal ones."""
    third = KeyValue(b"a3", b"z", 6, 6)
    script = Script(
        [[Page((ONE, OTHER), at(5), more=False)], [Page((TWO, third), at(9), more=False)]],
        [[at(5), RevisionGoneError("compacted")], [at(9)]],
    )
    assert await script.run(2) == [Difference((ONE, OTHER)), Difference((TWO, third), (b"a2",))]


async def test_store_of_the_past_is_listed() -> None:
    """A lower revision, an earlier term or another cluster: each is another history."""
    for present in (at(4), at(9, term=1), at(9, cluster=2)):
        script = Script(
            [[Page((ONE,), at(5), more=False)], [Page((ONE, OTHER), at(5), more=False)]],
            [[at(5), CUT], [present], [at(5)]],
        )
        script.history = {(ONE.key, ONE.modified): ONE}
        assert await script.run(2) == [Difference((ONE,)), Difference((OTHER,))]


async def test_store_that_made_up_for_lost_revisions_is_listed() -> None:
    """The newest known key is another one at its own revision, or not there."""
    other = KeyValue(ONE.key, b"other", 2, 2)
    for found in (other, None):
        script = Script(
            [[Page((ONE,), at(5), more=False)], [Page((other,), at(9), more=False)]],
            [[at(5), CUT], [at(9)], [at(9)]],
        )
        script.history = {} if found is None else {(ONE.key, ONE.modified): found}
        assert await script.run(2) == [Difference((ONE,)), Difference((other,))]


async def test_events_of_one_response_are_one_difference() -> None:
    """Of several forms of a key the last one counts, and a key that came and went is no news."""
    script = Script(
        [[Page((ONE,), at(2), more=False)]],
        [[at(2), Events(9, (TWO, b"a1", OTHER, b"a2", THREE)), Events(10, (b"a1",)), Events(11, (b"a1",))]],
    )
    received = await script.run(3)
    assert received == [Difference((ONE,)), Difference((THREE,)), Difference((), (b"a1",))]
