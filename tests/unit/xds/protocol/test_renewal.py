"""Tests of listener renewal: after a route narrows, an interim listener drains connections first (O11)."""

from dataclasses import replace

import pytest

from xds.protocol.delta import DeltaStream
from xds.protocol.resources.resource import (
    EVERY_CONNECTION,
    LISTENER,
    ROUTE,
    Narrowing,
    Renewal,
    Resource,
    ResourceName,
    TypeUrl,
    Version,
)
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.sotw import AdsStream
from xds.protocol.wire import DeltaRequest, Rejection, Request, Response

Said = list[tuple[str, list[str]]]


def narrows(before: Resource, after: Resource) -> frozenset[str]:
    """Return one kind if the version is lower, which counts as narrower in these tests."""
    return frozenset({"k"} if after.version < before.version else ())


def interim(listener: Resource, narrowings: frozenset[Narrowing]) -> Resource:
    """Return the listener with the narrower routes, and for whom, in its version."""
    reasons = (f"{name}.{kind}" if kind != EVERY_CONNECTION else name for name, kind in sorted(narrowings))
    return replace(listener, version=Version(f"{listener.version}~{','.join(reasons)}"))


def snapshot(listener: str = "l1", /, **routes: str) -> Snapshot:
    """Create two listeners, the first with these routes in these versions, the second without routes."""
    references = tuple((ROUTE, ResourceName(route)) for route in sorted(routes))
    made = [
        Resource(ROUTE, ResourceName(name), Version(version), b"", renewal=Renewal(narrows, interim))
        for name, version in routes.items()
    ]
    first = Resource(LISTENER, ResourceName("here"), Version(listener), b"", references)
    return Snapshot.of([first, Resource(LISTENER, ResourceName("there"), Version("1"), b""), *made])


class Client:
    """A client of either variant and its resources; it answers when the test calls `answer`."""

    def __init__(self, stream: AdsStream | DeltaStream) -> None:
        self.stream = stream
        self.last: dict[TypeUrl, Response] = {}
        self.holds: dict[str, str] = {}

    def begin(self, first: Snapshot, **held: str) -> Said:
        """Take a snapshot; request listeners and routes, with the held versions in incremental."""
        self.stream.on_snapshot(first)
        result = [*self._ask(LISTENER, (), held), *self._ask(ROUTE, tuple(first.resources(ROUTE)), held)]
        return result + self.answer(ROUTE)

    def push(self, newest: Snapshot) -> Said:
        """Take a snapshot."""
        return self._take(self.stream.on_snapshot(newest))

    def answer(self, type_url: TypeUrl, rejection: Rejection | None = None) -> Said:
        """Answer the last response of a type, if there is one."""
        if (response := self.last.pop(type_url, None)) is None:
            return []
        if isinstance(self.stream, DeltaStream):
            return self._take(
                self.stream.on_request(DeltaRequest(type_url, nonce=response.nonce, rejection=rejection))
            )
        names = tuple(map(ResourceName, "ab")) if type_url == ROUTE else ()
        return self._take(
            self.stream.on_request(Request(type_url, names, nonce=response.nonce, rejection=rejection))
        )

    def _ask(self, type_url: TypeUrl, names: tuple[ResourceName, ...], held: dict[str, str]) -> Said:
        if isinstance(self.stream, AdsStream):
            return self._take(self.stream.on_request(Request(type_url, names)))
        known = {ResourceName(item) for item in ("here", "there")} if type_url == LISTENER else set(names)
        versions = {
            resource_name: Version(held[resource_name]) for resource_name in known if resource_name in held
        }
        return self._take(self.stream.on_request(DeltaRequest(type_url, names, initial_versions=versions)))

    def _take(self, responses: list[Response]) -> Said:
        """Record responses; return their types and versions, without the listener that never changes."""
        result = []
        for response in responses:
            self.last[response.type_url] = response
            self.holds.update((one.name, one.version) for one in response.resources)
            versions = [f"{one.name} {one.version}" for one in response.resources if one.name != "there"]
            result.append((response.type_url.rpartition(".")[2], versions))
        return result


