"""Tests of the journal: events that are entered late have the same effect as at once."""

import asyncio
import contextlib
import itertools
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from catalog.store.settings import EndpointAdmission
from meshwright.admin.metrics.registry import Metrics
from meshwright.delivery.ack_handling import Answers
from meshwright.delivery.history.history import Delays, PushHistory
from meshwright.delivery.history.open_waves import OpenWaves
from meshwright.delivery.history.push import Answer, Push
from meshwright.delivery.proxies import journal
from meshwright.delivery.proxies.journal import LONGEST_SECONDS, REST_SECONDS, Journal
from meshwright.delivery.proxies.observer import MeshObserver
from meshwright.delivery.proxies.readiness import EndpointReadiness
from meshwright.delivery.proxies.registry import ProxyRegistry
from meshwright.delivery.publisher import Publisher
from meshwright.delivery.quarantine.quarantine import Quarantine
from meshwright.delivery.snapshots.published_snapshots import Step
from meshwright.delivery.timing.time_slices import Slices
from meshwright.delivery.wave import Cause, Change, Wave
from meshwright.mesh.kinds import TRAFFIC_TARGET
from tests.tools.hypothesis_profiles import examples
from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.hooks import Peer, StreamEnd
from xds.protocol.resources.resource import CLUSTER, ROUTE, Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.wire import Nonce, Rejection, Response
from xds.stream_status import Variant

NODES = tuple(NodeKey(f"{item}.store.shop") for item in "abc")
ONE, OTHER, THIRD = NODES
GROUPS = (GroupKey("g"), GroupKey("h"))
DATE = datetime(2026, 1, 2, tzinfo=UTC)
TYPES = (CLUSTER, ROUTE)
NO = Rejection(13, "no such regex")


def _peer(node: NodeKey) -> Peer:
    return Peer(None, f"ipv4:{node}:1")


def _snapshot(seed: int) -> Snapshot:
    """Return two clusters and a route, each in one of a few versions."""
    dice = random.Random(seed)  # noqa: S311 - no secret
    named = ((CLUSTER, "x"), (CLUSTER, "y"), (ROUTE, "r"))
    versions = [(kind, name, str(dice.randrange(3))) for kind, name in named]
    return Snapshot.of(
        Resource(kind, ResourceName(name), Version(version), f"{name}{version}".encode())
        for kind, name, version in versions
    )


