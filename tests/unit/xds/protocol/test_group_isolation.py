"""Tests of the isolation of two groups of clients: no request gets a resource of the other group."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from protos.envoy.config.endpoint.v3 import endpoint_pb2
from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.protocol.delta import DeltaStream
from xds.protocol.resources.resource import (
    CLUSTER,
    ENDPOINT,
    LISTENER,
    ROUTE,
    SECRET,
    Resource,
    ResourceName,
    TypeUrl,
    encode,
)
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.sotw import AdsStream
from xds.protocol.subscription import WILDCARD
from xds.protocol.wire import NO_NONCE, DeltaRequest, Request, Response, delta_response_body, response_body

Make = Callable[..., Resource]

TYPES = (CLUSTER, ENDPOINT, LISTENER, ROUTE)
names = st.text("abc*|/", min_size=1, max_size=3)
owned = st.sets(st.tuples(st.sampled_from(TYPES), names), max_size=8)
requests = st.lists(
    st.tuples(st.sampled_from((*TYPES, SECRET)), st.lists(names | st.just(WILDCARD), max_size=4)), max_size=8
)


def of(make: Make, owner: int, keys: set[tuple[TypeUrl, str]], edition: int) -> Snapshot:
    """Create a group's snapshot, whose content identifies the owner."""
    return Snapshot.of(make(type_url, name, owner + 10 * edition) for type_url, name in keys)


@given(st.tuples(owned, owned), requests, st.booleans())
def test_client_never_receives_a_resource_of_another_group(
    make: Make,
    theirs: tuple[set[tuple[TypeUrl, str]], set[tuple[TypeUrl, str]]],
    asked: list[tuple[TypeUrl, list[str]]],
    sotw: bool,
) -> None:
    """Every response has only resources of the client's own group.

    Requests have names of this group, of the other and of neither, and wildcards. No body contains the
    other group's content.
    """
    cache = SnapshotCache()
    groups = (GroupKey("mine"), GroupKey("other"))
    node = NodeKey("me")
    stream = AdsStream() if sotw else DeltaStream()
    sent: list[Response] = []
    mine: set[Resource] = set()
    for edition in range(2):
        snapshots = {group: of(make, owner, theirs[owner], edition) for owner, group in enumerate(groups)}
        cache.publish(_settled(snapshots), {node: groups[0], NodeKey("you"): groups[1]})
        snapshot = cache.snapshot(node)
        assert snapshot is not None
        mine.update(resource for type_url in TYPES for resource in snapshot.ordered(type_url))
        sent += stream.on_snapshot(snapshot)
        for type_url, wanted in asked:
            sent += _ask(stream, type_url, tuple(map(ResourceName, wanted)))
            sent += stream.on_deadline()

    assert {resource for response in sent for resource in response.resources} <= mine
    body = response_body if sotw else delta_response_body
    for response in sent:
        assert response.table is None or response.resources == response.table.ordered
        assert {r.body for r in response.resources} <= {r.body for r in mine}
        assert b"".join(body(response, ""))


def _ask(
    stream: AdsStream | DeltaStream, type_url: TypeUrl, wanted: tuple[ResourceName, ...]
) -> list[Response]:
    match stream:
        case AdsStream():
            last = [c.sent_nonce for c in stream.channels if c.type_url == type_url]
            return stream.on_request(Request(type_url, wanted, nonce=last[0] if last else NO_NONCE))
        case DeltaStream():
            return stream.on_request(DeltaRequest(type_url, wanted))


def _settled(snapshots: dict[GroupKey, Snapshot]) -> dict[GroupKey, Snapshot]:
    """Add the missing endpoints of each cluster, because a cache requires them."""
    return {
        group: snapshot.changed(
            _endpoints(name, group)
            for name in snapshot.resources(CLUSTER)
            if name not in snapshot.resources(ENDPOINT)
        )
        for group, snapshot in snapshots.items()
    }


def _endpoints(name: ResourceName, group: GroupKey) -> Resource:
    assignment = endpoint_pb2.ClusterLoadAssignment(cluster_name=name)
    assignment.endpoints.add().locality.zone = group
    return encode(assignment)
