"""The journal: what is entered late comes to what it comes to at once, for whoever looks whenever they do."""

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

NODES = tuple(NodeKey(f"{each}.store.shop") for each in "abc")
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
    """All that takes answers, with proxies that are sent what they are served, and a clock set by hand."""

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
        """Have something happen to one of the proxies, or one of the groups."""
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
                pass  # who is not there does nothing
        if self._at_once:
            self.rest()

    async def publish(self, step: Step) -> None:
        """Publish a step as a wave does."""
        causes = (Cause(TRAFFIC_TARGET, "shop/t", "t.yaml:1 (document 1)", Change.CHANGED),)
        wave = Wave(0, causes, 0, self.now - 0.25, self.now, DATE)
        await self.publishing.publish(wave, step, Slices())

    def send(self, node: NodeKey, kind: TypeUrl) -> Response:
        """Send a proxy all that it is served of a type."""
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
        """Enter all that is noted."""
        for _ in self.journal.entering():
            pass

    def noted(self) -> list[NodeKey]:
        """Return whose entries wait."""
        return list(self.journal._entries)

    def served(self) -> list[Snapshot | None]:
        """Return what each proxy is served."""
        return [self.cache.snapshot(node) for node in NODES]

    def pushes(self, node: NodeKey) -> tuple[Push, ...]:
        """Return what a page shows of a proxy."""
        self.journal.settle((node,))
        return self.history.pushes(node, self.now, DATE)

    def known(self) -> list[object]:
        """Return all that is known in the end: pushes, what counts as good, waves, and what was counted."""
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
    """One plane that enters what happens at once, and one that does when it must."""

    at_once: Plane
    late: Plane

    async def do(self, action: str, number: int, seed: int) -> None:
        """Have the same happen to both, to the same end."""
        for plane in (self.at_once, self.late):
            await plane.do(action, number, seed)
        if action == "look":
            assert self.late.pushes(NODES[number % 3]) == self.at_once.pushes(NODES[number % 3])
        assert self.late.served() == self.at_once.served()


async def _served(*, at_once: bool) -> Plane:
    """Return a plane that is served."""
    return await _serve(Plane(at_once=at_once))


async def _serve(plane: Plane) -> Plane:
    """Serve a plane whose first two proxies are of one group, and the third of another."""
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
@settings(max_examples=examples(60, fresh=600))
def test_late_is_as_at_once(actions: list[tuple[str, int, int]]) -> None:
    """Whatever happens in whatever order: what is served after each of it, and what is known in the end."""
    asyncio.run(_compared(actions))


async def _compared(actions: list[tuple[str, int, int]]) -> None:
    both = Both(await _served(at_once=True), await _served(at_once=False))
    for each in actions:
        await both.do(*each)
    assert both.late.known() == both.at_once.known()


def _never(self: object, nodes: object) -> None:
    """Enter nothing of anybody, in the place of what does."""


def _routes(version: str) -> Snapshot:
    return Snapshot.of((Resource(ROUTE, ResourceName("r"), Version(version), version.encode()),))


async def test_what_another_of_its_group_has_just_accepted_is_good_for_who_rejects() -> None:
    """The newest that it accepted: late, for it has been replaced by then."""
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


async def test_what_a_proxy_did_is_entered_before_something_follows_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A mutant: without it, late is not as at once."""
    monkeypatch.setattr(Journal, "settle", _never)
    await _compared([("send", 0, 1), ("accept", 0, 0)])
    with pytest.raises(AssertionError):
        await _compared([("send", 0, 1), ("close", 0, 0)])
    with pytest.raises(AssertionError):
        await _compared([("send", 0, 1), ("look", 0, 0)])


async def test_what_its_group_did_is_entered_before_something_follows_for_a_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A mutant: without it, who rejects is served what is older."""
    monkeypatch.setattr(Publisher, "_settle_groups", _never)
    with pytest.raises(AssertionError):
        await test_what_another_of_its_group_has_just_accepted_is_good_for_who_rejects()


class Running:
    """A plane whose journal runs; in each of its pauses one of these things happens, while there are any."""

    def __init__(self, meanwhile: Iterable[Callable[[Plane], None]]) -> None:
        self.plane = Plane(at_once=False, pause=self.pause)
        self.paused: list[float] = []
        self._meanwhile = iter(meanwhile)

    async def pause(self, seconds: float) -> None:
        """Have the next thing happen."""
        self.paused.append(seconds)
        self.plane.now += seconds
        for happens in itertools.islice(self._meanwhile, 1):
            happens(self.plane)

    async def until_settled(self) -> None:
        """Return when what was noted first is entered."""
        first = self.plane.journal._entries[ONE]
        async with asyncio.timeout(10):
            while self.plane.journal._entries.get(ONE) is first:
                await asyncio.sleep(0)

    async def settled(self) -> list[NodeKey]:
        """Let the journal do all that it does by itself; return whose entries wait after it."""
        for _ in range(20):
            await asyncio.sleep(0)
        return self.plane.noted()


