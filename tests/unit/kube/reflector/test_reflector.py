"""Tests of the reflector with the worst behaviour of API servers and of proxies before them."""

import asyncio
import contextlib
import tracemalloc
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from meshwright.kube.errors import Reason
from meshwright.kube.reflector.object_cache import Item
from meshwright.kube.reflector.pacing import Pacing
from meshwright.kube.reflector.reflector import Reflector
from meshwright.kube.resource import Key, Raw
from tests.unit.kube.scripted_api import (
    SERVICES,
    Line,
    Part,
    ReceivedRequest,
    ScriptedServer,
    answering,
    api_of,
    bookmark,
    event,
    failure,
    listed,
    older,
    refusing,
    service,
    streaming,
)

CART, CATS = ("shop", "cart"), ("shop", "cats")

QUICK = Pacing(first=0.01, longest=0.05, steady=0.0, short=0.0, silence=5.0, initial=5.0)
"""Everything counts as having worked for long."""
YOUNG = Pacing(first=0.01, longest=0.05, steady=60.0, silence=5.0, initial=5.0)
"""Nothing does."""


class Running:
    """A running reflector; `told` are its reports, and `known` the objects that follow from them."""

    def __init__(self, reflector: Reflector[Any], played: ScriptedServer) -> None:
        self.reflector, self.played = reflector, played
        self.told: list[Mapping[Key, Item[Any] | None]] = []
        self.known: dict[Key, Item[Any]] = {}
        self._changed = asyncio.Event()

    def changed(self, changes: Mapping[Key, Item[Any] | None]) -> None:
        """Record reported changes."""
        self.told.append(dict(changes))
        for key, item in changes.items():
            self.known.pop(key, None)
            if item is not None:
                self.known[key] = item
        self._changed.set()

    async def until(self, true: Callable[[], object]) -> None:
        """Wait until a condition holds."""
        async with asyncio.timeout(20):
            while not true():
                await asyncio.sleep(0.002)

    @property
    def names(self) -> list[str]:
        """The names of the objects that follow from the reports."""
        return sorted(name for _, name in self.known)

    def errors(self, reason: Reason) -> int:
        """Return the number of errors with this reason."""
        return self.reflector.figures.errors.get(reason, 0)


def _spec(raw: Raw) -> Any:
    if "bad" in raw["spec"]:
        raise ValueError("this is bad")
    return dict(raw["spec"])


@contextlib.asynccontextmanager
async def running(*script: Part, pacing: Pacing = QUICK, **more: Any) -> AsyncIterator[Running]:
    """Run a reflector of Services with a server that plays a script."""
    clock = _Clock()
    async with ScriptedServer(*script) as played, api_of(played) as api:
        result = Running(Reflector(api, SERVICES, _spec, clock, pacing=pacing, **more), played)
        task = asyncio.create_task(result.reflector.run(result.changed))
        try:
            yield result
            assert not task.done(), "nothing that a server does ends it"
            # The reports lead to the reflector's items, except for versions of otherwise equal objects.
            has = {key: item.body for key, item in result.reflector.items.items()}
            remembered = {key: item.body for key, item in (more.get("known") or {}).items()}
            assert has == {
                key: result.known[key].body if key in result.known else remembered[key] for key in has
            }
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


