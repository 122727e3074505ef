"""Which version of a resource a client has taken: sent is not taken, refused is not, brought along is."""

from collections.abc import Callable

import pytest

from xds.protocol.delta import DeltaStream
from xds.protocol.resources.resource import CLUSTER, LISTENER, Resource, ResourceName, TypeUrl
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.sotw import AdsStream
from xds.protocol.wire import NO_VERSION, DeltaRequest, Rejection, Request, Response

Make = Callable[..., Resource]
NAME = ResourceName("a")


class Client:
    """A client of either variant, which answers one response after the other."""

    def __init__(self, variant: str) -> None:
        self.stream: DeltaStream | AdsStream = DeltaStream() if variant == "delta" else AdsStream()

    def published(self, *resources: Resource) -> list[Response]:
        """Have a snapshot be in force."""
        return self.stream.on_snapshot(Snapshot.of(resources))

    def asks(self, type_url: TypeUrl) -> list[Response]:
        """Ask for everything of a type."""
        if isinstance(self.stream, DeltaStream):
            return self.stream.on_request(DeltaRequest(type_url))
        return self.stream.on_request(Request(type_url))

    def says(self, response: Response, rejection: Rejection | None = None) -> list[Response]:
        """Answer a response."""
        if isinstance(self.stream, DeltaStream):
            return self.stream.on_request(
                DeltaRequest(response.type_url, nonce=response.nonce, rejection=rejection)
            )
        return self.stream.on_request(
            Request(response.type_url, (), response.version, response.nonce, rejection=rejection)
        )

    def has(self) -> str | None:
        """What it has taken."""
        return self.stream.accepted(LISTENER, NAME)


@pytest.fixture(params=["delta", "sotw"])
def client(request: pytest.FixtureRequest) -> Client:
    """Return a client that has asked for nothing yet."""
    return Client(request.param)


def test_what_was_acknowledged_and_nothing_else(client: Client, make: Make) -> None:
    """Not what is on its way, not what is refused; what comes later counts once it is acknowledged."""
    first, second, third = (make(LISTENER, "a", content) for content in range(3))
    client.published(first)
    assert client.has() is None
    (sent,) = client.asks(LISTENER)
    assert client.has() == NO_VERSION
    client.says(sent)
    assert client.has() == first.version
    (sent,) = client.published(second)
    assert client.has() == NO_VERSION
    client.says(sent, Rejection(13, "no"))
    assert client.has() == NO_VERSION
    (sent,) = client.published(third)
    client.says(sent)
    assert client.has() == third.version
    assert client.stream.accepted(CLUSTER, NAME) is None
    assert client.stream.accepted(LISTENER, ResourceName("other")) == NO_VERSION


def test_what_a_client_brings_along_when_it_comes_again(make: Make) -> None:
    """It is sent nothing and acknowledges nothing; another version than ours is not what is taken."""
    held = make(LISTENER, "a")
    for published, expected in ((held, held.version), (make(LISTENER, "a", 1), NO_VERSION)):
        stream = DeltaStream()
        stream.on_snapshot(Snapshot.of((published,)))
        stream.on_request(DeltaRequest(LISTENER, initial_versions={NAME: held.version}))
        assert stream.accepted(LISTENER, NAME) == expected
