"""Property test of clients that subscribe to listeners and clusters by name and by wildcard in turn.

The model follows "How the client specifies what resources to return" on the page of the xDS protocol.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import starmap

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.hypothesis_profiles import examples
from xds.protocol.delta import DeltaStream
from xds.protocol.resources.resource import CLUSTER, LISTENER, Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.subscription import WILDCARD
from xds.protocol.wire import DeltaRequest, Response

Make = Callable[..., Resource]

TYPES = (CLUSTER, LISTENER)
asked = st.tuples(
    st.sampled_from(TYPES),
    st.sets(st.sampled_from((*"abc", WILDCARD)), min_size=1, max_size=2),
    st.booleans(),
)
edition = st.tuples(st.integers(0, 2), st.booleans(), st.sampled_from((None, None, 2.0, 5.0)))
content = st.dictionaries(st.tuples(st.sampled_from(TYPES), st.sampled_from("abc")), edition)
HEARTBEAT = "heartbeat"
steps = st.lists(asked | content | st.none() | st.just(HEARTBEAT), max_size=12)


class Client:
    """Model client with its subscriptions and resources; it answers in order when the test calls `answer`."""

    lives: dict[tuple[TypeUrl, ResourceName], tuple[Version, float | None]]
    """For how long it was told to keep what, and in which version."""

    def __init__(self) -> None:
        self.lives = {}
        self.stream = DeltaStream()
        self.wanted: dict[TypeUrl, set[str]] = {type_url: set() for type_url in TYPES}
        self.held: dict[TypeUrl, dict[ResourceName, Version]] = {type_url: {} for type_url in TYPES}
        self.inbox: list[Response] = []
        self.asked: set[TypeUrl] = set()

    def ask(self, type_url: TypeUrl, names: set[str], *, more: bool) -> None:
        """Subscribe or unsubscribe names; forget resources that are no longer subscribed.

        A first request always subscribes, because without names it would be the old form of the wildcard.
        """
        wanted, resource_names = self.wanted[type_url], tuple(map(ResourceName, sorted(names)))
        if more or type_url not in self.asked:
            self.asked.add(type_url)
            wanted |= names
            request = DeltaRequest(type_url, resource_names)
        else:
            wanted -= names
            request = DeltaRequest(type_url, (), resource_names)
            for name in [
                resource_name
                for resource_name in self.held[type_url]
                if not self.wants(type_url, resource_name)
            ]:
                del self.held[type_url][name]
            self.lives = {item: life for item, life in self.lives.items() if self.wants(*item)}
        self.take(self.stream.on_request(request))

    def wants(self, type_url: TypeUrl, name: ResourceName) -> bool:
        """Return whether the client subscribes to a name."""
        return not self.wanted[type_url].isdisjoint((name, WILDCARD))

    def take(self, responses: list[Response]) -> None:
        """Check responses when they arrive, before they are answered."""
        for response in responses:
            names = [resource.name for resource in response.resources]
            assert len(names) == len({*names, *response.removed}) - len(response.removed), "D18"
            assert all(self.wants(response.type_url, name) for name in names), (
                "sent what nobody is subscribed to"
            )
            for one in response.resources:
                shown = not one.on_demand or one.name in self.wanted[response.type_url]
                assert shown or response.heartbeat, "N7"
                self.lives[response.type_url, one.name] = one.version, one.ttl_seconds
            for name in response.removed:
                self.lives.pop((response.type_url, name), None)
        self.inbox += responses

    def hear(self) -> None:
        """Take heartbeats; check that each resource with a time to live is in them, in its last version."""
        before, beats = dict(self.lives), self.stream.on_heartbeat()
        self.take(beats)
        heard = {(beat.type_url, item.name): item.version for beat in beats for item in beat.resources}
        assert heard.items() >= {key: version for key, (version, ttl) in before.items() if ttl}.items(), "N5"
        assert all(beat.heartbeat and not beat.removed for beat in beats)

    def answer(self) -> None:
        """Read a response and accept it."""
        response = self.inbox.pop(0)
        for item in () if response.heartbeat else response.resources:
            if self.wants(response.type_url, item.name):
                self.held[response.type_url][item.name] = item.version
        for name in response.removed:
            self.held[response.type_url].pop(name, None)
        self.take(self.stream.on_request(DeltaRequest(response.type_url, nonce=response.nonce)))

    def expected(self, snapshot: Snapshot) -> dict[TypeUrl, dict[ResourceName, Version]]:
        """Return the versions that the client should hold."""
        return {
            type_url: {
                item.name: item.version
                for item in snapshot.ordered(type_url)
                if (item.name in self.wanted[type_url])
                or (WILDCARD in self.wanted[type_url] and not item.on_demand)
            }
            for type_url in TYPES
        }


def resource(make: Make, key: tuple[TypeUrl, str], edition: tuple[int, bool, float | None]) -> Resource:
    """Create a resource; only clusters can be on demand."""
    number, on_demand, ttl = edition
    return replace(make(*key, number), on_demand=on_demand and key[0] == CLUSTER, ttl_seconds=ttl)


@settings(max_examples=examples(30, fresh=1600))
@given(steps)
def test_d7_d18_client_holds_the_listeners_and_clusters_that_it_subscribes_to(
    make: Make,
    found: list[
        tuple[TypeUrl, set[str], bool]
        | dict[tuple[TypeUrl, str], tuple[int, bool, float | None]]
        | str
        | None
    ],
) -> None:
    """Names and wildcards come in any order, with changes between them and late answers.

    The client sends no request while a response of the type is in flight, because the model could not judge
    a response to an older subscription.
    """
    client, snapshot = Client(), Snapshot.of(())
    client.take(client.stream.on_snapshot(snapshot))
    for step in found:
        match step:
            case None:
                if client.inbox:
                    client.answer()
            case str():
                client.hear()
            case dict():
                snapshot = Snapshot.of(starmap(partial(resource, make), step.items()))
                client.take(client.stream.on_snapshot(snapshot))
            case (type_url, names, more):
                while any(response.type_url == type_url for response in client.inbox):
                    client.answer()
                client.ask(type_url, names, more=more)
    while client.inbox:
        client.answer()
    mortal = {
        (type_url, item.name): item.ttl_seconds
        for type_url in TYPES
        for item in snapshot.ordered(type_url)
        if item.ttl_seconds and item.name in client.held[type_url]
    }
    # A resource that now has a time to live gets it with the first heartbeat.
    assert {key: ttl for key, (_, ttl) in client.lives.items() if ttl}.items() <= mortal.items()
    client.hear()
    assert client.held == client.expected(snapshot)
    assert {key: ttl for key, (_, ttl) in client.lives.items() if ttl} == mortal
