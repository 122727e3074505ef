"""Tests of the resources that a reconnecting client has listed: they are not sent, but count as accepted."""

from collections.abc import Callable, Mapping

import pytest

from xds.protocol.delta import DeltaStream
from xds.protocol.resources.resource import CLUSTER, LISTENER, ROUTE, Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.wire import NO_NONCE, DeltaRequest, Response

Make = Callable[..., Resource]


def asks(stream: DeltaStream, type_url: TypeUrl, listed: Mapping[ResourceName, Version], *names: str) -> None:
    """Send the first request of a type, with the versions that the client has."""
    subscribe = tuple(map(ResourceName, names))
    stream.on_request(DeltaRequest(type_url, subscribe=subscribe, initial_versions=listed))


@pytest.mark.parametrize("early", [True, False], ids=["request first", "snapshot first"])
def test_listed_resources_of_the_served_version_are_taken_once(make: Make, early: bool) -> None:
    """The order of first request and first snapshot does not matter. Resources that are sent are left out."""
    same, old, new = make(ROUTE, "same"), make(ROUTE, "changed"), make(ROUTE, "changed", 1)
    snapshot, stream = Snapshot.of((same, new)), DeltaStream()
    if not early:
        stream.on_snapshot(snapshot)
    asks(stream, ROUTE, {item.name: item.version for item in (same, old)}, "same", "changed")
    if early:
        assert stream.take_held() == ()
        stream.on_snapshot(snapshot)
    assert stream.take_held() == (Response(ROUTE, snapshot.version(ROUTE), NO_NONCE, (same,)),)
    assert stream.take_held() == ()


def test_each_type_is_taken_and_a_complete_one_as_the_served_table(make: Make) -> None:
    """A type of which the client has listed nothing is left out."""
    clusters, listener = [make(CLUSTER, name) for name in ("a", "b")], make(LISTENER, "l")
    snapshot, stream = Snapshot.of((*clusters, listener)), DeltaStream()
    stream.on_snapshot(snapshot)
    asks(stream, CLUSTER, {item.name: item.version for item in clusters})
    asks(stream, LISTENER, {})
    (held,) = stream.take_held()
    assert held == Response(CLUSTER, snapshot.version(CLUSTER), NO_NONCE, tuple(clusters))
    assert held.table is snapshot.resources(CLUSTER)
