"""Tests of shared results: steps between snapshots, encoded responses, names and snapshots of groups."""

import gc
import sys
from collections.abc import Callable
from dataclasses import replace
from types import FunctionType

import pytest

from protos.envoy.config.cluster.v3 import cluster_pb2
from protos.envoy.config.endpoint.v3 import endpoint_pb2
from protos.envoy.service.discovery.v3 import discovery_pb2
from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.protocol.delta import DeltaStream
from xds.protocol.resources.name_sets import NO_NAMES
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, ROUTE, Resource, ResourceName, Version, encode
from xds.protocol.resources.resources import MANY, Resources, SnapshotError
from xds.protocol.resources.snapshot import InconsistentError, Snapshot
from xds.protocol.wire import DeltaRequest, Nonce, Response, read_delta_request
from xds.server.streams import encoder as encoder_module
from xds.server.streams.decoder import Decoder
from xds.server.streams.encoder import BYTES, ENTRIES, FIELDS, OWN_BYTES, Encoder
from xds.stream_status import Variant

Make = Callable[..., Resource]


def test_response_for_many_streams_is_encoded_once(make: Make) -> None:
    """A thousand streams take the same step, each with its own nonce."""
    encoder = Encoder("cp")
    resources = (make(ENDPOINT, "a"),)
    messages = {
        encoder.encode(Variant.DELTA, Response(ENDPOINT, Version("1"), Nonce(str(n)), resources))
        for n in range(1000)
    }

    assert encoder.made == 1
    assert {discovery_pb2.DeltaDiscoveryResponse.FromString(m).nonce for m in messages} == {
        str(n) for n in range(1000)
    }


def test_encoder_distinguishes_variants_and_contents(make: Make) -> None:
    """Equal names in another version, or for the other variant, have other bytes."""
    encoder = Encoder("cp")
    for variant in Variant:
        for content in range(2):
            encoder.encode(
                variant, Response(CLUSTER, Version("1"), Nonce("1"), (make(CLUSTER, "a", content),))
            )

    assert encoder.made == 4


def test_encoder_forgets_the_oldest_response(make: Make) -> None:
    """The number of kept responses is bounded, and a forgotten response is encoded again."""
    encoder = Encoder("cp")
    responses = [
        Response(CLUSTER, Version(str(n)), Nonce("1"), (make(CLUSTER, "a"),)) for n in range(ENTRIES + 1)
    ]
    for response in (*responses, responses[-1], responses[0]):
        encoder.encode(Variant.SOTW, response)

    assert encoder.made == ENTRIES + 2
    assert BYTES >= 1


@pytest.mark.parametrize("count", [1, MANY])
def test_comparing_many_resources_is_left_to_encode(make: Make, count: int) -> None:
    """`known` answers only if that is cheap.

    A comparison of many equal resources is made by `encode`, whose time is charged.
    """
    encoder = Encoder("cp")
    resources = [make(ROUTE, f"{n:03}") for n in range(count)]
    mine, same, others = (Response(ROUTE, Version("1"), Nonce("1"), tuple(resources)) for _ in range(3))
    assert encoder.known(Variant.DELTA, mine) is None
    message = encoder.encode(Variant.DELTA, mine)
    assert encoder.known(Variant.DELTA, mine) == message
    assert encoder.known(Variant.DELTA, same) == (message if count < MANY else None)
    assert encoder.encode(Variant.DELTA, same) == message
    encoder.encode(Variant.DELTA, others)
    assert encoder.known(Variant.DELTA, same) == message, "of its tuple it is known by now"
    assert encoder.made == 1


