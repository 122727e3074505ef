"""Tests of steps that streams in the same state share: computed once, with unchanged responses."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.xds.conftest import make
from xds.protocol.delta import DeltaStream
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, Resource, ResourceName, TypeUrl
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.sotw import AdsStream
from xds.protocol.type_state import Channel
from xds.protocol.wire import DeltaRequest, Nonce, Rejection, Request, Response

NAMES = tuple(map(ResourceName, "abc"))
NO = Rejection(3, "no")

AnyStream = AdsStream | DeltaStream
Content = tuple[int | None, ...]
"""The content of each resource of NAMES; None where it is not there."""


@dataclass
class Client:
    """A stream with its client's state: names, unanswered responses and received responses."""

    stream: AnyStream
    quick: bool
    names: tuple[ResourceName, ...] = ()
    unanswered: list[Response] = field(default_factory=list)
    said: list[tuple[object, ...]] = field(default_factory=list)

    def got(self, responses: Sequence[Response]) -> None:
        """Record responses; check that the resources of a response with a table are those of the table."""
        assert all(
            response.table is None or response.resources == response.table.ordered for response in responses
        )
        self.unanswered += responses
        self.said += [(r.type_url, r.version, r.nonce, r.resources, r.removed) for r in responses]

    def publish(self, snapshot: Snapshot) -> None:
        """Give the stream another snapshot."""
        self.got(self.stream.on_snapshot(snapshot))

    def ask(self, names: tuple[ResourceName, ...], type_url: TypeUrl = ENDPOINT) -> None:
        """Request exactly these names."""
        gone, self.names = tuple(name for name in self.names if name not in names), names
        last = self.unanswered[-1].nonce if self.unanswered else Nonce("")
        self.unanswered.clear()
        match self.stream:
            case DeltaStream() as delta:
                self.got(delta.on_request(DeltaRequest(type_url, names, gone, nonce=last)))
            case AdsStream() as sotw:
                self.got(sotw.on_request(Request(type_url, names, nonce=last)))

    def answer(self, rejection: Rejection | None = None) -> None:
        """Answer the oldest response."""
        if not self.unanswered:
            return
        response = self.unanswered.pop(0)
        match self.stream:
            case DeltaStream() as delta:
                asked = DeltaRequest(response.type_url, nonce=response.nonce, rejection=rejection)
                if not self.quick or delta.acknowledged(asked) is not response:
                    self.got(delta.on_request(asked))
            case AdsStream() as sotw:
                all_names = Request(
                    response.type_url, self.names, response.version, response.nonce, rejection
                )
                if not self.quick or sotw.acknowledged(all_names) is not response:
                    self.got(sotw.on_request(all_names))


def _snapshot(content: Content) -> Snapshot:
    there = [(n, c) for n, c in zip(NAMES, content, strict=True) if c is not None]
    return Snapshot.of([make(ENDPOINT, name, number) for name, number in there])


ASK = st.tuples(st.just("ask"), st.lists(st.sampled_from(NAMES), unique=True).map(tuple))
ACT = st.one_of(ASK, st.just(("ack",)), st.just(("ack",)), st.just(("nack",)))
CHANGE = st.tuples(*[st.sampled_from([None, 0, 1, 2])] * len(NAMES))
Round = tuple[Content, list[tuple[int, tuple[Any, ...]]]]
ROUND = st.tuples(CHANGE, st.lists(st.tuples(st.integers(0, 3), ACT), max_size=6))


@pytest.mark.parametrize("variants", [(DeltaStream,), (AdsStream,), (AdsStream, DeltaStream)])
@given(rounds=st.lists(ROUND, min_size=1, max_size=12))
def test_streams_that_share_steps_send_the_same_responses_as_single_streams(
    variants: tuple[type[AnyStream], ...], rounds: list[Round]
) -> None:
    """Streams with shared and with own snapshots agree, after random requests and answers."""
    kinds = variants * (4 // len(variants))
    together = [Client(variant(), quick=True) for variant in kinds]
    alone = [Client(variant(), quick=False) for variant in kinds]
    for client in (*together, *alone):
        client.ask(NAMES[:2])
    for content, acts in rounds:
        shared = _snapshot(content)
        for one, other in zip(together, alone, strict=True):
            one.publish(shared)
            other.publish(_snapshot(content))
        for number, act in acts:
            for client in (together[number], alone[number]):
                match act:
                    case ("ask", names):
                        client.ask(names)
                    case ("ack",):
                        client.answer()
                    case _:
                        client.answer(NO)
    for one, other in zip(together, alone, strict=True):
        assert one.said == other.said
        ours, theirs = one.stream.channel(ENDPOINT), other.stream.channel(ENDPOINT)
        assert dict(ours.client_versions) == dict(theirs.client_versions)
        assert (ours.acked_version, ours.rejected) == (theirs.acked_version, theirs.rejected)


def test_removal_is_sent_to_an_incremental_client_after_a_sotw_client() -> None:
    """State of the world does not report removed endpoints, so the two variants must not share this step."""
    sotw, delta = Client(AdsStream(), quick=True), Client(DeltaStream(), quick=True)
    first, after = _snapshot((0, 0, 0)), _snapshot((0, None, 0))
    for client in (sotw, delta):
        client.publish(first)
        client.ask(NAMES)
        client.answer()
        client.said.clear()
    for client in (sotw, delta):
        client.publish(after)
    assert sotw.said == []
    assert [removed for *_, removed in delta.said] == [(NAMES[1],)]


@pytest.mark.parametrize("variant", [DeltaStream, AdsStream])
def test_step_is_computed_once_for_all_streams_in_the_same_state(
    variant: type[AnyStream], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them share one response object; a stream with another subscription has its own."""
    clients = [Client(variant(), quick=True) for _ in range(200)]
    other = Client(variant(), quick=True)
    first = _snapshot((0, 0, 0))
    for client in clients:
        client.publish(first)
        client.ask(NAMES)
        client.answer()
    other.publish(first)
    other.ask(NAMES[:1])
    other.answer()

    made, worked_out, take_news = [], [], Channel.take_news

    def counted(channel: Channel, snapshot: Snapshot) -> tuple[Sequence[Resource], Sequence[Resource]]:
        worked_out.append(channel)
        return take_news(channel, snapshot)

    monkeypatch.setattr(Channel, "take_news", counted)
    for content in ((1, 0, 0), (1, 1, 0), (1, 1, 1)):
        snapshot = _snapshot(content)
        worked_out.clear()
        for client in (*clients, other):
            client.publish(snapshot)
        made.append(len(worked_out))
        assert len({id(client.unanswered[-1]) for client in clients}) == 1
        for client in (*clients, other):
            client.answer()
    assert made == [2, 1, 1]
    assert [len(clients[0].said), len(other.said)] == [4, 2]
    assert len({id(client.stream.channel(ENDPOINT).client_versions) for client in clients}) == 1


def test_ack_with_pending_responses_is_left_to_on_request() -> None:
    """The fast path refuses an ACK for which a pending removal waits, because `on_request` must send it."""
    stream = DeltaStream()
    stream.on_snapshot(Snapshot.of([make(CLUSTER, "a"), make(ENDPOINT, "a")]))
    stream.on_request(DeltaRequest(CLUSTER))
    stream.on_request(DeltaRequest(ENDPOINT, NAMES[:1]))
    (clusters,) = stream.channel(CLUSTER).unanswered
    stream.on_snapshot(Snapshot.of(()))
    ack = DeltaRequest(CLUSTER, nonce=clusters.nonce)
    assert stream.acknowledged(ack) is None
    assert stream.awaiting(CLUSTER, clusters.nonce) is clusters
