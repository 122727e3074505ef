"""Tests of open waves: their records, and how long they wait for answers."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from meshwright.admin.metrics.registry import Metrics
from meshwright.delivery.history.history import PushHistory
from meshwright.delivery.history.open_waves import DEADLINE, PUSHES, QUIET, REJECTED, WAVES, OpenWaves
from meshwright.delivery.history.push import Answer
from meshwright.delivery.history.wave_record import PushRecord, WaveEnd, WaveRecord
from meshwright.delivery.proxies.registry import ProxyRegistry
from meshwright.delivery.publisher import Publisher
from meshwright.delivery.quarantine.quarantine import Quarantine
from meshwright.delivery.snapshots.published_snapshots import Step
from meshwright.delivery.timing.time_slices import Slices
from meshwright.delivery.wave import Cause, Change, Wave
from meshwright.mesh.kinds import TRAFFIC_TARGET
from tests.tools.hypothesis_profiles import examples
from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.protocol.resources.resource import ROUTE, Resource, ResourceName, Version
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.wire import Nonce, Rejection, Response
from xds.stream_status import Variant

GROUP, ROUTES = GroupKey("g"), ResourceName("routes")
DATE = datetime(2026, 1, 2, tzinfo=UTC)
CAUSES = (Cause(TRAFFIC_TARGET, "shop/t", "t.yaml:1 (document 1)", Change.CHANGED),)
NO = Rejection(13, "no such regex")


class Mesh:
    """A group of connected proxies, everything that delivers to them, and a manual clock."""

    def __init__(self, proxies: int = 2, variant: Variant = Variant.DELTA) -> None:
        self.now = 0.0
        self.nodes = [NodeKey(f"{number}.store.shop") for number in range(proxies)]
        self.waves = OpenWaves(lambda: self.now)
        self.cache = SnapshotCache()
        self.history = PushHistory(self.cache, ProxyRegistry(lambda: DATE).proxy, self.waves)
        answer, quarantine = self.history.published, Quarantine(lambda _: None)
        self.publishing = Publisher(self.cache, quarantine, Metrics(), answer, self.waves)
        self.version = 0
        for node in self.nodes:
            self.cache.watch(node, lambda: None)
        self.variant = variant

    async def served(self) -> "Mesh":
        """Connect every proxy, and send it what it asked for."""
        await self.publish(members=True)
        for node in self.nodes:
            self.history.opened(node, self.variant, self.now)
            self.answer(node, self.send(node))
        self.now = 100.0
        self.waves.take(self.now)
        return self

    async def publish(self, *, since: float = 0.0, members: bool = False) -> Wave:
        """Publish other routes for all proxies in a wave of no duration; return it with its number."""
        self.version += 1
        snapshot = Snapshot.of((self._routes(),))
        step = Step({GROUP: snapshot}, dict.fromkeys(self.nodes, GROUP) if members else {})
        wave = Wave(0, CAUSES, 0, since or self.now, self.now, DATE)
        await self.publishing.publish(wave, step, Slices())
        return replace(wave, number=self.version)

    def send(self, node: NodeKey) -> Response:
        """Send a proxy the current routes."""
        nonce = Nonce(f"{node}{self.version}{self.now}")
        response = Response(ROUTE, Version(f"{self.version}"), nonce, (self._routes(),))
        self.history.sent(node, response, 100, self.now)
        return response

    def answer(self, node: NodeKey, response: Response, rejection: Rejection | None = None) -> None:
        """Answer a response for a proxy."""
        self.history.answered(node, response, rejection, self.now)

    def take(self, later: float) -> list[WaveRecord]:
        """Advance the clock by `later` seconds; return the records of the waves that ended."""
        self.now += later
        return self.waves.take(self.now)

    def _routes(self) -> Resource:
        return Resource(ROUTE, ROUTES, Version(f"{self.version}"), f"{self.version}".encode())


def _push(node: NodeKey, wave: Wave, sent: float, ended: float, answer: Answer) -> PushRecord:
    """Return the record of a push of other routes with one wave as a cause."""
    return PushRecord(
        node=node,
        waves=(wave.number,),
        type_url=ROUTE,
        protocol=Variant.DELTA,
        version=Version(f"{wave.number}"),
        added=0,
        changed=1,
        removed=0,
        size=100,
        sent=sent,
        ended=ended,
        answer=answer,
        rejection=NO if answer is Answer.NACK else None,
    )


async def test_wave_is_followed_from_its_event_to_its_last_answer() -> None:
    """The record has one acknowledged and one rejected push, and is returned once."""
    mesh = await Mesh().served()
    one, other = mesh.nodes
    wave = await mesh.publish(since=99.5)
    mesh.now = 100.25
    first = mesh.send(one)
    mesh.now = 100.5
    second = mesh.send(other)
    mesh.answer(one, first)
    mesh.now = 101.0
    mesh.answer(other, second, NO)
    assert mesh.take(QUIET - 0.5) == []
    (record,) = mesh.take(0.5)
    assert record == WaveRecord(
        wave=wave,
        publishing=100.0,
        published=100.0,
        ended=101.0,
        ending=WaveEnd.ANSWERED,
        touched=2,
        reached=2,
        answers=Counter({Answer.ACK: 1, Answer.NACK: 1}),
        pushes=(
            _push(one, wave, 100.25, 100.5, Answer.ACK),
            _push(other, wave, 100.5, 101.0, Answer.NACK),
        ),
    )
    assert mesh.take(DEADLINE) == []


async def test_wave_waits_for_a_missing_answer_until_the_deadline() -> None:
    """The pending push and the wave end at the deadline."""
    mesh = await Mesh().served()
    one, other = mesh.nodes
    wave = await mesh.publish()
    mesh.answer(one, mesh.send(one))
    mesh.send(other)
    assert mesh.take(DEADLINE - 1) == []
    (record,) = mesh.take(1)
    assert (record.ending, record.ended) == (WaveEnd.LATE, 100.0 + DEADLINE)
    assert record.pushes == (
        _push(one, wave, 100.0, 100.0, Answer.ACK),
        _push(other, wave, 100.0, 100.0 + DEADLINE, Answer.PENDING),
    )
    assert record.answers == {Answer.ACK: 1, Answer.PENDING: 1}


async def test_proxy_that_is_sent_nothing_is_waited_for_and_not_counted_as_reached() -> None:
    """The wave is recorded at the deadline, but its end is its last answer."""
    mesh = await Mesh().served()
    await mesh.publish()
    mesh.now = 101.0
    mesh.answer(mesh.nodes[0], mesh.send(mesh.nodes[0]))
    assert mesh.take(DEADLINE - 2) == []
    (record,) = mesh.take(1)
    assert (record.ending, record.ended, record.touched, record.reached) == (WaveEnd.LATE, 101.0, 2, 1)


async def test_overtaken_push_with_a_late_answer_is_counted_once() -> None:
    """Its first outcome counts."""
    mesh = await Mesh(1, Variant.SOTW).served()
    await mesh.publish()
    (node,) = mesh.nodes
    first, second = mesh.send(node), mesh.send(node)
    mesh.answer(node, first)
    mesh.answer(node, second)
    (record,) = mesh.take(QUIET)
    assert [push.answer for push in record.pushes] == [Answer.OVERTAKEN]
    assert record.answers == {Answer.OVERTAKEN: 1}


async def test_push_with_two_waves_as_causes_is_recorded_in_both() -> None:
    """A slow proxy is sent both changes at once, and the push of an earlier wave is overtaken."""
    mesh = await Mesh(1, Variant.SOTW).served()
    first = await mesh.publish()
    mesh.send(mesh.nodes[0])
    second = await mesh.publish()
    third = await mesh.publish()
    mesh.now = 101.0
    mesh.answer(mesh.nodes[0], mesh.send(mesh.nodes[0]))
    records = {wave_record.wave.number: wave_record for wave_record in mesh.take(QUIET)}
    assert records.keys() == {first.number, second.number, third.number}
    assert records[first.number].answers == {Answer.OVERTAKEN: 1}
    both = records[second.number].pushes
    assert both == records[third.number].pushes
    assert [(push_record.waves, push_record.answer) for push_record in both] == [
        ((third.number, second.number), Answer.ACK)
    ]


async def test_wave_does_not_wait_for_an_ended_stream() -> None:
    """The push ends together with its stream."""
    mesh = await Mesh(1).served()
    wave = await mesh.publish()
    mesh.send(mesh.nodes[0])
    mesh.now = 100.5
    mesh.history.closed(mesh.nodes[0], mesh.now)
    (record,) = mesh.take(QUIET)
    assert record.pushes == (_push(mesh.nodes[0], wave, 100.0, 100.5, Answer.ENDED),)


async def test_record_lists_the_first_pushes_and_rejections_and_counts_all() -> None:
    """The numbers of listed pushes and rejections are limited, whatever the number of proxies."""
    mesh = await Mesh(PUSHES + 3 * REJECTED).served()
    await mesh.publish()
    sent = [(node, mesh.send(node)) for node in mesh.nodes]
    for number, (node, response) in enumerate(sent):
        mesh.answer(node, response, NO if number >= PUSHES + REJECTED else None)
    (record,) = mesh.take(QUIET)
    assert (record.touched, record.reached) == (len(mesh.nodes), len(mesh.nodes))
    assert record.answers == {Answer.ACK: PUSHES + REJECTED, Answer.NACK: 2 * REJECTED}
    answers = [push.answer for push in record.pushes]
    assert answers == [Answer.ACK] * PUSHES + [Answer.NACK] * REJECTED


async def test_wave_beyond_the_limit_ends_the_oldest_wave() -> None:
    """The oldest wave is recorded with the pushes that it had so far."""
    mesh = await Mesh().served()
    first = await mesh.publish()
    for _ in range(WAVES):
        await mesh.publish()
    (record,) = mesh.take(0)
    assert (record.wave, record.ending, record.pushes) == (first, WaveEnd.CROWDED_OUT, ())
    assert len(mesh.take(DEADLINE)) == WAVES


async def test_wave_that_publishes_nothing_has_no_record() -> None:
    """Such a wave concerns no proxy, so there is no push to record."""
    mesh = await Mesh().served()
    await mesh.publishing.publish(Wave(0, CAUSES, 0, 0.0, 0.0, DATE), Step({}, {}), Slices())
    assert mesh.take(DEADLINE) == []


Moves = st.lists(
    st.tuples(
        st.sampled_from(("publish", "send", "ack", "nack", "close")),
        st.integers(0, 2),
        st.floats(0, 3, width=16),
    ),
    max_size=40,
)


@given(moves=Moves, variant=st.sampled_from(Variant))
@settings(max_examples=examples(30, fresh=240))
async def test_each_wave_is_recorded_once_with_pushes_inside_its_duration(
    moves: list[tuple[str, int, float]], variant: Variant
) -> None:
    """For any events, each push with the wave as a cause is counted and lies within the wave."""
    mesh = await Mesh(3, variant).served()
    open_, records, waves = {node: list[Response]() for node in mesh.nodes}, list[WaveRecord](), 0
    for what, number, later in moves:
        records += mesh.take(later)
        node = mesh.nodes[number]
        match what:
            case "publish":
                await mesh.publish()
                waves += 1
            case "send":
                open_[node].append(mesh.send(node))
            case "close":
                mesh.history.closed(node, mesh.now)
                mesh.history.opened(node, variant, mesh.now)
                open_[node].clear()
            case _:
                for response in open_[node][:1]:
                    mesh.answer(node, response, NO if what == "nack" else None)
                del open_[node][:1]
    records += mesh.take(DEADLINE)
    assert sorted(wave_record.wave.number for wave_record in records) == [
        2 + number for number in range(waves)
    ]
    for record in records:
        assert len(record.pushes) == sum(record.answers.values())
        assert record.reached == len({push.node for push in record.pushes})
        assert record.wave.since <= record.publishing <= record.published <= record.ended
        for push in record.pushes:
            assert record.publishing <= push.sent <= push.ended <= record.ended
            assert record.wave.number in push.waves