def test_response_with_a_whole_table_is_known_at_no_cost(make: Make) -> None:
    """The table identifies the resources, so another tuple of them need not be compared."""
    encoder, resources = Encoder("cp"), [make(ROUTE, f"{n:03}") for n in range(MANY)]
    table, other = (Resources({resource.name: resource for resource in resources}) for _ in range(2))
    mine, same = (Response(ROUTE, Version("1"), Nonce("1"), tuple(resources), table=table) for _ in range(2))
    message = encoder.encode(Variant.DELTA, mine)
    assert encoder.known(Variant.DELTA, same) == message
    assert encoder.encode(Variant.DELTA, replace(same, table=other)) == message
    assert encoder.encode(Variant.DELTA, replace(same, table=None)) == message


def test_long_message_is_built_once_for_all_streams_with_the_same_nonce(make: Make) -> None:
    """Streams with equal nonces are sent the same bytes object; another nonce needs only a new message."""
    encoder = Encoder("cp")
    resources = tuple(make(ROUTE, f"{n:03}" + "x" * 4096) for n in range(MANY))
    response = Response(ROUTE, Version("1"), Nonce("1"), resources)
    message = encoder.encode(Variant.DELTA, response)
    assert len(message) > 4096 * MANY
    assert encoder.known(Variant.DELTA, response) is message
    assert encoder.encode(Variant.DELTA, replace(response)) is message, (
        "an equal response of who came at once"
    )
    other = encoder.encode(Variant.DELTA, replace(response, nonce=Nonce("2")))
    assert discovery_pb2.DeltaDiscoveryResponse.FromString(other).nonce == "2"
    assert encoder.made == 1


@pytest.fixture
def fields(monkeypatch: pytest.MonkeyPatch) -> list[Resource]:
    """Provide a list that records each encoding of a resource."""
    resources: list[Resource] = []

    def noting(make: Callable[[Resource], bytes]) -> Callable[[Resource], bytes]:
        def encode(resource: Resource) -> bytes:
            resources.append(resource)
            return make(resource)

        return encode

    made = {variant: noting(make) for variant, make in encoder_module._FIELD.items()}
    monkeypatch.setattr(encoder_module, "_FIELD", made)
    return resources


@pytest.mark.parametrize("variant", Variant)
def test_resources_common_to_several_groups_are_encoded_once(
    make: Make, variant: Variant, fields: list[Resource]
) -> None:
    """Each group also has a resource of its own, so that no two responses are equal."""
    encoder = Encoder("cp")
    shared = tuple(make(ROUTE, f"b{n}") for n in range(MANY))
    responses = [Response(ROUTE, Version("1"), Nonce("1"), (make(ROUTE, "a", n), *shared)) for n in range(10)]
    messages = [encoder.encode(variant, item) for item in responses]

    assert len(fields) == len(shared) + len(responses)
    for response, message in zip(responses, messages, strict=True):
        assert message == Encoder("cp").encode(variant, response)


