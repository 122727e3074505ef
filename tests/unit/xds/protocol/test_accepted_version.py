"""Tests of the version that a client has accepted: not a sent one, not a rejected one."""

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
    """Client of either variant, which answers one response at a time."""

    def __init__(self, variant: str) -> None:
        self.stream: DeltaStream | AdsStream = DeltaStream() if variant == "delta" else AdsStream()

    def published(self, *resources: Resource) -> list[Response]:
        """Publish a snapshot of these resources."""
        return self.stream.on_snapshot(Snapshot.of(resources))

    def asks(self, type_url: TypeUrl) -> list[Response]:
        """Request everything of a type."""
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
        """Return the accepted version of the listener."""
        return self.stream.accepted(LISTENER, NAME)


@pytest.fixture(params=["delta", "sotw"])
def client(request: pytest.FixtureRequest) -> Client:
    """Provide a client that has sent no request yet."""
    return Client(request.param)


def test_only_an_acknowledged_version_counts_as_accepted(client: Client, make: Make) -> None:
    """A version in flight or a rejected version does not count; a later version counts after its ACK."""
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


def test_initial_version_counts_as_accepted_if_it_is_current(make: Make) -> None:
    """A reconnecting client that holds the current version receives and acknowledges no resource.

    Another version does not count.
    """
    held = make(LISTENER, "a")
    for published, expected in ((held, held.version), (make(LISTENER, "a", 1), NO_VERSION)):
        stream = DeltaStream()
        stream.on_snapshot(Snapshot.of((published,)))
        stream.on_request(DeltaRequest(LISTENER, initial_versions={NAME: held.version}))
        assert stream.accepted(LISTENER, NAME) == expected
