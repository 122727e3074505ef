"""What is shared is made once: snapshots' steps, encoded responses, snapshots of a group."""

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


def test_a_response_for_many_is_encoded_once(make: Make) -> None:
    """A thousand streams take the same step; each has its own nonce."""
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


def test_the_encoder_tells_variants_and_contents_apart(make: Make) -> None:
    """Same names in another version, or for the other variant, are other bytes."""
    encoder = Encoder("cp")
    for variant in Variant:
        for content in range(2):
            encoder.encode(
                variant, Response(CLUSTER, Version("1"), Nonce("1"), (make(CLUSTER, "a", content),))
            )

    assert encoder.made == 4


def test_the_encoder_forgets_the_oldest(make: Make) -> None:
    """What it keeps is bounded in number, and then made anew."""
    encoder = Encoder("cp")
    responses = [
        Response(CLUSTER, Version(str(n)), Nonce("1"), (make(CLUSTER, "a"),)) for n in range(ENTRIES + 1)
    ]
    for response in (*responses, responses[-1], responses[0]):
        encoder.encode(Variant.SOTW, response)

    assert encoder.made == ENTRIES + 2
    assert BYTES >= 1


@pytest.mark.parametrize("count", [1, MANY])
def test_a_look_at_many_resources_is_encoding(make: Make, count: int) -> None:
    """What is known at no cost is told so; who has the same resources is looked at by who pays for it."""
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


def test_a_whole_table_is_known_again_at_no_cost(make: Make) -> None:
    """Whoever is sent all of it, as whatever tuple: it need not be looked who its resources are."""
    encoder, resources = Encoder("cp"), [make(ROUTE, f"{n:03}") for n in range(MANY)]
    table, other = (Resources({each.name: each for each in resources}) for _ in range(2))
    mine, same = (Response(ROUTE, Version("1"), Nonce("1"), tuple(resources), table=table) for _ in range(2))
    message = encoder.encode(Variant.DELTA, mine)
    assert encoder.known(Variant.DELTA, same) == message
    assert encoder.encode(Variant.DELTA, replace(same, table=other)) == message
    assert encoder.encode(Variant.DELTA, replace(same, table=None)) == message


def test_a_long_message_is_put_together_once_for_all_who_are_as_far(make: Make) -> None:
    """Streams that have come as far are sent the very same bytes, with the nonce."""
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
    """Return the resources that are encoded, as often as they are."""
    found: list[Resource] = []

    def noting(make: Callable[[Resource], bytes]) -> Callable[[Resource], bytes]:
        def encode(resource: Resource) -> bytes:
            found.append(resource)
            return make(resource)

        return encode

    made = {variant: noting(make) for variant, make in encoder_module._FIELD.items()}
    monkeypatch.setattr(encoder_module, "_FIELD", made)
    return found


@pytest.mark.parametrize("variant", Variant)
def test_what_groups_have_in_common_is_encoded_once(
    make: Make, variant: Variant, fields: list[Resource]
) -> None:
    """Each has something of its own besides, so that no two responses are the same."""
    encoder = Encoder("cp")
    shared = tuple(make(ROUTE, f"b{n}") for n in range(MANY))
    responses = [Response(ROUTE, Version("1"), Nonce("1"), (make(ROUTE, "a", n), *shared)) for n in range(10)]
    messages = [encoder.encode(variant, each) for each in responses]

    assert len(fields) == len(shared) + len(responses)
    for response, message in zip(responses, messages, strict=True):
        assert message == Encoder("cp").encode(variant, response)