def test_encoded_resources_are_kept_up_to_a_bound(make: Make, fields: list[Resource]) -> None:
    """Resources beyond the bound are encoded again, and the responses are the same."""
    encoder = Encoder("cp")
    large = tuple(make(ROUTE, f"{n:03}" + "x" * (2 * FIELDS // MANY)) for n in range(MANY))
    responses = [Response(ROUTE, Version("1"), Nonce("1"), (*large, make(ROUTE, "y", n))) for n in range(2)]
    first, second = (encoder.encode(Variant.DELTA, response) for response in responses)

    assert len(fields) > 2 * len(large)
    assert (first, second) == tuple(Encoder("cp").encode(Variant.DELTA, response) for response in responses)


@pytest.mark.parametrize("variant", Variant)
def test_encoded_responses_that_are_no_longer_used_are_forgotten(
    make: Make, variant: Variant, fields: list[Resource]
) -> None:
    """A response that is used again and again is kept, and the rest is dropped when it has aged.

    The bytes stay the same.
    """
    encoder = Encoder("cp")
    responses = [
        Response(ROUTE, Version("1"), Nonce("1"), tuple(make(ROUTE, f"{kind}{n}") for n in range(MANY)))
        for kind in "ab"
    ]
    first = [encoder.encode(variant, response) for response in responses]
    for _ in range(3):
        encoder.age()
        assert encoder.encode(variant, responses[0]) == first[0]
    assert (encoder.made, len(fields)) == (2, 2 * MANY)
    assert [encoder.encode(variant, response) for response in responses] == first
    assert (encoder.made, len(fields)) == (3, 3 * MANY)
    for _ in range(2):
        encoder.age()
    assert held(encoder) < 10_000


def held(root: object) -> int:
    """Return the bytes of the objects that are reachable from this object; resources are not counted."""
    seen, waiting, size = {id(root)}, [root], 0
    while waiting:
        item = waiting.pop()
        size += sys.getsizeof(item)
        for referent in gc.get_referents(item):
            if id(referent) not in seen and not isinstance(referent, (type, FunctionType, Resource)):
                seen.add(id(referent))
                waiting.append(referent)
    return size


def test_owner_of_many_responses_drives_out_only_its_own(make: Make) -> None:
    """Only the newest responses of one owner are kept. A response that another owner needed first remains."""
    encoder, mine, others = Encoder("cp"), object(), object()
    shared = Response(ENDPOINT, Version("1"), Nonce("1"), (make(ENDPOINT, "a"),))
    large = [make(ENDPOINT, f"{n}" + "x" * (OWN_BYTES // 4)) for n in range(8)]
    encoder.encode(Variant.DELTA, shared, others)
    for resource in large:
        encoder.encode(Variant.DELTA, Response(ENDPOINT, Version("1"), Nonce("1"), (resource,)), mine)
    made = encoder.made
    encoder.encode(Variant.DELTA, shared, mine)
    encoder.encode(Variant.DELTA, Response(ENDPOINT, Version("1"), Nonce("1"), (large[-1],)), others)
    assert encoder.made == made
    encoder.encode(Variant.DELTA, Response(ENDPOINT, Version("1"), Nonce("1"), (large[0],)), mine)

    assert encoder.made == made + 1


@pytest.mark.parametrize("variant", list(Variant))
def test_requests_are_remembered_only_if_they_take_little_memory(variant: Variant) -> None:
    """Many short names take ten times their bytes in memory, so such a request is parsed again each time."""
    decoder = Decoder()
    # Names are the same field in both variants.
    many = discovery_pb2.DiscoveryRequest(resource_names=[f"{n:04}" for n in range(10_000)])
    few = [discovery_pb2.DiscoveryRequest(resource_names=[str(n)]) for n in range(3)]

    data = many.SerializeToString()
    assert decoder.read(variant, data) is not decoder.read(variant, data)
    for discovery_request in few:
        data = discovery_request.SerializeToString()
        assert decoder.read(variant, data) is decoder.read(variant, data)


def test_name_and_version_are_in_memory_once(make: Make) -> None:
    """A resource and its requests share one string for the name, and requests one for a version."""
    resource = make(CLUSTER, "a-name-of-some-length")
    message = discovery_pb2.DeltaDiscoveryRequest(
        resource_names_subscribe=["a-name-of-some-length"],
        initial_resource_versions={"a-name-of-some-length": "v1"},
    )
    first, second = (read_delta_request(message.SerializeToString()) for _ in range(2))

    assert first.subscribe[0] is resource.name
    assert next(iter(first.initial_versions)) is resource.name
    assert first.initial_versions[resource.name] is second.initial_versions[resource.name]


def test_type_and_referenced_name_are_in_memory_once() -> None:
    """Resources, references to them and requests for them share the same strings."""
    name = "a-cluster-of-some-length"
    cluster = encode(cluster_pb2.Cluster(name=name, type=cluster_pb2.Cluster.EDS))
    assignment = encode(endpoint_pb2.ClusterLoadAssignment(cluster_name=name))
    request = discovery_pb2.DeltaDiscoveryRequest(type_url=ENDPOINT)
    ((type_url, referred),) = cluster.references

    assert referred is assignment.name
    assert assignment.type_url is type_url is ENDPOINT
    assert read_delta_request(request.SerializeToString()).type_url is ENDPOINT


def test_step_between_two_snapshots_is_computed_once(make: Make) -> None:
    """The same two snapshots return the same object; another predecessor has another step."""
    one = Snapshot.of((make(CLUSTER, "a"), make(CLUSTER, "b")))
    two = Snapshot.of((make(CLUSTER, "a", 1), make(CLUSTER, "c")))

    step = two.changed_since(one)
    assert step == {CLUSTER: {"a", "b", "c"}}
    assert two.changed_since(one) is step
    assert two.changed_since(Snapshot.of(())) == {CLUSTER: {"a", "c"}}


def test_w15_two_resources_with_one_name_are_refused(make: Make) -> None:
    """Envoy would reject a response that contains a name twice (W15)."""
    with pytest.raises(SnapshotError, match="'a'"):
        Snapshot.of((make(CLUSTER, "a"), make(CLUSTER, "a", 1)))


def test_missing_reference_is_reported_with_resource_type_and_name(make: Make) -> None:
    """A cluster without its endpoints would warm forever."""
    snapshot = Snapshot.of((make(CLUSTER, "a"), make(CLUSTER, "b"), make(ENDPOINT, "b")))

    assert [(r.name, kind, name) for r, kind, name in snapshot.missing()] == [("a", ENDPOINT, "a")]


def test_w2_d14_snapshots_with_equal_content_are_equal_in_any_order(make: Make) -> None:
    """Replicas that receive resources in different orders must agree on versions."""
    a, b = make(CLUSTER, "a"), make(ROUTE, "b")

    assert Snapshot.of((a, b)) == Snapshot.of((b, a))
    assert Snapshot.of((a, b)).version(CLUSTER) == Snapshot.of((make(CLUSTER, "a"),)).version(CLUSTER)
    assert Snapshot.of((a, b)) != Snapshot.of((a,))
    assert Snapshot.of((a,)) != Snapshot.of((a, b))


def test_publishing_wakes_only_nodes_with_changes(make: Make) -> None:
    """An equal snapshot, or one of another group, wakes no node.

    A node that left its group is woken, but not counted.
    """
    cache = SnapshotCache()
    woken: list[str] = []
    nodes = {NodeKey("n1"): GroupKey("g1"), NodeKey("n2"): GroupKey("g2")}
    cache.watch(NodeKey("n1"), lambda: woken.append("n1"))
    cache.watch(NodeKey("n2"), lambda: woken.append("n2"))

    def publish(content: int, members: dict[NodeKey, GroupKey]) -> int:
        return cache.publish(
            {
                GroupKey("g1"): Snapshot.of((make(ENDPOINT, "a"),)),
                GroupKey("g2"): Snapshot.of((make(ENDPOINT, "a", content),)),
            },
            members,
        )

    assert (publish(0, nodes), woken) == (2, ["n1", "n2"])
    assert (publish(0, nodes), publish(1, nodes), woken[2:]) == (0, 1, ["n2"])
    assert (publish(2, {NodeKey("n1"): GroupKey("g1")}), woken[3:]) == (0, ["n2"])
    assert cache.snapshot(NodeKey("n2")) is None


def test_s9_end_of_one_watch_keeps_the_other(make: Make) -> None:
    """Two streams of one node are independent (S9)."""
    cache = SnapshotCache()
    woken: list[str] = []
    node = NodeKey("n")
    first = cache.watch(node, lambda: woken.append("first"))
    cache.watch(node, lambda: woken.append("second"))
    cache.unwatch(first)
    cache.publish({GroupKey("g"): Snapshot.of((make(ENDPOINT, "a"),))}, {node: GroupKey("g")})

    assert woken == ["second"]
    assert ResourceName("a") in cache.snapshots()[GroupKey("g")].resources(ENDPOINT)


def test_o6_snapshot_with_a_missing_reference_is_refused_and_changes_nothing(make: Make) -> None:
    """The error names the resource and its missing reference; the previous snapshot remains in force."""
    cache, group, node = SnapshotCache(), GroupKey("g"), NodeKey("n")
    cache.publish({group: Snapshot.of((make(ENDPOINT, "a"),))}, {node: group})

    with pytest.raises(InconsistentError, match="Cluster 'b' needs ClusterLoadAssignment 'b'"):
        cache.publish({group: Snapshot.of((make(CLUSTER, "b"),))}, {node: group})
    held = cache.snapshot(node)
    assert held is not None
    assert list(held.resources(ENDPOINT)) == ["a"]


def test_update_adds_replaces_and_removes_single_resources(make: Make) -> None:
    """Tables without a change are shared with the previous snapshot."""
    cache, group = SnapshotCache(), GroupKey("g")
    a = make(ENDPOINT, "a")
    cache.update(group, [a, make(ROUTE, "r")])
    first = cache.snapshots()[group]
    cache.update(group, [make(ENDPOINT, "a", 1), make(ENDPOINT, "b")])
    cache.update(group, removed=[(ENDPOINT, ResourceName("b")), (ENDPOINT, ResourceName("never"))])
    last = cache.snapshots()[group]

    assert last == Snapshot.of((make(ENDPOINT, "a", 1), make(ROUTE, "r")))
    assert last.resources(ROUTE) is first.resources(ROUTE)
    assert last.changed_since(first) == {ENDPOINT: {"a"}}


def test_new_and_changed_resources_are_one_change_of_the_last_part(make: Make) -> None:
    """The new part knows its difference from the previous part, so that no tables are compared."""
    first = Snapshot.of((make(ENDPOINT, "a"), make(ROUTE, "r")))
    last = first.changed([make(ENDPOINT, "a", 1), make(ENDPOINT, "b")], [(ROUTE, ResourceName("r"))])
    (before,), (after,) = first.parts, last.parts
    assert after._step is not None
    assert after._step[0]() is before
    assert last.changed_since(first) == {ENDPOINT: {"a", "b"}, ROUTE: {"r"}}


def test_settled_stream_shares_the_one_empty_set(make: Make) -> None:
    """Each empty set is the NO_NAMES object, which saves memory.

    The stream has acknowledged additions and a removal.
    """
    stream = DeltaStream()
    before = Snapshot.of((make(CLUSTER, "a"), make(CLUSTER, "b"), make(ENDPOINT, "a"), make(ENDPOINT, "b")))
    after = Snapshot.of((make(CLUSTER, "a", 1), make(ENDPOINT, "a", 1), make(ENDPOINT, "c")))
    sent = stream.on_snapshot(before)
    for first in (
        DeltaRequest(CLUSTER),
        DeltaRequest(ENDPOINT, (ResourceName("a"), ResourceName("b"), ResourceName("absent"))),
    ):
        sent += stream.on_request(first)
    sent += stream.on_snapshot(after)
    for count, response in enumerate(sent):
        sent += stream.on_request(DeltaRequest(response.type_url, nonce=response.nonce))
        assert count < 20

    assert {name for response in sent for name in response.removed} == {"b", "absent"}
    for channel in stream.channels:
        pending = (channel.dirty, channel.must, channel.gone, channel.absent)
        assert all(names is NO_NAMES for names in pending), (channel.type_url, pending)


def test_name_is_one_object_in_requests_with_different_bytes() -> None:
    """Requests for the same resource share one string for its name."""
    one, two = (
        read_delta_request(
            discovery_pb2.DeltaDiscoveryRequest(
                type_url=ENDPOINT, resource_names_subscribe=["team/service|80"], response_nonce=nonce
            ).SerializeToString()
        )
        for nonce in ("1", "2")
    )

    assert one.subscribe[0] is two.subscribe[0]