@pytest.fixture(params=[AdsStream, DeltaStream])
def client(request: pytest.FixtureRequest) -> Client:
    """Provide a client that holds listeners and routes and has acknowledged all of them."""
    result = Client(request.param())
    result.begin(snapshot(a="2", b="2"))
    assert result.answer(LISTENER) == []
    assert result.holds == {"here": "l1", "there": "1", "a": "2", "b": "2"}
    return result


def test_o11_narrower_route_renews_its_listener(client: Client) -> None:
    """The interim listener is sent with the route, and the listener itself after its ACK.

    No response follows.
    """
    assert client.push(snapshot(a="1", b="2")) == [
        ("Listener", ["here l1~a.k"]),
        ("RouteConfiguration", ["a 1"]),
    ]
    assert client.answer(ROUTE) == []
    assert client.answer(LISTENER) == [("Listener", ["here l1"])]
    assert client.answer(LISTENER) == []
    assert client.holds == {"here": "l1", "there": "1", "a": "1", "b": "2"}


def test_o11_wider_or_removed_route_renews_no_listener(client: Client) -> None:
    """Only a narrower route would leave open connections with too many permissions."""
    assert client.push(snapshot(a="3", b="2")) == [("RouteConfiguration", ["a 3"])]
    assert client.answer(ROUTE) == []
    assert client.push(snapshot("l2", a="3")) == [("Listener", ["here l2"])]
    assert client.answer(LISTENER) in ([], [("RouteConfiguration", [])])  # the removal, in incremental only
    assert client.holds["here"] == "l2"


def test_o11_changed_listener_waits_for_the_ack_of_the_interim_listener(client: Client) -> None:
    """A listener that is sent too early would replace an interim one that has drained no connection yet."""
    client.push(snapshot(a="1", b="2"))
    assert client.push(snapshot("l2", a="1", b="3")) == [("RouteConfiguration", ["b 3"])]
    assert client.stream.is_waiting
    assert client.answer(ROUTE) == []
    assert client.answer(LISTENER) == [("Listener", ["here l2"])]
    assert not client.stream.is_waiting


def test_o11_second_narrower_route_causes_a_second_renewal(client: Client) -> None:
    """This is also true if the first renewal has not finished."""
    client.push(snapshot(a="1", b="2"))
    assert client.push(snapshot(a="1", b="1")) == [("RouteConfiguration", ["b 1"])]
    assert client.answer(LISTENER) == [("Listener", ["here l1~b.k"])]
    assert client.answer(LISTENER) == [("Listener", ["here l1"])]
    assert client.answer(LISTENER) == []


def test_o11_client_that_does_not_answer_gets_its_listener_at_the_deadline(client: Client) -> None:
    """The deadline is the one of all waiting resources (O5)."""
    client.push(snapshot(a="1", b="2"))
    result = [
        [f"{one.name} {one.version}" for one in response.resources]
        for response in client.stream.on_deadline()
    ]
    assert [item[0] for item in result] == ["here l1"]


def test_o11_rejected_interim_listener_is_followed_by_the_listener(client: Client) -> None:
    """The client may have replaced its old listener in spite of the rejection."""
    client.push(snapshot(a="1", b="2"))
    answer = client.answer(LISTENER, Rejection(13, "Error adding/updating listener(s) here: no"))
    assert answer == [("Listener", ["here l1"])]


@pytest.mark.parametrize(
    ("route", "said"),
    [
        ("2", [("Listener", ["here l1~a"]), ("RouteConfiguration", ["a 1"])]),
        ("0", [("Listener", ["here l1~a"]), ("RouteConfiguration", ["a 1"])]),
        ("1", []),
    ],
)
def test_o11_different_route_after_a_reconnect_renews_the_listener(route: str, said: Said) -> None:
    """The server cannot know whether the client's old route was wider. An equal route renews no listener."""
    client = Client(DeltaStream())
    result = client.begin(snapshot(a="1", b="2"), here="l1", there="1", a=route, b="2")
    assert [item for item in result if item[1]] == said
    assert [item for item in client.answer(LISTENER) if item[1]] == (
        [("Listener", ["here l1"])] if said else []
    )
