"""Resources that a wildcard does not show, and those that a client may keep only for a time (N5, N7)."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from xds.protocol.delta import DeltaStream
from xds.protocol.resources.resource import CLUSTER, LISTENER, Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.sotw import AdsStream
from xds.protocol.wire import DeltaRequest, Request, Response

Make = Callable[..., Resource]
Lives = list[tuple[str, Version, float | None]]


def delta(*resources: Resource) -> DeltaStream:
    """Make an incremental stream whose snapshot is there."""
    stream = DeltaStream()
    stream.on_snapshot(Snapshot.of(resources))
    return stream


def asked(stream: DeltaStream, type_url: TypeUrl, *names: str) -> Response:
    """Ask for names, or for all; accept the one response that comes."""
    (response,) = stream.on_request(DeltaRequest(type_url, tuple(map(ResourceName, names))))
    assert stream.on_request(DeltaRequest(type_url, nonce=response.nonce)) == []
    return response


def said(responses: list[Response]) -> list[tuple[list[str], list[str]]]:
    """Name what responses bring, and what they take back."""
    return [([each.name for each in response.resources], list(response.removed)) for response in responses]


def lives(responses: list[Response]) -> Lives:
    """Name what responses tell, in which version and for how many seconds."""
    return [(r.name, r.version, r.ttl_seconds) for response in responses for r in response.resources]


@pytest.mark.parametrize("content", [0, 1], ids=["the same", "another"])
def test_n7_what_comes_to_be_on_demand_is_taken_from_a_wildcard(make: Make, content: int) -> None:
    """And is there again when it is not so any more; who has named it keeps it."""
    before = [make(CLUSTER, "a"), make(CLUSTER, "od")]
    after = [make(CLUSTER, "a"), replace(make(CLUSTER, "od", content), on_demand=True)]
    stream, named = delta(*before), delta(*before)
    asked(stream, CLUSTER)
    asked(named, CLUSTER, "*", "od")

    (gone,) = stream.on_snapshot(Snapshot.of(after))
    assert said([gone]) == [([], ["od"])]
    stream.on_request(DeltaRequest(CLUSTER, nonce=gone.nonce))
    assert said(stream.on_snapshot(Snapshot.of(before))) == [(["od"], [])]
    assert said(named.on_snapshot(Snapshot.of(after))) == ([(["od"], [])] if content else [])


def test_n7_who_comes_back_with_what_is_on_demand_now_is_told(make: Make) -> None:
    """It holds what its wildcard showed it once."""
    od = replace(make(CLUSTER, "od"), on_demand=True)
    stream = delta(make(CLUSTER, "a"), od)
    held = {each.name: each.version for each in (make(CLUSTER, "a"), od)}

    (first,) = stream.on_request(DeltaRequest(CLUSTER, initial_versions=held))
    assert said([first]) == [([], [])]
    assert said(stream.on_request(DeltaRequest(CLUSTER, nonce=first.nonce))) == [([], ["od"])]


def test_n7_in_state_of_the_world_it_is_in_the_list_no_more(make: Make) -> None:
    """Nor in an answer that lists everything before its removal has its turn: it is in that as it was."""
    stream = AdsStream()
    before = [make(CLUSTER, "a"), make(CLUSTER, "od"), make(LISTENER, "l")]
    stream.on_snapshot(Snapshot.of(before))
    for type_url in (CLUSTER, LISTENER):
        (response,) = stream.on_request(Request(type_url))
        stream.on_request(Request(type_url, (), response.version, response.nonce))
    after = [make(CLUSTER, "a", 1), replace(make(CLUSTER, "od"), on_demand=True), make(LISTENER, "l", 1)]

    (clusters,) = stream.on_snapshot(Snapshot.of(after))
    assert said([clusters]) == [(["a", "od"], [])]
    (listeners,) = stream.on_request(Request(CLUSTER, (), clusters.version, clusters.nonce))
    assert said([listeners]) == [(["l"], [])]
    assert said(stream.on_request(Request(LISTENER, (), listeners.version, listeners.nonce))) == [(["a"], [])]


def test_n7_who_names_it_before_it_was_taken_back_keeps_it(make: Make) -> None:
    """What waits of its removal is void (D18)."""
    stream = delta(make(CLUSTER, "od"), make(LISTENER, "l"))
    asked(stream, CLUSTER)
    asked(stream, LISTENER)
    od = replace(make(CLUSTER, "od"), on_demand=True)
    (listener,) = stream.on_snapshot(Snapshot.of([od, make(LISTENER, "l", 1)]))

    named = stream.on_request(DeltaRequest(CLUSTER, (ResourceName("od"),)))
    assert said(named) == [(["od"], [])]
    for each in (*named, listener):
        assert stream.on_request(DeltaRequest(each.type_url, nonce=each.nonce)) == []


@pytest.mark.parametrize("ttl", [None, 1.0, 60.0])
def test_n5_another_time_to_live_is_told_at_once(make: Make, ttl: float | None) -> None:
    """Without one the client's timer ends (Resource.ttl); a longer one's heartbeat would come too late."""
    listener = make(LISTENER, "l")
    stream = delta(replace(listener, ttl_seconds=5.0))
    assert lives([asked(stream, LISTENER)]) == [("l", listener.version, 5.0)]

    told = stream.on_snapshot(Snapshot.of([replace(listener, ttl_seconds=ttl)]))
    assert lives(told) == [("l", listener.version, ttl)]
    assert stream.shortest_ttl == ttl
    assert lives(stream.on_heartbeat()) == ([("l", listener.version, ttl)] if ttl else [])


@pytest.mark.parametrize("ttl", [None, 60.0])
def test_n5_who_holds_an_older_version_is_told_to_keep_that(make: Make, ttl: float | None) -> None:
    """The new one waits for a cluster, and so does the end of one that is not there any more."""
    old = [replace(make(LISTENER, name), ttl_seconds=5.0) for name in ("gone", "l")]
    stream = delta(make(CLUSTER, "a"), *old)
    asked(stream, CLUSTER)
    asked(stream, LISTENER)
    new = replace(make(LISTENER, "l", 1), ttl_seconds=ttl)
    (cluster,) = stream.on_snapshot(Snapshot.of([make(CLUSTER, "a", 1), new]))

    assert stream.shortest_ttl == 5.0
    assert lives(stream.on_heartbeat()) == [(each.name, each.version, 5.0) for each in old]
    switched = stream.on_request(DeltaRequest(CLUSTER, nonce=cluster.nonce))
    assert said(switched) == [(["l"], ["gone"])]
    assert lives(stream.on_heartbeat()) == ([("l", new.version, ttl)] if ttl else [])
