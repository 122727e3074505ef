"""Property tests of random conversations with a model client, which must end with the right resources."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from xds.protocol.delta import DeltaStream
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
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.sotw import AdsStream
from xds.protocol.subscription import FULL_STATE
from xds.protocol.wire import NO_NONCE, NO_VERSION, DeltaRequest, Nonce, Rejection, Request, Response

Make = Callable[..., Resource]
Held = dict[TypeUrl, dict[ResourceName, Version]]

TYPES = (CLUSTER, ENDPOINT, LISTENER, ROUTE)
NAMES = ("a", "b", "c")


@dataclass
class Client:
    """Model client: subscribes to endpoints and routes by name, to clusters and listeners by wildcard."""

    wanted: dict[TypeUrl, set[str]] = field(default_factory=dict)
    held: Held = field(default_factory=lambda: {type_url: {} for type_url in TYPES})
    inbox: deque[Response] = field(default_factory=deque)
    latest: dict[TypeUrl, tuple[Nonce, Version]] = field(default_factory=dict)
    stream: AdsStream | DeltaStream = field(default_factory=AdsStream)
    hates: frozenset[Version] = frozenset()

    def push(self, snapshot: Snapshot) -> None:
        """Give the server another snapshot."""
        self._receive(self.stream.on_snapshot(snapshot))

    def subscribe(self, type_url: TypeUrl, names: set[str]) -> None:
        """Request exactly these names of a type; clusters and listeners always by wildcard."""
        before = self.wanted.get(type_url)
        if type_url in FULL_STATE:
            names = set()
        elif before is None and not names:
            return
        self.wanted[type_url] = names
        for name in set(self.held[type_url]) - names if type_url not in FULL_STATE else ():
            del self.held[type_url][name]
        match self.stream:
            case AdsStream():
                self._send(type_url)
            case DeltaStream() as delta:
                request = DeltaRequest(
                    type_url, self._names(names - (before or set())), self._names((before or set()) - names)
                )
                self._receive(delta.on_request(request))

    def answer(self, *, accept: bool = True) -> None:
        """Answer the next response, if there is one; a rejected response changes nothing.

        A response with a hated version is always rejected.
        """
        if not self.inbox:
            return
        response = self.inbox.popleft()
        accept = accept and self.hates.isdisjoint(resource.version for resource in response.resources)
        rejection = None if accept else Rejection(13, "no")
        if accept:
            self._apply(response)
        match self.stream:
            case AdsStream():
                self.latest[response.type_url] = (response.nonce, response.version)
                self._send(response.type_url, rejection)
            case DeltaStream() as delta:
                self._receive(
                    delta.on_request(
                        DeltaRequest(response.type_url, nonce=response.nonce, rejection=rejection)
                    )
                )

    def reconnect(self, snapshot: Snapshot) -> None:
        """Lose the stream, open another one, and request everything again."""
        self.inbox.clear()
        self.latest.clear()
        match self.stream:
            case AdsStream():
                self.stream = AdsStream()
                self.push(snapshot)
                for type_url in self.wanted:
                    self._send(type_url)
            case DeltaStream():
                self.stream = DeltaStream()
                self.push(snapshot)
                for type_url, names in self.wanted.items():
                    request = DeltaRequest(
                        type_url, self._names(names), initial_versions=dict(self.held[type_url])
                    )
                    self._receive(self.stream.on_request(request))

    def settle(self) -> None:
        """Accept responses until none is left."""
        for _ in range(200):
            if not self.inbox:
                return
            self.answer()
        raise AssertionError("the server never falls silent")

    def _send(self, type_url: TypeUrl, rejection: Rejection | None = None) -> None:
        assert isinstance(self.stream, AdsStream)
        nonce, version = self.latest.get(type_url, (NO_NONCE, NO_VERSION))
        request = Request(type_url, self._names(self.wanted[type_url]), version, nonce, rejection)
        self._receive(self.stream.on_request(request))

    def _receive(self, responses: list[Response]) -> None:
        for response in responses:
            names = [resource.name for resource in response.resources]
            assert len(names) == len(set(names)), "W15: a name twice"
            assert not set(names) & set(response.removed), "D18: sent and removed at once"
        self.inbox.extend(responses)

    def _apply(self, response: Response) -> None:
        held = self.held[response.type_url]
        if isinstance(self.stream, AdsStream) and response.type_url in FULL_STATE:
            held.clear()
        for resource in response.resources:
            if response.type_url in FULL_STATE or resource.name in self.wanted[response.type_url]:
                held[resource.name] = resource.version
        for name in response.removed:
            held.pop(name, None)

    def _names(self, names: set[str]) -> tuple[ResourceName, ...]:
        return tuple(ResourceName(name) for name in sorted(names))


contents = st.dictionaries(
    st.tuples(st.sampled_from(TYPES), st.sampled_from(NAMES)), st.integers(0, 2), max_size=8
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("push"), contents),
        st.tuples(st.just("subscribe"), st.sampled_from(TYPES), st.sets(st.sampled_from(NAMES))),
        st.tuples(st.just("answer"), st.booleans()),
        st.tuples(st.just("reconnect")),
        st.tuples(st.just("deadline")),
    ),
    max_size=25,
)


def _expected(client: Client, snapshot: Snapshot) -> Held:
    return {
        type_url: {
            name: resource.version
            for name, resource in snapshot.resources(type_url).items()
            if type_url in client.wanted and (type_url in FULL_STATE or name in client.wanted[type_url])
        }
        for type_url in TYPES
    }


def _run(client: Client, script: list[tuple[object, ...]], make: Make) -> Snapshot:
    """Run a script; return the last snapshot."""
    snapshot = Snapshot.of(())
    client.push(snapshot)
    for step in script:
        match step:
            case "push", dict() as wanted:
                snapshot = Snapshot.of(make(type_url, name, n) for (type_url, name), n in wanted.items())
                client.push(snapshot)
            case "subscribe", str() as type_url, set() as names:
                client.subscribe(TypeUrl(type_url), names)
            case "answer", bool() as accept:
                client.answer(accept=accept)
            case "reconnect", *_:
                client.reconnect(snapshot)
            case "deadline", *_:
                client._receive(client.stream.on_deadline())
            case _:
                raise AssertionError(step)
    return snapshot


def _without_rejections(script: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return [("answer", True) if step[0] == "answer" else step for step in script]


def _forget_missing(held: Held, expected: Held) -> Held:
    """Drop unexpected endpoints and routes, because state of the world cannot remove them (W10)."""
    return {
        type_url: {
            name: version
            for name, version in named.items()
            if type_url in FULL_STATE or name in expected[type_url]
        }
        for type_url, named in held.items()
    }


@given(steps)
def test_w15_w17_client_that_accepts_everything_holds_its_part_of_the_snapshot(
    make: Make, script: list[tuple[object, ...]]
) -> None:
    """This is state of the world, after any sequence of pushes, subscriptions, answers and reconnects."""
    client = Client()
    snapshot = _run(client, _without_rejections(script), make)
    client.settle()

    expected = _expected(client, snapshot)
    assert _forget_missing(client.held, expected) == expected
    assert client.stream.on_snapshot(snapshot) == []


@given(steps)
def test_d13_d18_client_that_accepts_everything_holds_its_part_of_the_snapshot(
    make: Make, script: list[tuple[object, ...]]
) -> None:
    """This is incremental xDS, after any sequence of steps, and includes removals."""
    client = Client(stream=DeltaStream())
    snapshot = _run(client, _without_rejections(script), make)
    client.settle()

    assert client.held == _expected(client, snapshot)
    assert client.stream.on_snapshot(snapshot) == []


@given(steps, st.booleans())
def test_w6_d12_rejection_makes_no_loop_and_a_new_snapshot_heals_it(
    make: Make, script: list[tuple[object, ...]], sotw: bool
) -> None:
    """The server becomes silent after rejections.

    When every resource is new, an accepting client is correct again.
    """
    client = Client(stream=AdsStream() if sotw else DeltaStream())
    _run(client, script, make)
    client.settle()
    healed = Snapshot.of(make(type_url, name, 99) for type_url in TYPES for name in NAMES)
    client.push(healed)
    client.settle()

    assert client.held == _expected(client, healed)


@given(steps, st.booleans())
def test_d12_w6_client_is_correct_after_only_the_bad_resources_change(
    make: Make, script: list[tuple[object, ...]], sotw: bool
) -> None:
    """A client that applies no part of a response with a bad resource must still get the neighbours.

    They have not changed, so the server must send them again of its own accord.
    """
    bad = frozenset(make(type_url, name, 2).version for type_url in TYPES for name in NAMES)
    client = Client(stream=AdsStream() if sotw else DeltaStream(), hates=bad)
    last = _run(client, _without_rejections(script), make)
    client.settle()
    mended = Snapshot.of(
        make(type_url, name, 3) if resource.version in bad else resource
        for type_url in TYPES
        for name, resource in last.resources(type_url).items()
    )
    client.push(mended)
    client.settle()

    expected = _expected(client, mended)
    assert (_forget_missing(client.held, expected) if sotw else client.held) == expected


@given(steps, st.booleans())
def test_o2_o8_route_never_refers_to_a_cluster_that_the_client_lacks(
    make: Make, script: list[tuple[object, ...]], sotw: bool
) -> None:
    """After each answer, the client holds the cluster of its current route (O2, O8)."""
    client = Client(stream=AdsStream() if sotw else DeltaStream())
    client.push(_linked(make, 0))
    for type_url in TYPES:
        client.subscribe(type_url, {"r"} if type_url == ROUTE else {"c0", "c1", "c2"})
        client.settle()
    for count, step in enumerate(script):
        client.push(_linked(make, count % 3))
        if step[0] == "answer":
            client.answer()
            assert _reference(make, client) in client.held[CLUSTER]
    client.settle()
    assert _reference(make, client) in client.held[CLUSTER]


def _linked(make: Make, number: int) -> Snapshot:
    """Create a cluster, its endpoints and a route to it; the route's content is the number."""
    return Snapshot.of((make(CLUSTER, f"c{number}"), make(ENDPOINT, f"c{number}"), make(ROUTE, "r", number)))


def _reference(make: Make, client: Client) -> ResourceName:
    """Return the cluster of the route that the client holds."""
    held = client.held[ROUTE][ResourceName("r")]
    return next(ResourceName(f"c{n}") for n in range(3) if make(ROUTE, "r", n).version == held)