class Plane:
    """All parts that handle answers, proxies that are sent their resources, and a manual clock."""

    def __init__(self, *, at_once: bool, pause: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._at_once = at_once
        self.now = 0.0
        self.metrics, self.waves = Metrics(), OpenWaves(self._clock)
        registry = ProxyRegistry(lambda: DATE)
        self.cache = SnapshotCache()
        self.history = PushHistory(self.cache, registry.find, self.waves)
        self.quarantine = Quarantine(
            lambda _: None, now=self._clock, jitter=lambda: 0.5, acknowledged=registry.acknowledged
        )
        self.journal = Journal(self.history, self.quarantine, self.metrics, self._clock, pause)
        self.publishing = Publisher(
            self.cache, self.quarantine, self.metrics, self.history.published, self.waves, self.journal
        )
        self.answers = Answers(self.publishing, lambda: None, lambda: DATE, self._clock)
        readiness = EndpointReadiness((), EndpointAdmission.READY)
        self.observer = MeshObserver(
            registry, self.metrics, self.history, self.journal, readiness, self.answers, self._clock
        )
        self._nonces = 0
        self._sent: dict[NodeKey, list[Response]] = {node: [] for node in NODES}
        self._open: set[NodeKey] = set()

    def _clock(self) -> float:
        return self.now

    async def do(self, action: str, number: int, seed: int) -> None:
        """Perform an action for one of the proxies, or one of the groups."""
        self.now += 1.0
        node, group = NODES[number % len(NODES)], GROUPS[seed % len(GROUPS)]
        match action:
            case "publish":
                await self.publish(Step({GROUPS[number % 2]: _snapshot(seed)}))
            case "move":
                await self.publish(Step(members={node: group}))
            case "open" if node not in self._open:
                self._open.add(node)
                self.observer.opened(node, _peer(node), (Variant.DELTA, Variant.SOTW)[seed % 2])
            case "close" if node in self._open:
                self._open.discard(node)
                self._sent[node].clear()
                self.observer.closed(node, _peer(node), StreamEnd.CLIENT, "")
            case "send" if node in self._open:
                self.send(node, TYPES[seed % 2])
            case "accept" | "reject" if self._sent[node]:
                response = self._sent[node].pop(0)
                self.observer.answered(node, response, NO if action == "reject" else None)
            case "retry":
                self.answers.retry(node)
            case "rest":
                self.rest()
            case _:
                pass  # a disconnected proxy does nothing
        if self._at_once:
            self.rest()

    async def publish(self, step: Step) -> None:
        """Publish a step as a wave does."""
        causes = (Cause(TRAFFIC_TARGET, "shop/t", "t.yaml:1 (document 1)", Change.CHANGED),)
        wave = Wave(0, causes, 0, self.now - 0.25, self.now, DATE)
        await self.publishing.publish(wave, step, Slices())

    def send(self, node: NodeKey, kind: TypeUrl) -> Response:
        """Send a proxy all its resources of a type."""
        self._nonces += 1
        snapshot = self.cache.snapshot(node)
        assert snapshot is not None
        resources, nonce = snapshot.ordered(kind), Nonce(str(self._nonces))
        table = snapshot.resources(kind)
        response = Response(kind, snapshot.version(kind), nonce, resources, table=table)
        self.observer.sent(node, response, 100)
        self._sent[node].append(response)
        return response

    def rest(self) -> None:
        """Enter all notes."""
        for _ in self.journal.entering():
            pass

    def noted(self) -> list[NodeKey]:
        """Return the proxies whose notes wait."""
        return list(self.journal._entries)

    def served(self) -> list[Snapshot | None]:
        """Return the snapshot of each proxy."""
        return [self.cache.snapshot(node) for node in NODES]

    def pushes(self, node: NodeKey) -> tuple[Push, ...]:
        """Return the pushes of a proxy as a page shows them."""
        self.journal.settle((node,))
        return self.history.pushes(node, self.now, DATE)

    def known(self) -> list[object]:
        """Return the final state: pushes, accepted resources, waves, answers and metrics."""
        self.rest()
        accepted = self.quarantine._accepted
        good = [
            tuple(accepted.good(node, group, (kind, ResourceName(name))))
            for node in NODES
            for group in GROUPS
            for kind, name in ((CLUSTER, "x"), (CLUSTER, "y"), (ROUTE, "r"))
        ]
        counted = [
            line
            for line in self.metrics.text().decode().splitlines()
            if line.startswith("meshwright_") and "_created" not in line
        ]
        waves = self.waves.take(self.now + 100)
        return [[self.pushes(node) for node in NODES], good, waves, self.history.answers, counted]


@dataclass
class Both:
    """Two planes: one enters events at once, the other as late as possible."""

    at_once: Plane
    late: Plane

    async def do(self, action: str, number: int, seed: int) -> None:
        """Perform an action on both planes, and compare them."""
        for plane in (self.at_once, self.late):
            await plane.do(action, number, seed)
        if action == "look":
            assert self.late.pushes(NODES[number % 3]) == self.at_once.pushes(NODES[number % 3])
        assert self.late.served() == self.at_once.served()


async def _served(*, at_once: bool) -> Plane:
    """Return a plane whose proxies are served."""
    return await _serve(Plane(at_once=at_once))


async def _serve(plane: Plane) -> Plane:
    """Serve a plane with its first two proxies in one group, and the third in another."""
    members = {ONE: GROUPS[0], OTHER: GROUPS[0], THIRD: GROUPS[1]}
    for node in NODES:
        plane.cache.watch(node, lambda: None)
    await plane.publish(Step({group: _snapshot(0) for group in GROUPS}, dict(members)))
    for number in range(len(NODES)):
        await plane.do("open", number, 0)
    return plane


ACTIONS = (
    "publish",
    "move",
    "open",
    "close",
    "send",
    "send",
    "accept",
    "accept",
    "reject",
    "retry",
    "rest",
    "look",
)


@given(
    st.lists(
        st.tuples(st.sampled_from(ACTIONS), st.integers(0, 2), st.integers(0, 11)), min_size=5, max_size=60
    )
)
@settings(max_examples=examples(12, fresh=600))
def test_late_entries_have_the_same_effect_as_immediate_ones(actions: list[tuple[str, int, int]]) -> None:
    """After any actions in any order, the served snapshots and the final state are the same."""
    asyncio.run(_compared(actions))


async def _compared(actions: list[tuple[str, int, int]]) -> None:
    both = Both(await _served(at_once=True), await _served(at_once=False))
    for action in actions:
        await both.do(*action)
    assert both.late.known() == both.at_once.known()


def _never(self: object, nodes: object) -> None:
    """Do nothing in place of the method that enters notes."""


def _routes(version: str) -> Snapshot:
    return Snapshot.of((Resource(ROUTE, ResourceName("r"), Version(version), version.encode()),))


async def test_rejecting_proxy_gets_the_newest_version_accepted_by_its_group() -> None:
    """A proxy that rejects a route is served the newest version that its group accepted.

    The acknowledgement is entered when a newer version has already replaced the accepted one.
    """
    plane = await _served(at_once=False)
    for version in "123":
        await plane.publish(Step({GROUPS[0]: _routes(version)}))
        if version != "3":
            older = plane.send(OTHER, ROUTE)
        if version == "1":
            plane.observer.answered(OTHER, older, None)
    plane.observer.answered(OTHER, older, None)
    plane.observer.answered(ONE, plane.send(ONE, ROUTE), NO)
    served = plane.cache.snapshot(ONE)
    assert served is not None
    assert dict(served.versions(ROUTE)) == {"r": "2"}


async def test_journal_that_settles_no_proxy_is_detected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Negative control: without settling, a closed stream or a read of the pushes differs."""
    monkeypatch.setattr(Journal, "settle", _never)
    await _compared([("send", 0, 1), ("accept", 0, 0)])
    with pytest.raises(AssertionError):
        await _compared([("send", 0, 1), ("close", 0, 0)])
    with pytest.raises(AssertionError):
        await _compared([("send", 0, 1), ("look", 0, 0)])


async def test_publisher_that_settles_no_group_is_detected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Negative control: without settling, a proxy that rejects a route is served an older version."""
    monkeypatch.setattr(Publisher, "_settle_groups", _never)
    with pytest.raises(AssertionError):
        await test_rejecting_proxy_gets_the_newest_version_accepted_by_its_group()


class Running:
    """A plane whose journal runs; each pause of the journal performs one of the given events."""

    def __init__(self, meanwhile: Iterable[Callable[[Plane], None]]) -> None:
        self.plane = Plane(at_once=False, pause=self.pause)
        self.paused: list[float] = []
        self._meanwhile = iter(meanwhile)

    async def pause(self, seconds: float) -> None:
        """Advance the clock, and perform the next event."""
        self.paused.append(seconds)
        self.plane.now += seconds
        for happens in itertools.islice(self._meanwhile, 1):
            happens(self.plane)

    async def until_settled(self) -> None:
        """Wait until the first notes of ONE are entered."""
        first = self.plane.journal._entries[ONE]
        async with asyncio.timeout(10):
            while self.plane.journal._entries.get(ONE) is first:
                await asyncio.sleep(0)

    async def settled(self) -> list[NodeKey]:
        """Let the journal work until it waits; return the proxies whose notes still wait."""
        for _ in range(20):
            await asyncio.sleep(0)
        return self.plane.noted()


@contextlib.asynccontextmanager
async def _running(*meanwhile: Callable[[Plane], None]) -> AsyncIterator[Running]:
    """Serve a plane, and run its journal meanwhile."""
    running = Running(meanwhile)
    await _serve(running.plane)
    task = asyncio.create_task(running.plane.journal.run())
    try:
        yield running
    finally:
        task.cancel()


def _accept(node: NodeKey, response: Response, plane: Plane) -> None:
    plane.observer.answered(node, response, None)


async def test_notes_are_entered_soon_after_the_last_open_answer() -> None:
    """While a proxy owes an answer, all notes wait; then the journal pauses for REST_SECONDS."""
    async with _running() as running:
        plane = running.plane
        one, other = plane.send(ONE, ROUTE), plane.send(OTHER, ROUTE)
        _accept(ONE, one, plane)
        assert (await running.settled(), running.paused) == ([ONE, OTHER], [])
        _accept(OTHER, other, plane)
        assert (await running.settled(), running.paused) == ([], [REST_SECONDS])
        assert [push.answer for push in plane.history.pushes(OTHER, plane.now, DATE)] == [Answer.ACK]


async def test_response_sent_during_the_pause_delays_the_entries() -> None:
    """All notes are entered after the answer to that response, so that pushes have priority."""

    def sent(plane: Plane) -> None:
        late.append(plane.send(OTHER, ROUTE))

    late: list[Response] = []
    async with _running(sent) as running:
        plane = running.plane
        _accept(ONE, plane.send(ONE, ROUTE), plane)
        assert (await running.settled(), running.paused) == ([ONE, OTHER], [REST_SECONDS])
        _accept(OTHER, late[0], plane)
        assert (await running.settled(), running.paused) == ([], [REST_SECONDS] * 2)


async def test_missing_answer_delays_the_entries_only_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Notes are entered after SILENT_SECONDS without events, so that the age of the push is visible."""
    monkeypatch.setattr(journal, "SILENT_SECONDS", 0.01)
    async with _running() as running:
        plane = running.plane
        plane.send(ONE, ROUTE)
        await running.until_settled()
        assert (plane.history.unanswered_age(plane.now + 7), running.paused) == (7.0, [])


async def test_constant_responses_do_not_delay_the_entries_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Notes are entered after LONGEST_SECONDS, whichever answers are open."""
    monkeypatch.setattr(journal, "SILENT_SECONDS", 0.002)
    monkeypatch.setattr(journal, "MOST", 10**9)  # so that their number is no reason
    async with _running() as running:
        plane = running.plane
        plane.send(ONE, ROUTE)
        sending = asyncio.create_task(_sending(plane))
        assert await running.settled() == [ONE, OTHER]  # the journal has begun to wait
        plane.now += LONGEST_SECONDS
        await running.until_settled()
        sending.cancel()


async def _sending(plane: Plane) -> None:
    while True:
        plane.send(OTHER, ROUTE)
        await asyncio.sleep(0)


async def test_number_of_waiting_notes_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Notes beyond MOST are entered although an answer is open."""
    monkeypatch.setattr(journal, "MOST", 3)
    async with _running() as running:
        plane = running.plane
        plane.send(ONE, ROUTE)
        plane.send(ONE, ROUTE)
        assert await running.settled() == [ONE]
        plane.send(OTHER, ROUTE)
        assert await running.settled() == []


async def test_failed_entry_of_one_proxy_is_logged_and_others_are_entered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An internal error must end neither the wave nor the program."""
    plane = await _served(at_once=False)
    sent = plane.history.sent

    def broken(node: NodeKey, response: Response, size: int, now: float) -> Delays:
        if node == ONE:
            raise KeyError("the test's own")
        return sent(node, response, size, now)

    monkeypatch.setattr(plane.history, "sent", broken)
    plane.send(ONE, ROUTE)
    plane.send(OTHER, ROUTE)
    with capture_logs() as answer:
        await plane.publish(Step({GROUPS[0]: _snapshot(1)}))
    assert [item["proxy"] for item in answer if item["log_level"] == "error"] == [ONE]
    assert [len(plane.pushes(node)) for node in NODES] == [0, 1, 0]


async def test_note_made_during_the_entries_of_others_is_entered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The earlier notes of the same proxy were just entered, so nothing else triggers the new one."""
    monkeypatch.setattr(journal, "SILENT_SECONDS", 0.01)
    async with _running() as running:
        plane, sent = running.plane, running.plane.history.sent
        late: list[Response] = []

        def meanwhile(node: NodeKey, response: Response, size: int, now: float) -> Delays:
            if node == OTHER and not late:
                late.append(plane.send(ONE, ROUTE))
            return sent(node, response, size, now)

        monkeypatch.setattr(plane.history, "sent", meanwhile)
        one, other = plane.send(ONE, ROUTE), plane.send(OTHER, ROUTE)
        plane.send(THIRD, ROUTE)
        _accept(ONE, one, plane)
        _accept(OTHER, other, plane)
        async with asyncio.timeout(2):
            while plane.noted():
                await asyncio.sleep(0)
        assert len(plane.history.pushes(ONE, plane.now, DATE)) == 2