class _Clock:
    """A clock that advances one second with each reading."""

    def __init__(self) -> None:
        self._now = datetime(2030, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now


def streamed(version: int, *items: Mapping[str, Any]) -> Part:
    """Return a part that streams a list and then keeps the stream open."""
    return streaming(*(event("ADDED", item) for item in items), bookmark(version, end=True))


async def test_streamed_list_continues_as_a_watch_in_one_request() -> None:
    """A server that streams lists gets one request: its watch continues where the list ends."""

    async def play(asked: ReceivedRequest, line: Line) -> None:
        assert asked.path == "/api/v1/services"
        assert asked.query["resourceVersionMatch"] == "NotOlderThan"
        assert asked.query["allowWatchBookmarks"] == "true"
        assert 290 <= int(asked.query["timeoutSeconds"]) <= 350
        await line.head()
        await line.send(event("ADDED", service("cart", 5, a=1)))
        await line.send(
            event("ADDED", service("cats", 3)), bookmark(9, end=True), event("ADDED", service("dogs", 10))
        )
        await line.hang()

    async with running(play) as result:
        await result.until(lambda: "dogs" in result.names)
        assert result.told[0] == {CART: Item("5", {"a": 1}), CATS: Item("3", {})}
        assert (result.played.verbs, result.names) == (["stream"], ["cart", "cats", "dogs"])
        figures = result.reflector.figures
        assert (figures.events, figures.relists, figures.error) == (1, 0, "")
        assert figures.last_list is not None
        assert figures.last_event is not None
        assert result.reflector.listed.is_set()


async def test_silent_watch_releases_the_memory_of_its_last_event() -> None:
    """The next event may be hours away, and each kind has a watch."""
    size = 2**22

    async def play(asked: ReceivedRequest, line: Line) -> None:
        await line.head()
        await line.send(event("ADDED", service("cart", 5)), bookmark(9, end=True))
        long = service("cats", 10)
        long["status"] = "long" * (size // 4)
        await line.send(event("ADDED", long))
        del long
        await line.hang()

    async with running(play, pacing=replace(QUICK, silence=120.0)) as result:
        await result.until(lambda: "cart" in result.names)
        tracemalloc.start()
        try:
            await result.until(lambda: "cats" in result.names)
            await result.until(lambda: tracemalloc.get_traced_memory()[0] < size / 4)
            assert tracemalloc.get_traced_memory()[1] > size, "it was in memory"
        finally:
            tracemalloc.stop()


async def test_change_during_a_streamed_list_is_part_of_the_list() -> None:
    """The first report has the modified object only, and not the deleted one."""
    part = streaming(
        event("ADDED", service("cart", 5, a=1)),
        event("ADDED", service("cats", 3)),
        event("MODIFIED", service("cart", 7, a=2)),
        event("DELETED", service("cats", 8)),
        bookmark(9, end=True),
    )
    async with running(part) as result:
        await result.until(lambda: result.told)
        assert result.told == [{CART: Item("7", {"a": 2})}]


async def test_empty_list_is_reported() -> None:
    """Followers must know that the list is complete, although it has no objects."""
    async with running(streamed(4)) as result:
        await result.until(result.reflector.listed.is_set)
        assert result.told == [{}]


async def test_older_server_is_listed_in_pages_and_watched() -> None:
    """The watch starts at the list's version, and a second watch at the last event's version."""

    async def second(asked: ReceivedRequest, line: Line) -> None:
        assert asked.query == {"limit": "500", "continue": "next"}
        await line.answer(listed(7, service("cats", 3)))

    async def watch(asked: ReceivedRequest, line: Line) -> None:
        assert (asked.query["watch"], asked.query["resourceVersion"]) == ("true", "7")
        await line.head()
        await line.send(event("DELETED", service("cats", 8)))
        await line.end()

    async def again(asked: ReceivedRequest, line: Line) -> None:
        assert asked.query["resourceVersion"] == "8"
        await line.head()
        await line.send(event("ADDED", service("owls", 9)))
        await line.hang()

    first = answering(listed(7, service("cart", 5), more="next"))
    async with running(older, first, second, watch, again) as result:
        await result.until(lambda: "owls" in result.names)
        assert result.told[0] == {CART: Item("5", {}), CATS: Item("3", {})}
        assert result.played.verbs == ["stream", "list", "list", "watch", "watch"]
        assert result.names == ["cart", "owls"]


@pytest.mark.parametrize("times", [1, 2])
async def test_list_with_an_expired_continuation_restarts(times: int) -> None:
    """The first restart is in pages again, the second one in a single request."""
    first = answering(listed(7, service("old", 5), more="next"))
    gone = refusing(410, "Expired", "The provided continue parameter is too old")
    async with running(
        older, *(first, gone) * times, answering(listed(9, service("cart", 8))), streaming()
    ) as result:
        await result.until(lambda: "watch" in result.played.verbs)
        assert result.names == ["cart"]
        assert result.errors(Reason.GONE) == times
        assert result.reflector.figures.error == ""
        assert ("limit" in result.played.asked[1 + 2 * times].query) is (times == 1)


async def test_items_of_a_list_have_apiversion_and_kind() -> None:
    """The reflector adds both fields for the projection, because lists of core kinds omit them."""
    seen: list[Raw] = []

    def project(raw: Raw) -> int:
        seen.append(raw)
        return 1

    async with (
        ScriptedServer(older, answering(listed(7, service("cart", 5))), streaming()) as played,
        api_of(played) as api,
    ):
        reflector = Reflector(api, SERVICES, project, _Clock(), pacing=QUICK)
        task = asyncio.create_task(reflector.run(lambda _: None))
        async with asyncio.timeout(20):
            await reflector.listed.wait()
        task.cancel()
    assert [(item["apiVersion"], item["kind"]) for item in seen] == [("v1", "Service")]


def _breaks(*values: object) -> Part:
    async def play(_: ReceivedRequest, line: Line) -> None:
        await line.head()
        if values:
            await line.send(*values)
        line.cut()

    return play


async def test_broken_watch_resumes_after_its_last_event() -> None:
    """A watch that worked for a while is resumed without a list, and no error is reported."""
    part = _breaks(
        event("ADDED", service("cart", 5)), bookmark(9, end=True), event("ADDED", service("cats", 12))
    )
    async with running(part, streaming(event("ADDED", service("dogs", 13)))) as result:
        await result.until(lambda: "dogs" in result.names)
        assert result.played.verbs == ["stream", "watch"]
        assert result.played.asked[1].query["resourceVersion"] == "12"
        assert (result.errors(Reason.BROKEN), result.reflector.figures.relists) == (1, 0)
        assert all(items for items in result.told), "no error began or ended"


async def test_truncated_event_is_ignored() -> None:
    """The watch is resumed before the incomplete event, so that the event arrives again."""

    async def play(_: ReceivedRequest, line: Line) -> None:
        await line.head()
        await line.send(bookmark(9, end=True))
        await line.chunk(b'{"type":"ADDED","object":{"metadata":{"name":"ca')
        await line.end()

    async with running(play, streaming(event("ADDED", service("cart", 12)))) as result:
        await result.until(lambda: result.known)
        assert result.played.asked[1].query["resourceVersion"] == "9"
        assert result.errors(Reason.BROKEN) == 1


async def test_watch_that_breaks_early_is_replaced_by_a_list_with_differences() -> None:
    """A watch that did not last is not trusted.

    The list shows missed changes, and only differences are reported, deletions too.
    """
    first = _breaks(
        event("ADDED", service("cart", 5)), event("ADDED", service("cats", 6)), bookmark(9, end=True)
    )
    async with running(first, streamed(20, service("cart", 5), service("dogs", 11)), pacing=YOUNG) as result:
        await result.until(lambda: "dogs" in result.names)
        assert result.played.verbs == ["stream", "stream"]
        assert {CATS: None, ("shop", "dogs"): Item("11", {})} in result.told
        assert result.reflector.figures.relists == 1


async def test_unchanged_list_reports_no_object() -> None:
    """After a relist without differences, only begin and end of the error are reported."""
    first = _breaks(event("ADDED", service("cart", 5)), bookmark(9, end=True))
    async with running(first, streamed(20, service("cart", 5)), pacing=YOUNG) as result:
        await result.until(
            lambda: result.reflector.figures.relists == 1 and not result.reflector.figures.error
        )
        assert result.told == [{CART: Item("5", {})}, {}, {}]


@pytest.mark.parametrize(
    "said",
    [event("ERROR", failure(410, "Expired", "too old resource version: 9 (12)")),
     event("ERROR", failure(410, "Gone", "gone")),
     event("ERROR", failure(500, "InternalError", "etcd event received with PrevKv=nil")),
     event("ERROR", failure(504, "Timeout", "Too large resource version: 9, current: 3")),
     event("ERROR", {})],
)  # fmt: skip
async def test_error_event_in_a_watch_causes_a_new_list(said: object) -> None:
    """No error event is followed by a resumed watch."""
    first = streaming(event("ADDED", service("cart", 5)), bookmark(9, end=True), said)
    async with running(first, streamed(20, service("cats", 11))) as result:
        await result.until(lambda: result.names == ["cats"])
        assert result.played.verbs == ["stream", "stream"]


async def test_expired_version_on_resume_causes_an_immediate_list() -> None:
    """After a compaction the server refuses the version with 410, which is no reported error."""
    first = _breaks(event("ADDED", service("cart", 5)), bookmark(9, end=True))
    gone = refusing(410, "Expired", "The resourceVersion for the provided watch is too old.")
    async with running(first, gone, streamed(20, service("cart", 5))) as result:
        await result.until(lambda: result.reflector.figures.relists == 1)
        assert result.played.verbs == ["stream", "watch", "stream"]
        assert result.errors(Reason.GONE) == 1
        assert result.told == [{CART: Item("5", {})}]


async def test_server_that_always_answers_gone_is_asked_with_pauses() -> None:
    """Only the first 410 is answered at once. Later ones are reported."""
    gone = refusing(410, "Expired", "too old")
    async with running(gone, pacing=Pacing(first=0.02, longest=0.02)) as result:
        await result.until(lambda: result.errors(Reason.GONE) >= 4)
        assert "too old" in result.reflector.figures.error


NONSENSE = [
    b"<html><body>Please log in</body></html>\n",
    b'{"type":"ADDED","object":{"metadata":{"name":\n',
    b"[]\n",
    b'{"type":"WHATEVER","object":{}}\n',
    b"\x00\xff\xfe\n",
]


@pytest.mark.parametrize("data", NONSENSE)
async def test_malformed_data_ends_the_watch_and_keeps_the_objects(data: bytes) -> None:
    """The error is reported until a valid answer arrives."""

    async def play(_: ReceivedRequest, line: Line) -> None:
        await line.head()
        await line.send(event("ADDED", service("cart", 5)), bookmark(9, end=True))
        await line.chunk(data)
        await line.hang()

    released = asyncio.Event()

    async def wait(_: ReceivedRequest, line: Line) -> None:
        await released.wait()
        await streamed(20, service("cart", 5), service("cats", 15))(_, line)

    async with running(play, wait) as result:
        await result.until(lambda: result.reflector.figures.error)
        assert result.errors(Reason.NONSENSE) == 1
        assert result.names == ["cart"]
        released.set()
        await result.until(lambda: result.names == ["cart", "cats"] and not result.reflector.figures.error)


async def test_html_answer_is_reported_as_a_wrong_address() -> None:
    """A proxy before an API server may answer 200 with a login page."""

    async def play(_: ReceivedRequest, line: Line) -> None:
        await line.head(content="text/html")
        await line.chunk(b"<html>Sign in</html>")
        await line.end()

    async with running(play) as result:
        await result.until(lambda: result.errors(Reason.NONSENSE) >= 2)
        text = (
            "cannot watch services: the answer is text/html, not JSON: the address is probably not "
            "that of an API server"
        )
        assert result.reflector.figures.error == text


async def test_endless_line_is_abandoned() -> None:
    """An event of a hundred megabytes must not fill the memory."""
    taken = 0

    async def play(_: ReceivedRequest, line: Line) -> None:
        nonlocal taken
        await line.head()
        await line.send(bookmark(9, end=True))
        for _number in range(100):
            await line.chunk(b"x" * (1 << 20))
            taken += 1

    async with running(play, streamed(20, service("cart", 11))) as result:
        await result.until(lambda: result.names)
        assert result.errors(Reason.TOO_LARGE) == 1
        assert taken < 40


async def test_unreadable_objects_are_counted_and_do_not_end_the_watch() -> None:
    """The last one is named, and a known object keeps its last readable form."""
    part = streaming(
        event("ADDED", service("cart", 5, a=1)),
        event("ADDED", service("dogs", 6, bad=1)),
        event("ADDED", {"metadata": {}}),
        bookmark(9, end=True),
        event("MODIFIED", service("cart", 10, bad=1)),
        event("ADDED", {"metadata": 5}),
        event("ADDED", service("cats", 12)),
    )
    async with running(part) as result:
        await result.until(lambda: "cats" in result.names)
        assert result.known == {CART: Item("5", {"a": 1}), CATS: Item("12", {})}
        assert result.errors(Reason.OBJECT) == 4
        assert result.reflector.figures.unread == "services: an object lacks metadata"
        assert result.reflector.figures.error == ""


async def test_unreadable_object_is_reported_without_other_changes() -> None:
    """An empty report wakes the followers, who would otherwise learn of the object with the next change."""
    part = streaming(bookmark(9, end=True), event("ADDED", {"metadata": 5}))
    async with running(part) as result:
        await result.until(lambda: result.reflector.figures.unread)
        assert result.told == [{}, {}], "the list, and that"


async def test_events_out_of_order_cause_a_new_list() -> None:
    """An older version after a newer one shows that the stream is not reliable."""
    first = streaming(
        event("ADDED", service("cart", 5)),
        bookmark(9, end=True),
        event("DELETED", service("cart", 12)),
        event("MODIFIED", service("cart", 11)),
    )
    async with running(first, streamed(20, service("cats", 15))) as result:
        await result.until(lambda: result.names == ["cats"])
        assert result.errors(Reason.DISORDER) == 1
        assert result.told[1:] == [{CART: None}, {}, {CATS: Item("15", {})}, {}]


async def test_duplicate_events_change_no_object() -> None:
    """Repeated events are counted, and the watch goes on."""
    again = event("ADDED", service("cats", 12))
    first = streaming(event("ADDED", service("cart", 5)), bookmark(9, end=True), again, again, again)
    async with running(first) as result:
        await result.until(lambda: result.reflector.figures.events == 3)
        assert (result.played.verbs, result.names) == (["stream"], ["cart", "cats"])


async def test_events_of_one_batch_are_reported_together() -> None:
    """Fifty events in one read give one report."""
    many = [event("ADDED", service(f"s{number}", 10 + number)) for number in range(50)]
    async with running(streaming(bookmark(9, end=True), *many)) as result:
        await result.until(lambda: len(result.known) == 50)
        assert len(result.told) == 2


async def test_silent_connection_is_replaced_by_a_resumed_watch() -> None:
    """A connection without data for too long is closed, and the watch resumes at its last version.

    The interruption is counted and is no reported error.
    """
    first = streaming(event("ADDED", service("cart", 5)), bookmark(9, end=True))
    pacing = Pacing(first=0.01, longest=0.05, steady=0.05, short=0.0, silence=0.2, initial=5.0)
    async with running(first, streaming(event("ADDED", service("cats", 12))), pacing=pacing) as result:
        await result.until(lambda: "cats" in result.names)
        assert result.played.verbs[:2] == ["stream", "watch"]
        assert result.errors(Reason.INACTIVE) >= 1
        assert result.reflector.figures.error == ""


@pytest.mark.parametrize("said", [[], [bookmark(7)]])
async def test_server_that_ignores_streaming_lists_is_listed_in_pages(said: list[object]) -> None:
    """Such a server never marks the end of the list.

    The reflector falls back to pages and does not try a streaming list again.
    """
    pacing = Pacing(first=0.01, longest=0.05, steady=0.0, short=0.0, silence=5.0, initial=0.1)
    part = streaming(event("ADDED", service("cart", 5)), *said)
    async with running(part, answering(listed(7, service("cats", 5))), _breaks(), pacing=pacing) as result:
        await result.until(lambda: result.played.verbs.count("watch") >= 2)
        assert result.names == ["cats"]
        assert result.played.verbs.count("stream") == 1


async def test_server_that_ends_watches_at_once_is_reported() -> None:
    """Such a server would be asked all the time, so the watch counts as failed with reason SHORT."""

    async def play(_: ReceivedRequest, line: Line) -> None:
        await line.head()
        await line.end()

    pacing = Pacing(first=0.01, longest=0.02, steady=60.0, short=60.0)
    async with running(older, answering(listed(7)), play, pacing=pacing) as result:
        await result.until(lambda: result.errors(Reason.SHORT))
        assert result.reflector.figures.error == "the API server ends watches of services immediately"


async def test_without_the_watch_verb_lists_keep_the_objects_current() -> None:
    """The error names the missing verb and the resource, and is reported once."""
    who = 'User "system:serviceaccount:mesh:plane"'
    denied = (
        f'services is forbidden: {who} cannot watch resource "services" in API group "" at the cluster scope'
    )
    refused = refusing(403, "Forbidden", denied)
    lists = [answering(listed(number, service(f"s{number}", number))) for number in (7, 8)]
    async with running(refused, lists[0], refused, refused, lists[1], refused) as result:
        await result.until(lambda: result.names == ["s8"])
        grants = "RBAC grants no `watch` on `services` to system:serviceaccount:mesh:plane"
        assert result.reflector.figures.error == f"may not watch services: {grants}"
        assert result.errors(Reason.FORBIDDEN) >= 1
        assert len([items for items in result.told if not items]) == 1, (
            "the error began once, and has not ended"
        )


async def test_without_list_and_watch_verbs_known_objects_remain() -> None:
    """The first list does not count as done, and the error names the missing verb."""
    denied = refusing(
        403, "Forbidden", 'services is forbidden: User "u" cannot list resource "services" in API group ""'
    )
    async with running(denied, known={CART: Item("5", {})}) as result:
        await result.until(lambda: result.errors(Reason.FORBIDDEN) >= 2)
        assert (
            result.reflector.figures.error
            == "may not list services: RBAC grants no `list` on `services` to u"
        )
        assert not result.reflector.listed.is_set()
        assert list(result.reflector.items) == [CART]


async def test_kind_that_is_not_served_is_reported_and_retried() -> None:
    """The error ends once the kind is served."""
    missing = refusing(404, "NotFound", "the server could not find the requested resource")
    async with running(missing, missing, missing, streamed(9, service("cart", 5))) as result:
        await result.until(lambda: result.errors(Reason.NOT_SERVED) == 2)
        assert (
            result.reflector.figures.error
            == "cannot watch services: the API server does not serve services (404)"
        )
        await result.until(lambda: result.names == ["cart"] and not result.reflector.figures.error)


async def test_kind_that_is_no_longer_served_keeps_its_objects() -> None:
    """The removal of a kind is decided by discovery, not by the reflector."""
    gone = refusing(404, "NotFound", "the server could not find the requested resource")
    async with running(_breaks(event("ADDED", service("cart", 5)), bookmark(9, end=True)), gone) as result:
        await result.until(lambda: result.errors(Reason.NOT_SERVED) >= 1)
        assert result.names == ["cart"]


async def test_retry_after_is_respected() -> None:
    """The pause follows the server's header, and the error is counted as throttled."""
    loop = asyncio.get_running_loop()
    busy = refusing(429, "TooManyRequests", "please try again later", "Retry-After: 1")
    began = loop.time()
    async with running(busy, streamed(9)) as result:
        await result.until(result.reflector.listed.is_set)
        assert loop.time() - began >= 0.5, "which is ten times the longest pause"
        assert result.errors(Reason.THROTTLED) == 1


async def test_begin_and_end_of_an_error_are_reported_by_empty_changes() -> None:
    """The time of the error is that of the first failure."""
    down = refusing(503, "ServiceUnavailable", "etcd is away")
    moments = []

    async with running(down, down, down, down, streamed(9)) as result:
        while not result.reflector.listed.is_set():
            if result.reflector.figures.error:
                moments.append(result.reflector.figures.error_since)
            await asyncio.sleep(0.001)
        assert len(set(moments)) == 1
        await result.until(lambda: not result.reflector.figures.error)
        assert result.told.count({}) == len(result.told) >= 2


async def test_objects_of_an_earlier_run_are_known_from_the_start() -> None:
    """The first list is compared with them, and only differences are reported.

    An object with a known version is not read again.
    """
    known = {CART: Item("5", {"a": 1}), CATS: Item("6", {})}
    released = asyncio.Event()

    async def play(asked: ReceivedRequest, line: Line) -> None:
        await released.wait()
        await streamed(20, service("cart", 5, bad=1), service("dogs", 11))(asked, line)

    async with running(play, known=known) as result:
        assert dict(result.reflector.items) == known
        released.set()
        await result.until(lambda: result.told)
        assert result.told == [{CATS: None, ("shop", "dogs"): Item("11", {})}]


async def test_list_is_repeated_after_the_relist_period() -> None:
    """A working watch does not prevent the relist."""

    async def play(_: ReceivedRequest, line: Line) -> None:
        await line.head()
        await line.send(event("ADDED", service("cart", 5)), bookmark(9, end=True))
        await line.end()

    pacing = Pacing(steady=0.0, short=0.0, relist=0.0)
    async with running(play, streamed(20, service("cats", 15)), pacing=pacing) as result:
        await result.until(lambda: result.names == ["cats"])
        assert result.played.verbs == ["stream", "stream"]
        assert result.reflector.figures.relists == 1


async def test_namespace_and_selectors_are_part_of_every_request() -> None:
    """Lists and watches have the same path and selectors."""
    more: dict[str, Any] = {
        "namespace": "shop",
        "labels": "app=cart,tier in (a, b)",
        "fields": "metadata.name=cart",
    }
    async with running(older, answering(listed(7)), streaming(), **more) as result:
        await result.until(lambda: "watch" in result.played.verbs)
        for asked in result.played.asked:
            assert asked.path == "/api/v1/namespaces/shop/services"
            assert (asked.query["labelSelector"], asked.query["fieldSelector"]) == (
                more["labels"],
                more["fields"],
            )


async def test_silent_watch_ends_an_error_after_a_while() -> None:
    """Without changes there are no events, so a watch that stays open proves that the server works."""
    down = refusing(503, "ServiceUnavailable", "etcd is away")
    pacing = Pacing(first=0.01, longest=0.05, steady=0.05, silence=5.0)
    async with running(older, down, answering(listed(7)), streaming(), pacing=pacing) as result:
        await result.until(lambda: result.reflector.figures.error)
        await result.until(lambda: not result.reflector.figures.error)
        assert result.played.verbs == ["stream", "list", "list", "watch"]


MANY = [service(f"s{number}", 10 + number) for number in range(500)]


@pytest.mark.parametrize(
    "script",
    [
        (older, answering(listed(999, *MANY)), streaming()),
        (streaming(*(event("ADDED", item) for item in MANY), bookmark(999, end=True)),),
        (streaming(bookmark(9, end=True), *(event("ADDED", item) for item in MANY)),),
    ],
    ids=["paged", "streamed", "events"],
)
async def test_large_lists_do_not_block_the_event_loop(script: tuple[Part, ...]) -> None:
    """The reflector yields between objects, so that other tasks run meanwhile."""
    turns, seen = 0, set[int]()

    async def ticking() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    def project(raw: Raw) -> int:
        seen.add(turns)
        return sum(range(5000))

    async with ScriptedServer(*script) as played, api_of(played) as api:
        reflector = Reflector(api, SERVICES, project, _Clock(), pacing=QUICK)
        tasks = [asyncio.create_task(item) for item in (reflector.run(lambda _: None), ticking())]
        async with asyncio.timeout(20):
            while len(reflector.items) < len(MANY):
                await asyncio.sleep(0.002)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert len(seen) >= 3