def test_few_encoded_resources_are_kept(make: Make, fields: list[Resource]) -> None:
    """More than fits are made again, and no response is other for that."""
    encoder = Encoder("cp")
    large = tuple(make(ROUTE, f"{n:03}" + "x" * (2 * FIELDS // MANY)) for n in range(MANY))
    responses = [Response(ROUTE, Version("1"), Nonce("1"), (*large, make(ROUTE, "y", n))) for n in range(2)]
    first, second = (encoder.encode(Variant.DELTA, each) for each in responses)

    assert len(fields) > 2 * len(large)
    assert (first, second) == tuple(Encoder("cp").encode(Variant.DELTA, each) for each in responses)


@pytest.mark.parametrize("variant", Variant)
def test_what_nobody_needs_any_more_is_not_kept_encoded(
    make: Make, variant: Variant, fields: list[Resource]
) -> None:
    """What is needed again and again stays, the rest is forgotten when it has aged; bytes are the same."""
    encoder = Encoder("cp")
    responses = [
        Response(ROUTE, Version("1"), Nonce("1"), tuple(make(ROUTE, f"{kind}{n}") for n in range(MANY)))
        for kind in "ab"
    ]
    first = [encoder.encode(variant, each) for each in responses]
    for _ in range(3):
        encoder.age()
        assert encoder.encode(variant, responses[0]) == first[0]
    assert (encoder.made, len(fields)) == (2, 2 * MANY)
    assert [encoder.encode(variant, each) for each in responses] == first
    assert (encoder.made, len(fields)) == (3, 3 * MANY)
    for _ in range(2):
        encoder.age()
    assert held(encoder) < 10_000


def held(root: object) -> int:
    """Return the bytes of what only this object leads to, and resources are not counted."""
    seen, waiting, size = {id(root)}, [root], 0
    while waiting:
        each = waiting.pop()
        size += sys.getsizeof(each)
        for found in gc.get_referents(each):
            if id(found) not in seen and not isinstance(found, (type, FunctionType, Resource)):
                seen.add(id(found))
                waiting.append(found)
    return size


def test_who_asks_for_ever_other_things_drives_out_its_own_alone(make: Make) -> None:
    """Of one owner little is kept, its newest; what another was the first to need stays."""
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
def test_requests_are_remembered_by_what_they_take(variant: Variant) -> None:
    """Many short names are ten times their bytes: such requests are read again; those of few are not."""
    decoder = Decoder()
    # Names are the same field in both variants.
    many = discovery_pb2.DiscoveryRequest(resource_names=[f"{n:04}" for n in range(10_000)])
    few = [discovery_pb2.DiscoveryRequest(resource_names=[str(n)]) for n in range(3)]

    data = many.SerializeToString()
    assert decoder.read(variant, data) is not decoder.read(variant, data)
    for each in few:
        data = each.SerializeToString()
        assert decoder.read(variant, data) is decoder.read(variant, data)


def test_a_name_is_in_memory_once(make: Make) -> None:
    """A resource and the request for it hold the same string, and so do a version and who holds it."""
    resource = make(CLUSTER, "a-name-of-some-length")
    message = discovery_pb2.DeltaDiscoveryRequest(
        resource_names_subscribe=["a-name-of-some-length"],
        initial_resource_versions={"a-name-of-some-length": "v1"},
    )
    first, second = (read_delta_request(message.SerializeToString()) for _ in range(2))

    assert first.subscribe[0] is resource.name
    assert next(iter(first.initial_versions)) is resource.name
    assert first.initial_versions[resource.name] is second.initial_versions[resource.name]


def test_a_type_and_what_is_referred_to_are_in_memory_once() -> None:
    """Resources, whatever refers to them, and requests for them hold the same strings."""
    name = "a-cluster-of-some-length"
    cluster = encode(cluster_pb2.Cluster(name=name, type=cluster_pb2.Cluster.EDS))
    assignment = encode(endpoint_pb2.ClusterLoadAssignment(cluster_name=name))
    request = discovery_pb2.DeltaDiscoveryRequest(type_url=ENDPOINT)
    ((type_url, referred),) = cluster.references

    assert referred is assignment.name
    assert assignment.type_url is type_url is ENDPOINT
    assert read_delta_request(request.SerializeToString()).type_url is ENDPOINT


def test_a_step_is_computed_once_for_a_group(make: Make) -> None:
    """The same two snapshots give the same object; another predecessor gives another answer."""
    one = Snapshot.of((make(CLUSTER, "a"), make(CLUSTER, "b")))
    two = Snapshot.of((make(CLUSTER, "a", 1), make(CLUSTER, "c")))

    step = two.changed_since(one)
    assert step == {CLUSTER: {"a", "b", "c"}}
    assert two.changed_since(one) is step
    assert two.changed_since(Snapshot.of(())) == {CLUSTER: {"a", "c"}}


def test_w15_two_resources_of_one_name_are_refused(make: Make) -> None:
    """W15: Envoy would reject such a response."""
    with pytest.raises(SnapshotError, match="'a'"):
        Snapshot.of((make(CLUSTER, "a"), make(CLUSTER, "a", 1)))


def test_missing_references_are_named(make: Make) -> None:
    """A cluster without its endpoints would warm for ever."""
    snapshot = Snapshot.of((make(CLUSTER, "a"), make(CLUSTER, "b"), make(ENDPOINT, "b")))

    assert [(r.name, kind, name) for r, kind, name in snapshot.missing()] == [("a", ENDPOINT, "a")]


def test_w2_d14_snapshots_are_equal_by_content_in_any_order(make: Make) -> None:
    """Replicas fed in different orders agree."""
    a, b = make(CLUSTER, "a"), make(ROUTE, "b")

    assert Snapshot.of((a, b)) == Snapshot.of((b, a))
    assert Snapshot.of((a, b)).version(CLUSTER) == Snapshot.of((make(CLUSTER, "a"),)).version(CLUSTER)
    assert Snapshot.of((a, b)) != Snapshot.of((a,))
    assert Snapshot.of((a,)) != Snapshot.of((a, b))


def test_publishing_wakes_only_whom_it_concerns(make: Make) -> None:
    """An equal snapshot, or another group's, wakes nobody; one that left is woken, and does not count."""
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


def test_s9_the_end_of_one_watch_leaves_the_other(make: Make) -> None:
    """S9: two streams of one node do not share their life."""
    cache = SnapshotCache()
    woken: list[str] = []
    node = NodeKey("n")
    first = cache.watch(node, lambda: woken.append("first"))
    cache.watch(node, lambda: woken.append("second"))
    cache.unwatch(first)
    cache.publish({GroupKey("g"): Snapshot.of((make(ENDPOINT, "a"),))}, {node: GroupKey("g")})

    assert woken == ["second"]
    assert ResourceName("a") in cache.snapshots()[GroupKey("g")].resources(ENDPOINT)


def test_o6_a_snapshot_that_lacks_something_is_refused_and_changes_nothing(make: Make) -> None:
    """It is said what needs what; the good snapshot before stays in force."""
    cache, group, node = SnapshotCache(), GroupKey("g"), NodeKey("n")
    cache.publish({group: Snapshot.of((make(ENDPOINT, "a"),))}, {node: group})

    with pytest.raises(InconsistentError, match="Cluster 'b' needs ClusterLoadAssignment 'b'"):
        cache.publish({group: Snapshot.of((make(CLUSTER, "b"),))}, {node: group})
    held = cache.snapshot(node)
    assert held is not None
    assert list(held.resources(ENDPOINT)) == ["a"]


def test_single_resources_are_added_replaced_and_removed(make: Make) -> None:
    """What is not touched is shared with the snapshot before."""
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


def test_what_is_new_and_what_is_other_are_one_change_of_the_last_part(make: Make) -> None:
    """So it knows what differs from the part before, and no table is compared."""
    first = Snapshot.of((make(ENDPOINT, "a"), make(ROUTE, "r")))
    last = first.changed([make(ENDPOINT, "a", 1), make(ENDPOINT, "b")], [(ROUTE, ResourceName("r"))])
    (before,), (after,) = first.parts, last.parts
    assert after._step is not None
    assert after._step[0]() is before
    assert last.changed_since(first) == {ENDPOINT: {"a", "b"}, ROUTE: {"r"}}


def test_a_settled_stream_has_no_empty_sets_of_its_own(make: Make) -> None:
    """Sets, additions, a removal, all acknowledged: what is empty again is the one empty set there is."""
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


def test_a_name_is_one_object_whoever_asks_for_it() -> None:
    """Requests that are not the same bytes name the same resource: its name is kept once."""
    one, two = (
        read_delta_request(
            discovery_pb2.DeltaDiscoveryRequest(
                type_url=ENDPOINT, resource_names_subscribe=["team/service|80"], response_nonce=nonce
            ).SerializeToString()
        )
        for nonce in ("1", "2")
    )

    assert one.subscribe[0] is two.subscribe[0]