@contextlib.asynccontextmanager
async def _running(*meanwhile: Callable[[Plane], None]) -> AsyncIterator[Running]:
    """Serve a plane, and let its journal run meanwhile."""
    running = Running(meanwhile)
    await _serve(running.plane)
    task = asyncio.create_task(running.plane.journal.run())
    try:
        yield running
    finally:
        task.cancel()


def _accept(node: NodeKey, response: Response, plane: Plane) -> None:
    plane.observer.answered(node, response, None)


async def test_it_is_entered_when_nobody_owes_an_answer() -> None:
    """A moment later; as long as somebody does, it waits, and what is done meanwhile with it."""
    async with _running() as running:
        plane = running.plane
        one, other = plane.send(ONE, ROUTE), plane.send(OTHER, ROUTE)
        _accept(ONE, one, plane)
        assert (await running.settled(), running.paused) == ([ONE, OTHER], [])
        _accept(OTHER, other, plane)
        assert (await running.settled(), running.paused) == ([], [REST_SECONDS])
        assert [each.answer for each in plane.history.pushes(OTHER, plane.now, DATE)] == [Answer.ACK]


async def test_who_is_sent_something_in_that_moment_goes_first() -> None:
    """All is entered after its answer."""

    def sent(plane: Plane) -> None:
        late.append(plane.send(OTHER, ROUTE))

    late: list[Response] = []
    async with _running(sent) as running:
        plane = running.plane
        _accept(ONE, plane.send(ONE, ROUTE), plane)
        assert (await running.settled(), running.paused) == ([ONE, OTHER], [REST_SECONDS])
        _accept(OTHER, late[0], plane)
        assert (await running.settled(), running.paused) == ([], [REST_SECONDS] * 2)


async def test_who_does_not_answer_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is entered when nothing happened for a while: so that it is seen how long nobody has answered."""
    monkeypatch.setattr(journal, "SILENT_SECONDS", 0.01)
    async with _running() as running:
        plane = running.plane
        plane.send(ONE, ROUTE)
        await running.until_settled()
        assert (plane.history.unanswered_age(plane.now + 7), running.paused) == (7.0, [])


async def test_nothing_waits_for_ever_where_more_and_more_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """However soon after each other, and whoever owes an answer."""
    monkeypatch.setattr(journal, "SILENT_SECONDS", 0.002)
    async with _running() as running:
        plane = running.plane
        plane.send(ONE, ROUTE)
        plane.now += LONGEST_SECONDS - 1
        sending = asyncio.create_task(_sending(plane))
        while len(plane.noted()) < 2:
            await asyncio.sleep(0)
        plane.now += 1
        await running.until_settled()
        sending.cancel()


async def _sending(plane: Plane) -> None:
    while True:
        plane.send(OTHER, ROUTE)
        await asyncio.sleep(0)


async def test_no_more_waits_than_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """However short the time is in which it came, and whoever owes an answer."""
    monkeypatch.setattr(journal, "MOST", 3)
    async with _running() as running:
        plane = running.plane
        plane.send(ONE, ROUTE)
        plane.send(ONE, ROUTE)
        assert await running.settled() == [ONE]
        plane.send(OTHER, ROUTE)
        assert await running.settled() == []


async def test_what_cannot_be_entered_of_one_is_said_and_of_others_it_is_entered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An error of ours ends neither the wave nor the program."""
    plane = await _served(at_once=False)
    sent = plane.history.sent

    def broken(node: NodeKey, response: Response, size: int, now: float) -> Delays:
        if node == ONE:
            raise KeyError("the test's own")
        return sent(node, response, size, now)

    monkeypatch.setattr(plane.history, "sent", broken)
    plane.send(ONE, ROUTE)
    plane.send(OTHER, ROUTE)
    with capture_logs() as said:
        await plane.publish(Step({GROUPS[0]: _snapshot(1)}))
    assert [each["proxy"] for each in said if each["log_level"] == "error"] == [ONE]
    assert [len(plane.pushes(node)) for node in NODES] == [0, 1, 0]


async def test_what_is_noted_while_others_are_entered_is_entered_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a proxy whose earlier entries have just been: nothing else asks for it."""
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
