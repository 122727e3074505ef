"""Tests of state that streams share: equal state is one object, and a push costs only its changes."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.xds.protocol.counted_lookups import counted_looks
from xds.protocol.delta import DeltaStream
from xds.protocol.resources import layers, resources
from xds.protocol.resources.resource import (
    CLUSTER,
    ENDPOINT,
    LISTENER,
    ROUTE,
    Resource,
    ResourceName,
    TypeUrl,
    Version,
)
from xds.protocol.resources.resource_set import ResourceSet
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.sotw import AdsStream
from xds.protocol.subscription import FULL_STATE
from xds.protocol.type_state import Channel
from xds.protocol.wire import NO_NONCE, DeltaRequest, Rejection, Request, Response

Make = Callable[..., Resource]
AnyStream = AdsStream | DeltaStream

TYPES = (CLUSTER, ENDPOINT, LISTENER, ROUTE)
BOTH = pytest.mark.parametrize("kind", [AdsStream, DeltaStream])


def _resource(type_url: TypeUrl, number: int, content: int = 0) -> Resource:
    name = ResourceName(f"service-{number:04}")
    needed = {CLUSTER: ENDPOINT, LISTENER: ROUTE}.get(type_url)
    needs = () if needed is None else ((needed, name),)
    ttl = 5.0 if content == 4 and type_url == LISTENER else None
    return Resource(
        type_url, name, Version(f"{number}-{content}"), b"", needs, content == 3 and type_url == CLUSTER, ttl
    )


def _service(number: int, content: int = 0) -> list[Resource]:
    return [_resource(type_url, number, content) for type_url in TYPES]


def _names(numbers: Iterable[int]) -> tuple[ResourceName, ...]:
    return tuple(ResourceName(f"service-{number:04}") for number in sorted(numbers))


class _Client:
    """Client with endpoints and routes by name, the rest by wildcard; answers when `answer` is called."""

    def __init__(self, kind: type[AnyStream]) -> None:
        self.stream = kind()
        self.inbox: list[Response] = []
        self.heard: list[Response] = []
        self.names: dict[TypeUrl, tuple[ResourceName, ...]] = {}

    def take(self, responses: list[Response]) -> None:
        """Record responses."""
        self.heard += responses
        self.inbox += responses

    def ask(self, type_url: TypeUrl, names: tuple[ResourceName, ...]) -> None:
        """Request exactly these names from now on."""
        before, self.names[type_url] = self.names.get(type_url, ()), names
        match self.stream:
            case AdsStream() as sotw:
                nonce = next((r.nonce for r in reversed(self.heard) if r.type_url == type_url), NO_NONCE)
                self.take(sotw.on_request(Request(type_url, names, nonce=nonce)))
            case DeltaStream() as delta:
                more = tuple(name for name in names if name not in before)
                less = tuple(name for name in before if name not in names)
                self.take(delta.on_request(DeltaRequest(type_url, more, less)))

    def answer(self, rejection: Rejection | None = None) -> None:
        """Answer the oldest response."""
        if not self.inbox:
            return
        response = self.inbox.pop(0)
        match self.stream:
            case AdsStream() as sotw:
                names = self.names[response.type_url]
                self.take(
                    sotw.on_request(
                        Request(response.type_url, names, nonce=response.nonce, rejection=rejection)
                    )
                )
            case DeltaStream() as delta:
                self.take(
                    delta.on_request(
                        DeltaRequest(response.type_url, nonce=response.nonce, rejection=rejection)
                    )
                )

    def settle(self) -> None:
        """Accept all responses."""
        while self.inbox:
            self.answer()

    def begin(self, snapshot: Snapshot, numbers: Iterable[int]) -> "_Client":
        """Request everything of the snapshot."""
        self.take(self.stream.on_snapshot(snapshot))
        for type_url in TYPES:
            self.ask(type_url, () if type_url in FULL_STATE else _names(numbers))
            self.settle()
        return self


@BOTH
@pytest.mark.parametrize("count", [5, 300])
def test_client_that_holds_everything_shares_the_snapshots_own_objects(
    kind: type[AnyStream], count: int
) -> None:
    """This is true after the first answers, changes, a removal and a corrected rejection."""
    everyone = ResourceSet.of(resource for number in range(count) for resource in _service(number))
    own = ResourceSet.of(_service(9000))
    snapshot = Snapshot.joined((everyone, own))
    client = _Client(kind).begin(snapshot, (*range(count), 9000))
    steps = (
        (everyone := everyone.changed(_service(1, 1)), (*range(count), 9000)),
        (everyone := everyone.changed(_service(8000)), (*range(count), 8000, 9000)),
        (everyone.changed(removed=[(t, _names([1])[0]) for t in TYPES]), (0, *range(2, count), 8000, 9000)),
    )
    for changed, numbers in steps:
        snapshot = Snapshot.joined((changed, own))
        client.take(client.stream.on_snapshot(snapshot))
        client.settle()
        for type_url in (ENDPOINT, ROUTE):
            client.ask(type_url, _names(numbers))
        client.settle()
        _assert_shared(client, snapshot)
    snapshot = Snapshot.joined((changed.changed([_resource(ROUTE, 2, 1)]), own), snapshot)
    client.take(client.stream.on_snapshot(snapshot))
    client.answer(Rejection(13, "no"))
    assert client.stream.channel(ROUTE).rejection is not None
    mended = Snapshot.joined((changed.changed([_resource(ROUTE, 2, 2)]), own), snapshot)
    client.take(client.stream.on_snapshot(mended))
    client.settle()
    _assert_shared(client, mended)


def _assert_shared(client: _Client, snapshot: Snapshot) -> None:
    for type_url in TYPES:
        channel = client.stream.channel(type_url)
        assert channel.client_versions is snapshot.versions(type_url), type_url
        assert not channel.subscription.names or channel.subscription.names is snapshot.versions(type_url)
        assert (channel.unanswered, channel.overtaken, channel.blame) == ((), (), None)


@BOTH
def test_push_cost_does_not_grow_with_the_held_resources(kind: type[AnyStream]) -> None:
    """A change of one service costs 50 streams as many lookups with 200 services as with 800."""
    counted = {}
    for count in (200, 800):
        everyone = ResourceSet.of(resource for number in range(count) for resource in _service(number))
        own = [ResourceSet.of(_service(9000 + group)) for group in range(10)]
        snapshots = [Snapshot.joined((everyone, mine)) for mine in own]
        clients = [_Client(kind).begin(snapshots[n % 10], (*range(count), 9000 + n % 10)) for n in range(50)]
        with counted_looks() as looks:
            changed = everyone.changed([_resource(ENDPOINT, 7, 1), _resource(ROUTE, 7, 1)])
            after = [Snapshot.joined((changed, mine), old) for mine, old in zip(own, snapshots, strict=True)]
            for n, client in enumerate(clients):
                client.take(client.stream.on_snapshot(after[n % 10]))
                client.settle()
        counted[count] = looks.count
        assert {len(client.heard) for client in clients} == {6}

    assert counted[800] == counted[200]


@dataclass(frozen=True)
class _Publish:
    content: Mapping[int, int]


@dataclass(frozen=True)
class _Ask:
    type_url: TypeUrl
    numbers: frozenset[int]


@dataclass(frozen=True)
class _Answer:
    accepts: bool


@dataclass(frozen=True)
class _Pass:
    """Passing time: the deadline of awaited answers, and heartbeats."""


_STEPS = st.lists(
    st.one_of(
        st.builds(_Publish, st.dictionaries(st.integers(0, 12), st.integers(0, 4), max_size=8)),
        st.builds(_Ask, st.sampled_from(TYPES), st.frozensets(st.integers(0, 12), max_size=8)),
        st.builds(_Answer, st.booleans()),
        st.just(_Pass()),
    ),
    max_size=30,
)


@BOTH
@given(_STEPS)
def test_joined_and_plain_snapshots_lead_to_the_same_responses(
    kind: type[AnyStream], steps: list[_Publish | _Ask | _Answer | _Pass]
) -> None:
    """Equal requests and answers get equal responses, whatever parts a snapshot is joined from."""
    plain, joined = _Client(kind), _Client(kind)
    parts = [ResourceSet.of(()), ResourceSet.of(()), ResourceSet.of(())]
    with pytest.MonkeyPatch.context() as patch:
        for module in (layers, resources):
            patch.setattr(module, "FLAT", 2)
        for step in steps:
            if isinstance(step, _Publish):
                parts = [_part(part, number, step.content) for number, part in enumerate(parts)]
                content = [resource for n, c in step.content.items() for resource in _service(n, c)]
                plain.take(plain.stream.on_snapshot(Snapshot.of(content)))
                joined.take(joined.stream.on_snapshot(Snapshot.joined(parts)))
            for client in (plain, joined):
                _do(client, step)
            assert joined.heard == plain.heard
            assert list(map(_known, joined.stream.channels)) == list(map(_known, plain.stream.channels))


def _part(part: ResourceSet, number: int, content: Mapping[int, int]) -> ResourceSet:
    """Return one of three parts of a snapshot, changed from the previous part."""
    mine = [resource for n, c in content.items() if n % 3 == number for resource in _service(n, c)]
    names = {(resource.type_url, resource.name) for resource in mine}
    gone = [(t, name) for t, table in part.tables.items() for name in table if (t, name) not in names]
    return part.changed(mine, gone)


def _do(client: _Client, step: _Publish | _Ask | _Answer | _Pass) -> None:
    match step:
        case _Publish():
            pass
        case _Ask():
            client.ask(step.type_url, _names(step.numbers))
        case _Answer():
            client.answer(None if step.accepts else Rejection(13, "no"))
        case _Pass():
            client.take(client.stream.on_deadline())
            if isinstance(client.stream, DeltaStream):
                client.take(client.stream.on_heartbeat())


def _known(channel: Channel) -> tuple[object, ...]:
    subscription = channel.subscription
    return (
        channel.type_url,
        dict(channel.client_versions),
        set(subscription.names),
        subscription.text,
        channel.gone,
    )
