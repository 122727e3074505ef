"""Listeners are renewed where a route configuration permits less: an interim form first, then as they are."""

from dataclasses import replace

import pytest

from xds.protocol.delta import DeltaStream
from xds.protocol.resources.resource import LISTENER, ROUTE, Renewal, Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.sotw import AdsStream
from xds.protocol.wire import DeltaRequest, Rejection, Request, Response

Said = list[tuple[str, list[str]]]


def narrows(before: Resource, after: Resource) -> bool:
    """Take the lower version for the narrower one."""
    return after.version < before.version


def interim(listener: Resource, routes: frozenset[ResourceName]) -> Resource:
    """Mark the version with the reasons."""
    return replace(listener, version=Version(f"{listener.version}~{','.join(sorted(routes))}"))


def snapshot(listener: str = "l1", /, **routes: str) -> Snapshot:
    """Make two listeners, the second without routes, and the routes of the first with these versions."""
    references = tuple((ROUTE, ResourceName(each)) for each in sorted(routes))
    made = [
        Resource(ROUTE, ResourceName(name), Version(version), b"", renewal=Renewal(narrows, interim))
        for name, version in routes.items()
    ]
    first = Resource(LISTENER, ResourceName("here"), Version(listener), b"", references)
    return Snapshot.of([first, Resource(LISTENER, ResourceName("there"), Version("1"), b""), *made])


class Client:
    """A client of either variant, which answers when it is told to, and what it holds."""

    def __init__(self, stream: AdsStream | DeltaStream) -> None:
        self.stream = stream
        self.last: dict[TypeUrl, Response] = {}
        self.holds: dict[str, str] = {}

    def begin(self, first: Snapshot, **held: str) -> Said:
        """Take a snapshot and ask for listeners and routes, saying what is held (incremental)."""
        self.stream.on_snapshot(first)
        found = [*self._ask(LISTENER, (), held), *self._ask(ROUTE, tuple(first.resources(ROUTE)), held)]
        return found + self.answer(ROUTE)

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
        known = {ResourceName(each) for each in ("here", "there")} if type_url == LISTENER else set(names)
        versions = {each: Version(held[each]) for each in known if each in held}
        return self._take(self.stream.on_request(DeltaRequest(type_url, names, initial_versions=versions)))

    def _take(self, responses: list[Response]) -> Said:
        """Note responses, and name what is in them but for the listener that never changes."""
        found = []
        for each in responses:
            self.last[each.type_url] = each
            self.holds.update((one.name, one.version) for one in each.resources)
            versions = [f"{one.name} {one.version}" for one in each.resources if one.name != "there"]
            found.append((each.type_url.rpartition(".")[2], versions))
        return found


@pytest.fixture(params=[AdsStream, DeltaStream])
def client(request: pytest.FixtureRequest) -> Client:
    """A client that has listeners and routes, and has answered all of it."""
    found = Client(request.param())
    found.begin(snapshot(a="2", b="2"))
    assert found.answer(LISTENER) == []
    assert found.holds == {"here": "l1", "there": "1", "a": "2", "b": "2"}
    return found


def test_o11_a_narrower_route_renews_its_listener(client: Client) -> None:
    """The interim form goes with the route, the listener itself follows its answer; then there is silence."""
    assert client.push(snapshot(a="1", b="2")) == [
        ("Listener", ["here l1~a"]),
        ("RouteConfiguration", ["a 1"]),
    ]
    assert client.answer(ROUTE) == []
    assert client.answer(LISTENER) == [("Listener", ["here l1"])]
    assert client.answer(LISTENER) == []
    assert client.holds == {"here": "l1", "there": "1", "a": "1", "b": "2"}


def test_o11_a_wider_route_renews_nothing(client: Client) -> None:
    """Nor does one that comes or goes."""
    assert client.push(snapshot(a="3", b="2")) == [("RouteConfiguration", ["a 3"])]
    assert client.answer(ROUTE) == []
    assert client.push(snapshot("l2", a="3")) == [("Listener", ["here l2"])]
    assert client.answer(LISTENER) in ([], [("RouteConfiguration", [])])  # which goes, where that can be said
    assert client.holds["here"] == "l2"


def test_o11_what_changes_meanwhile_waits_for_the_interim_s_answer(client: Client) -> None:
    """A listener that is sent again too early would take the place of one that has drained nothing yet."""
    client.push(snapshot(a="1", b="2"))
    assert client.push(snapshot("l2", a="1", b="3")) == [("RouteConfiguration", ["b 3"])]
    assert client.stream.is_waiting
    assert client.answer(ROUTE) == []
    assert client.answer(LISTENER) == [("Listener", ["here l2"])]
    assert not client.stream.is_waiting


def test_o11_narrower_twice_is_renewed_twice(client: Client) -> None:
    """Also where the first time is not over."""
    client.push(snapshot(a="1", b="2"))
    assert client.push(snapshot(a="1", b="1")) == [("RouteConfiguration", ["b 1"])]
    assert client.answer(LISTENER) == [("Listener", ["here l1~b"])]
    assert client.answer(LISTENER) == [("Listener", ["here l1"])]
    assert client.answer(LISTENER) == []


def test_o11_a_client_that_does_not_answer_gets_its_listener_at_the_deadline(client: Client) -> None:
    """As with everything that waits (O5)."""
    client.push(snapshot(a="1", b="2"))
    found = [[f"{one.name} {one.version}" for one in each.resources] for each in client.stream.on_deadline()]
    assert [each[0] for each in found] == ["here l1"]


def test_o11_an_interim_that_is_rejected_is_followed_by_the_listener(client: Client) -> None:
    """It may have taken the place of the one that was there."""
    client.push(snapshot(a="1", b="2"))
    said = client.answer(LISTENER, Rejection(13, "Error adding/updating listener(s) here: no"))
    assert said == [("Listener", ["here l1"])]


@pytest.mark.parametrize(
    ("route", "said"),
    [
        ("2", [("Listener", ["here l1~a"]), ("RouteConfiguration", ["a 1"])]),
        ("0", [("Listener", ["here l1~a"]), ("RouteConfiguration", ["a 1"])]),
        ("1", []),
    ],
)
def test_o11_after_an_absence_other_rules_renew(route: str, said: Said) -> None:
    """Whether they are narrower than what the client had nobody knows any more; equal ones do not."""
    client = Client(DeltaStream())
    found = client.begin(snapshot(a="1", b="2"), here="l1", there="1", a=route, b="2")
    assert [each for each in found if each[1]] == said
    assert [each for each in client.answer(LISTENER) if each[1]] == (
        [("Listener", ["here l1"])] if said else []
    )
