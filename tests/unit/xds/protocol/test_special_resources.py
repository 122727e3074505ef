"""Tests of on-demand resources (N7) and of resources with a time to live (N5)."""

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
    """Create an incremental stream that has a snapshot of these resources."""
    stream = DeltaStream()
    stream.on_snapshot(Snapshot.of(resources))
    return stream


def asked(stream: DeltaStream, type_url: TypeUrl, *names: str) -> Response:
    """Request names, or all; accept and return the only response."""
    (response,) = stream.on_request(DeltaRequest(type_url, tuple(map(ResourceName, names))))
    assert stream.on_request(DeltaRequest(type_url, nonce=response.nonce)) == []
    return response


def said(responses: list[Response]) -> list[tuple[list[str], list[str]]]:
    """Return the names of the resources and removals of responses."""
    return [
        ([resource.name for resource in response.resources], list(response.removed)) for response in responses
    ]


def lives(responses: list[Response]) -> Lives:
    """Return name, version and time to live in seconds of each resource of responses."""
    return [(r.name, r.version, r.ttl_seconds) for response in responses for r in response.resources]


@pytest.mark.parametrize("content", [0, 1], ids=["the same", "another"])
def test_n7_cluster_that_becomes_on_demand_is_removed_from_a_wildcard(make: Make, content: int) -> None:
    """The cluster is sent again when it is no longer on demand. A client that has named it keeps it."""
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


def test_n7_reconnecting_client_gets_the_removal_of_an_on_demand_cluster(make: Make) -> None:
    """The client holds the cluster because its wildcard included it before."""
    od = replace(make(CLUSTER, "od"), on_demand=True)
    stream = delta(make(CLUSTER, "a"), od)
    held = {resource.name: resource.version for resource in (make(CLUSTER, "a"), od)}

    (first,) = stream.on_request(DeltaRequest(CLUSTER, initial_versions=held))
    assert said([first]) == [([], [])]
    assert said(stream.on_request(DeltaRequest(CLUSTER, nonce=first.nonce))) == [([], ["od"])]


def test_n7_on_demand_cluster_leaves_the_sotw_list_in_order(make: Make) -> None:
    """Removals are the last step, so the first response still lists the cluster as it was."""
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


def test_n7_client_that_names_a_cluster_before_its_removal_keeps_it(make: Make) -> None:
    """The request cancels the pending removal of the on-demand cluster (D18)."""
    stream = delta(make(CLUSTER, "od"), make(LISTENER, "l"))
    asked(stream, CLUSTER)
    asked(stream, LISTENER)
    od = replace(make(CLUSTER, "od"), on_demand=True)
    (listener,) = stream.on_snapshot(Snapshot.of([od, make(LISTENER, "l", 1)]))

    named = stream.on_request(DeltaRequest(CLUSTER, (ResourceName("od"),)))
    assert said(named) == [(["od"], [])]
    for response in (*named, listener):
        assert stream.on_request(DeltaRequest(response.type_url, nonce=response.nonce)) == []


@pytest.mark.parametrize("ttl", [None, 1.0, 60.0])
def test_n5_changed_time_to_live_is_sent_at_once(make: Make, ttl: float | None) -> None:
    """Removing it ends the client's timer.

    With a longer time, the next heartbeat could be too late for the old one.
    """
    listener = make(LISTENER, "l")
    stream = delta(replace(listener, ttl_seconds=5.0))
    assert lives([asked(stream, LISTENER)]) == [("l", listener.version, 5.0)]

    responses = stream.on_snapshot(Snapshot.of([replace(listener, ttl_seconds=ttl)]))
    assert lives(responses) == [("l", listener.version, ttl)]
    assert stream.shortest_ttl == ttl
    assert lives(stream.on_heartbeat()) == ([("l", listener.version, ttl)] if ttl else [])


@pytest.mark.parametrize("ttl", [None, 60.0])
def test_n5_heartbeat_is_for_the_older_version_that_the_client_holds(make: Make, ttl: float | None) -> None:
    """The new version and a removal wait for a cluster, so heartbeats must keep the old resources alive."""
    old = [replace(make(LISTENER, name), ttl_seconds=5.0) for name in ("gone", "l")]
    stream = delta(make(CLUSTER, "a"), *old)
    asked(stream, CLUSTER)
    asked(stream, LISTENER)
    new = replace(make(LISTENER, "l", 1), ttl_seconds=ttl)
    (cluster,) = stream.on_snapshot(Snapshot.of([make(CLUSTER, "a", 1), new]))

    assert stream.shortest_ttl == 5.0
    assert lives(stream.on_heartbeat()) == [(resource.name, resource.version, 5.0) for resource in old]
    switched = stream.on_request(DeltaRequest(CLUSTER, nonce=cluster.nonce))
    assert said(switched) == [(["l"], ["gone"])]
    assert lives(stream.on_heartbeat()) == ([("l", new.version, ttl)] if ttl else [])
