"""Tests of incremental xDS, rule by rule; the numbers are those of docs/understand/xds-rules.md."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from google.protobuf import duration_pb2

from protos.envoy.config.cluster.v3 import cluster_pb2
from protos.envoy.extensions.transport_sockets.tls.v3 import secret_pb2
from protos.envoy.service.discovery.v3 import discovery_pb2
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
    Version,
    encode,
)
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.wire import (
    NO_NONCE,
    DeltaRequest,
    Rejection,
    Response,
    delta_response_body,
    read_delta_request,
)

Make = Callable[..., Resource]
Said = list[tuple[str, list[str], list[str]]]


def ask(
    stream: DeltaStream,
    type_url: TypeUrl,
    *subscribe: str,
    minus: Iterable[str] = (),
    held: Iterable[Resource] = (),
    answers: Response | None = None,
) -> list[Response]:
    """Send a request."""
    return stream.on_request(
        DeltaRequest(
            type_url,
            tuple(map(ResourceName, subscribe)),
            tuple(map(ResourceName, minus)),
            {resource.name: resource.version for resource in held},
            answers.nonce if answers else NO_NONCE,
        )
    )


def ack(stream: DeltaStream, response: Response) -> list[Response]:
    """Accept a response."""
    return ask(stream, response.type_url, answers=response)


def nack(stream: DeltaStream, response: Response) -> list[Response]:
    """Reject a response."""
    return stream.on_request(
        DeltaRequest(response.type_url, nonce=response.nonce, rejection=Rejection(13, "no"))
    )


def said(responses: list[Response]) -> Said:
    """Return the short types, resources and removals of responses."""
    return [
        (r.type_url.rsplit(".", 1)[1], [resource.name for resource in r.resources], list(r.removed))
        for r in responses
    ]


def stream_of(*resources: Resource) -> DeltaStream:
    """Create a stream that has a snapshot of these resources."""
    stream = DeltaStream()
    assert stream.on_snapshot(Snapshot.of(resources)) == []
    return stream


def test_d1_ack_may_add_and_remove_subscriptions(make: Make) -> None:
    """The server honours both lists of names in any request, also in an acknowledgement."""
    stream = stream_of(make(ENDPOINT, "a"), make(ENDPOINT, "b"))
    response = ask(stream, ENDPOINT, "a")[0]

    assert said(ask(stream, ENDPOINT, "b", minus=["a"], answers=response)) == [
        ("ClusterLoadAssignment", ["b"], [])
    ]
    assert stream.on_snapshot(Snapshot.of((make(ENDPOINT, "a", 1), make(ENDPOINT, "b")))) == []


def test_d2_stale_nonce_does_not_void_a_subscription(make: Make) -> None:
    """The ACK of the first of two pushes adds a name, and its resource is sent."""
    stream = stream_of(make(ENDPOINT, "a"), make(ENDPOINT, "x"))
    first = ask(stream, ENDPOINT, "a")[0]
    stream.on_snapshot(Snapshot.of((make(ENDPOINT, "a", 1), make(ENDPOINT, "x"))))

    assert said(ask(stream, ENDPOINT, "x", answers=first)) == [("ClusterLoadAssignment", ["x"], [])]


def test_d3_name_requested_again_is_sent_again(make: Make) -> None:
    """The client may have dropped a resource that the server believes it holds."""
    stream = stream_of(make(ENDPOINT, "a"))
    ack(stream, ask(stream, ENDPOINT, "a")[0])

    assert said(ask(stream, ENDPOINT, "a")) == [("ClusterLoadAssignment", ["a"], [])]


def test_d4_missing_name_is_answered_at_once_and_sent_when_it_appears(make: Make) -> None:
    """The removal in the answer saves Envoy from waiting for its fetch timeout."""
    stream = stream_of(make(ENDPOINT, "a"))

    assert said(ask(stream, ENDPOINT, "a", "zz")) == [("ClusterLoadAssignment", ["a"], ["zz"])]
    assert said(stream.on_snapshot(Snapshot.of((make(ENDPOINT, "a"), make(ENDPOINT, "zz"))))) == [
        ("ClusterLoadAssignment", ["zz"], [])
    ]


def test_o6_missing_route_is_not_reported_as_missing(make: Make) -> None:
    """After such a report Envoy would stop its timer and wait for the route forever."""
    stream = stream_of()

    assert ask(stream, ROUTE, "r") == []
    assert said(stream.on_snapshot(Snapshot.of((make(ROUTE, "r"),)))) == [("RouteConfiguration", ["r"], [])]


def test_o6_route_removed_while_its_response_is_in_flight_is_reported_as_removed(make: Make) -> None:
    """The client drops the name and requests it again before it reads the response.

    It must not keep the deleted route.
    """
    stream = stream_of(make(ROUTE, "r"))
    on_its_way = ask(stream, ROUTE, "r")
    assert said(on_its_way) == [("RouteConfiguration", ["r"], [])]
    assert stream.on_snapshot(Snapshot.of(())) == []
    assert ask(stream, ROUTE, minus=["r"]) == []

    assert said(ask(stream, ROUTE, "r")) == [("RouteConfiguration", [], ["r"])]


def test_d5_only_the_changed_one_of_a_hundred_resources_is_sent(make: Make) -> None:
    """The response has exactly the changed resource, because each resource has its own version."""
    names = [f"e{i:03}" for i in range(100)]
    stream = stream_of(*(make(ENDPOINT, name) for name in names))
    ask(stream, ENDPOINT, *names)

    assert said(stream.on_snapshot(Snapshot.of(make(ENDPOINT, n, int(n == "e042")) for n in names))) == [
        ("ClusterLoadAssignment", ["e042"], [])
    ]


def test_d6_deleted_cluster_is_reported_as_removed(make: Make) -> None:
    """The response names only the deleted cluster, not the clusters that remain."""
    stream = stream_of(make(CLUSTER, "a"), make(CLUSTER, "b"))
    ack(stream, ask(stream, CLUSTER)[0])

    assert said(stream.on_snapshot(Snapshot.of((make(CLUSTER, "a"),)))) == [("Cluster", [], ["b"])]


def test_d7_wildcard_sequence_of_the_protocol_page_is_followed(make: Make) -> None:
    """After the requests [], +A, -*, -A, no subscription is left and a change is not sent."""
    stream = stream_of(make(CLUSTER, "A"), make(CLUSTER, "B"))
    ack(stream, ask(stream, CLUSTER)[0])
    ack(stream, ask(stream, CLUSTER, "A")[0])
    assert ask(stream, CLUSTER, minus=["*"]) == []
    only_a = stream.on_snapshot(Snapshot.of((make(CLUSTER, "A", 1), make(CLUSTER, "B", 1))))
    assert said(only_a) == [("Cluster", ["A"], [])]
    ack(stream, only_a[0])
    assert ask(stream, CLUSTER, minus=["A"]) == []

    assert stream.on_snapshot(Snapshot.of((make(CLUSTER, "A", 2),))) == []


def test_d8_first_request_without_names_subscribes_to_nothing_for_other_types(make: Make) -> None:
    """An empty request for endpoints gets no answer.

    Only listeners and clusters have the implicit wildcard.
    """
    stream = stream_of(make(ENDPOINT, "a"))

    assert ask(stream, ENDPOINT) == []


def test_d9_name_unsubscribed_under_a_wildcard_is_answered(make: Make) -> None:
    """The client must learn whether the wildcard still includes the resource, or the resource is removed."""
    stream = stream_of(make(CLUSTER, "A"))
    ack(stream, ask(stream, CLUSTER)[0])
    ack(stream, ask(stream, CLUSTER, "A", "gone")[0])

    assert said(ask(stream, CLUSTER, minus=["A", "gone"])) == [("Cluster", ["A"], ["gone"])]


def test_d10_first_wildcard_answer_is_sent_even_if_empty() -> None:
    """Envoy waits for the first answer before it continues its start."""
    assert said(ask(stream_of(), LISTENER)) == [("Listener", [], [])]


def test_d11_unsubscribing_an_unknown_name_is_ignored(make: Make) -> None:
    """The client never subscribed to this name, so the server sends no answer."""
    stream = stream_of(make(ENDPOINT, "a"))
    ask(stream, ENDPOINT, "a")

    assert ask(stream, ENDPOINT, minus=["never-seen"]) == []


def test_d12_rejected_version_is_held_back_and_good_content_is_sent_again(make: Make) -> None:
    """After a rejection the client holds the old version or none, so good content is sent when it returns."""
    good, bad = make(LISTENER, "a"), make(LISTENER, "a", 1)
    stream = stream_of(good)
    ack(stream, ask(stream, LISTENER)[0])
    rejected = stream.on_snapshot(Snapshot.of((bad,)))

    assert nack(stream, rejected[0]) == []
    assert stream.channels[0].rejection == Rejection(13, "no")
    assert stream.on_snapshot(Snapshot.of((bad, make(CLUSTER, "unasked")))) == []
    mended = stream.on_snapshot(Snapshot.of((good,)))
    assert said(mended) == [("Listener", ["a"], [])]
    ack(stream, mended[0])
    assert stream.channels[0].rejection is None


def test_d12_rejection_remains_while_other_resources_are_accepted(make: Make) -> None:
    """An ACK for another resource must not hide the resource that is still rejected."""
    stream = stream_of(make(LISTENER, "a"))
    first = ask(stream, LISTENER)
    nack(stream, first[0])
    second = stream.on_snapshot(Snapshot.of((make(LISTENER, "a"), make(LISTENER, "b"))))
    ack(stream, second[0])

    assert said(second) == [("Listener", ["b"], [])]
    assert stream.channels[0].rejection == Rejection(13, "no")


def test_d12_nack_of_an_older_response_is_recorded(make: Make) -> None:
    """The rejection remains although the newer of two responses in flight is accepted."""
    stream = stream_of(make(LISTENER, "a"))
    first = ask(stream, LISTENER)[0]
    second = stream.on_snapshot(Snapshot.of((make(LISTENER, "a"), make(LISTENER, "b"))))[0]
    nack(stream, first)
    ack(stream, second)

    assert stream.channels[0].rejection == Rejection(13, "no")


def test_d13_reconnecting_client_gets_only_the_differences(make: Make) -> None:
    """Current resources are not sent again.

    Old ones are replaced first, and deleted ones are removed after the ACK.
    """
    current, new = make(CLUSTER, "a"), make(CLUSTER, "b", 1)
    stream = stream_of(current, new)
    responses = ask(stream, CLUSTER, held=(current, make(CLUSTER, "b"), make(CLUSTER, "c")))

    assert said(responses) == [("Cluster", ["b"], [])]
    assert said(ack(stream, responses[0])) == [("Cluster", [], ["c"])]


def test_d13_initial_version_without_a_subscription_is_ignored(make: Make) -> None:
    """Initial versions are not a subscription, so a change of the listed resource is not sent."""
    stream = stream_of(make(ROUTE, "a"), make(ROUTE, "b"))

    assert ask(stream, ROUTE, "a", held=(make(ROUTE, "a"), make(ROUTE, "b"))) == []
    assert stream.on_snapshot(Snapshot.of((make(ROUTE, "a"), make(ROUTE, "b", 1)))) == []


def test_d14_reconnect_with_equal_content_receives_no_resource(make: Make) -> None:
    """Versions are hashes of the content, so another server process computes the same ones."""
    stream = stream_of(make(CLUSTER, "a"), make(LISTENER, "l"), make(ROUTE, "r"))

    responses = ask(stream, CLUSTER, held=(make(CLUSTER, "a"),))
    responses += ack(stream, responses[0])
    responses += ask(stream, LISTENER, held=(make(LISTENER, "l"),))
    responses += ask(stream, ROUTE, "r", held=(make(ROUTE, "r"),))
    assert [r for r in responses if r.resources or r.removed] == []


def test_o4_endpoints_are_sent_on_a_new_stream_whatever_the_client_holds(make: Make) -> None:
    """An Envoy that reconnects while a cluster warms needs its endpoints again."""
    stream = stream_of(make(ENDPOINT, "a"))

    assert said(ask(stream, ENDPOINT, "a", held=(make(ENDPOINT, "a"),))) == [
        ("ClusterLoadAssignment", ["a"], [])
    ]


def test_d17_equal_snapshot_sends_no_response(make: Make) -> None:
    """A new snapshot with equal content changes nothing for the client."""
    stream = stream_of(make(CLUSTER, "a"))
    ack(stream, ask(stream, CLUSTER)[0])

    assert stream.on_snapshot(Snapshot.of((make(CLUSTER, "a"),))) == []


def test_d18_resource_removed_and_added_again_is_sent_as_one_final_state(make: Make) -> None:
    """The resource returns while its removal is pending.

    Only its new content is sent, and no removal later.
    """
    stream = stream_of(make(CLUSTER, "a"), make(ROUTE, "r"))
    ack(stream, ask(stream, CLUSTER)[0])
    ack(stream, ask(stream, ROUTE, "r")[0])
    route = stream.on_snapshot(Snapshot.of((make(ROUTE, "r", 1),)))
    assert said(route) == [("RouteConfiguration", ["r"], [])]

    assert said(stream.on_snapshot(Snapshot.of((make(CLUSTER, "a", 1), make(ROUTE, "r", 1))))) == [
        ("Cluster", ["a"], [])
    ]
    assert ack(stream, route[0]) == []


def test_o2_old_cluster_is_removed_only_after_the_routes_have_switched(make: Make) -> None:
    """Make before break: first the new cluster, then the route, then the removal of the old cluster."""
    stream = stream_of(make(CLUSTER, "old"), make(ROUTE, "r"))
    ack(stream, ask(stream, CLUSTER)[0])
    ack(stream, ask(stream, ROUTE, "r")[0])

    made = stream.on_snapshot(Snapshot.of((make(CLUSTER, "new"), make(ROUTE, "r", 1))))
    assert said(made) == [("Cluster", ["new"], [])]
    switched = ack(stream, made[0])
    assert said(switched) == [("RouteConfiguration", ["r"], [])]
    assert said(ack(stream, switched[0])) == [("Cluster", [], ["old"])]


def swapped_and_refused(make: Make) -> DeltaStream:
    """Return a stream whose cluster was replaced, and whose route to the new cluster was rejected."""
    stream = stream_of(make(CLUSTER, "old"), make(ENDPOINT, "old"), make(ROUTE, "r"))
    ack(stream, ask(stream, CLUSTER)[0])
    ack(stream, ask(stream, ENDPOINT, "old")[0])
    ack(stream, ask(stream, ROUTE, "r")[0])
    made = stream.on_snapshot(Snapshot.of((make(CLUSTER, "new"), make(ENDPOINT, "new"), make(ROUTE, "r", 1))))
    assert nack(stream, ack(stream, made[0])[0]) == []
    assert stream.on_deadline() == []
    return stream


def test_o2_old_cluster_remains_while_the_new_route_is_rejected(make: Make) -> None:
    """The client continues with the old route.

    Its cluster and endpoints remain until another one is accepted.
    """
    stream = swapped_and_refused(make)
    new = make(CLUSTER, "new"), make(ENDPOINT, "new")
    mended = stream.on_snapshot(Snapshot.of((*new, make(ROUTE, "r", 2))))
    assert said(mended) == [("RouteConfiguration", ["r"], [])]
    assert said(ack(stream, mended[0])) == [
        ("Cluster", [], ["old"]),
        ("ClusterLoadAssignment", [], ["old"]),
    ]


def test_o2_old_cluster_is_removed_with_the_rejected_route(make: Make) -> None:
    """After the removal of the route, no resource of the client refers to the old cluster."""
    stream = swapped_and_refused(make)
    gone = stream.on_snapshot(Snapshot.of((make(CLUSTER, "new"), make(ENDPOINT, "new"))))
    assert said(gone) == [
        ("RouteConfiguration", [], ["r"]),
        ("Cluster", [], ["old"]),
        ("ClusterLoadAssignment", [], ["old"]),
    ]


def test_d7_pending_resources_are_not_sent_after_the_wildcard_ends(make: Make) -> None:
    """The client has no subscription to them; they are sent when it requests the wildcard again."""
    stream = stream_of(make(CLUSTER, "a"), make(LISTENER, "b"))
    ack(stream, ask(stream, CLUSTER)[0])
    ack(stream, ask(stream, LISTENER)[0])
    listeners = make(LISTENER, "b"), make(LISTENER, "d")
    held_back = stream.on_snapshot(Snapshot.of((make(CLUSTER, "a", 1), *listeners)))
    assert said(held_back) == [("Cluster", ["a"], [])]
    assert ask(stream, LISTENER, minus=("*",)) == []
    assert ack(stream, held_back[0]) == []
    assert said(ask(stream, LISTENER, "*")) == [("Listener", ["b", "d"], [])]


def test_d18_missing_name_that_appears_before_its_answer_is_sent_as_a_resource(make: Make) -> None:
    """The answer waits for the ACK of the clusters.

    It then has the current state, with the name in only one list.
    """
    stream = stream_of(make(CLUSTER, "a"), make(LISTENER, "b"))
    ack(stream, ask(stream, CLUSTER)[0])
    ack(stream, ask(stream, LISTENER, "b")[0])
    made = stream.on_snapshot(Snapshot.of((make(CLUSTER, "a", 1), make(LISTENER, "b"))))
    assert ask(stream, LISTENER, "late") == []
    both = make(LISTENER, "b"), make(LISTENER, "late")
    assert stream.on_snapshot(Snapshot.of((make(CLUSTER, "a", 1), *both))) == []
    assert said(ack(stream, made[0])) == [("Listener", ["late"], [])]


def test_o3_changed_cluster_is_followed_by_its_endpoints(make: Make) -> None:
    """Envoy with incremental xDS does not request them.

    Without them the cluster would warm for 15 seconds.
    """
    stream = stream_of(make(CLUSTER, "a"), make(ENDPOINT, "a"))
    ack(stream, ask(stream, CLUSTER)[0])
    ack(stream, ask(stream, ENDPOINT, "a")[0])

    assert said(stream.on_snapshot(Snapshot.of((make(CLUSTER, "a", 1), make(ENDPOINT, "a"))))) == [
        ("Cluster", ["a"], []),
        ("ClusterLoadAssignment", ["a"], []),
    ]


def test_s12_reconnect_before_the_first_snapshot_is_answered_by_it(make: Make) -> None:
    """The server remembers the client's versions, and compares them with the first snapshot."""
    stream = DeltaStream()
    assert ask(stream, CLUSTER, held=(make(CLUSTER, "a"), make(CLUSTER, "gone"))) == []

    responses = stream.on_snapshot(Snapshot.of((make(CLUSTER, "a"), make(CLUSTER, "new"))))
    assert said(responses) == [("Cluster", ["new"], [])]
    assert said(ack(stream, responses[0])) == [("Cluster", [], ["gone"])]


def test_d14_version_is_a_hash_of_the_content(make: Make) -> None:
    """The expected hash is fixed here, so that a release cannot change the versions unnoticed."""
    assert make(LISTENER, "a").version == Version("838931b2bced84a0")


def on_demand(resource: Resource) -> Resource:
    """Return the resource as an on-demand one, which a wildcard subscription does not include."""
    return replace(resource, on_demand=True)


def test_n7_on_demand_cluster_is_sent_to_a_client_that_names_it(make: Make) -> None:
    """A wildcard does not include the cluster. After a request by name, its changes are sent too."""
    stream = stream_of(make(CLUSTER, "a"), on_demand(make(CLUSTER, "od")))
    first = ask(stream, CLUSTER)
    assert said(first) == [("Cluster", ["a"], [])]
    ack(stream, first[0])

    named = ask(stream, CLUSTER, "od")
    assert said(named) == [("Cluster", ["od"], [])]
    ack(stream, named[0])
    changed = stream.on_snapshot(Snapshot.of((make(CLUSTER, "a"), on_demand(make(CLUSTER, "od", 1)))))
    assert said(changed) == [("Cluster", ["od"], [])]
    ack(stream, changed[0])
    assert said(ask(stream, CLUSTER, minus=["od"])) == [("Cluster", [], ["od"])]


def test_n7_unknown_on_demand_cluster_is_answered_at_once(make: Make) -> None:
    """Envoy can then answer its pending request; the cluster is pushed when it appears."""
    stream = stream_of(make(CLUSTER, "a"))
    ack(stream, ask(stream, CLUSTER)[0])

    unknown = ask(stream, CLUSTER, "od")
    assert said(unknown) == [("Cluster", [], ["od"])]
    ack(stream, unknown[0])
    assert said(stream.on_snapshot(Snapshot.of((make(CLUSTER, "a"), on_demand(make(CLUSTER, "od")))))) == [
        ("Cluster", ["od"], [])
    ]


def test_n5_heartbeat_has_name_and_version_without_the_body(make: Make) -> None:
    """The first response carries the time to live. A heartbeat names only resources with a time to live."""
    mortal = replace(make(LISTENER, "l"), ttl_seconds=1.5)
    stream = stream_of(mortal, make(LISTENER, "immortal"))
    first = ask(stream, LISTENER)[0]
    ack(stream, first)

    beat = stream.on_heartbeat()
    assert said(beat) == [("Listener", ["l"], [])]
    sent, again = (
        discovery_pb2.DeltaDiscoveryResponse.FromString(b"".join(delta_response_body(response, "")))
        for response in (first, beat[0])
    )
    assert [(r.name, r.ttl.ToNanoseconds(), r.HasField("resource")) for r in sent.resources] == [
        ("immortal", 0, True),
        ("l", 1_500_000_000, True),
    ]
    assert [(r.name, r.version, r.HasField("resource")) for r in again.resources] == [
        ("l", mortal.version, False)
    ]


def test_s7_unknown_type_does_not_end_the_incremental_stream() -> None:
    """Its names are answered as missing, and requests for other types are served."""
    stream = stream_of()

    assert said(ask(stream, TypeUrl("type.googleapis.com/foo.Bar"), "x")) == [("Bar", [], ["x"])]
    assert said(ask(stream, CLUSTER)) == [("Cluster", [], [])]


def reject(stream: DeltaStream, response: Response, words: str) -> None:
    """Reject a response with this error message."""
    stream.on_request(DeltaRequest(response.type_url, nonce=response.nonce, rejection=Rejection(13, words)))


def test_n3_rejection_applies_only_to_the_listeners_that_it_names(make: Make) -> None:
    """Envoy has applied the other listeners. When the bad one is removed, the rejection ends."""
    stream = stream_of(make(LISTENER, "a"), make(LISTENER, "a|1"), make(LISTENER, "b"))
    reject(stream, ask(stream, LISTENER)[0], "Error adding/updating listener(s) a|1: duplicate address")
    assert stream.channels[0].rejected.keys() == {"a|1"}

    gone = stream.on_snapshot(Snapshot.of((make(LISTENER, "a"), make(LISTENER, "b"))))
    assert said(gone) == [("Listener", [], ["a|1"])]
    assert stream.channels[0].rejection is None


@pytest.mark.parametrize(("type_url", "words"), [(LISTENER, "no reason"), (ENDPOINT, "a is bad")])
def test_n3_rejection_without_names_or_of_endpoints_applies_to_all_resources(
    make: Make, type_url: TypeUrl, words: str
) -> None:
    """The client may have applied no resource of the response, so all count as rejected."""
    stream = stream_of(make(type_url, "a"), make(type_url, "b"))
    reject(stream, ask(stream, type_url, "a", "b")[0], words)

    assert stream.channels[0].rejected.keys() == {"a", "b"}


@pytest.mark.parametrize(
    ("words", "again"),
    [
        ("Error adding/updating listener(s) bad: no", []),
        ('name: "bad": Proto constraint validation failed', [("Listener", ["good"], [])]),
        ("Invalid duration", [("Listener", ["good"], [])]),
    ],
)
def test_n3_d12_resources_lost_with_a_rejection_are_sent_again(make: Make, words: str, again: Said) -> None:
    """Only one form of Envoy's message means that the other resources were applied (seen in 1.36 to 1.40)."""
    stream = stream_of(make(LISTENER, "bad"), make(LISTENER, "good"))
    reject(stream, ask(stream, LISTENER)[0], words)
    unrelated = stream.on_snapshot(Snapshot.of(make(LISTENER, name) for name in ("bad", "good", "new")))
    assert said(unrelated) == [("Listener", ["new"], [])]
    ack(stream, unrelated[0])

    names = (("bad", 1), ("good", 0), ("new", 0))
    mended = stream.on_snapshot(Snapshot.of(make(LISTENER, name, content) for name, content in names))
    assert said(mended) == [("Listener", ["bad"], [])]
    retried = ack(stream, mended[0])
    assert said(retried) == again
    for response in retried:
        assert ack(stream, response) == []
    assert (stream.channels[0].rejection, stream.channels[0].blame) == (None, None)


def test_d12_change_beside_a_bad_resource_is_sent_separately(make: Make) -> None:
    """The changed resource is sent alone.

    The bad one is tried once more after it, and then held back again.
    """
    stream = stream_of(make(ENDPOINT, "bad"), make(ENDPOINT, "good"))
    nack(stream, ask(stream, ENDPOINT, "bad", "good")[0])

    changed = stream.on_snapshot(Snapshot.of((make(ENDPOINT, "bad"), make(ENDPOINT, "good", 1))))
    assert said(changed) == [("ClusterLoadAssignment", ["good"], [])]
    again = ack(stream, changed[0])
    assert said(again) == [("ClusterLoadAssignment", ["bad"], [])]
    assert nack(stream, again[0]) == []
    assert stream.channels[0].rejected.keys() == {"bad"}


def test_d12_neighbours_of_a_bad_resource_are_sent_again_after_its_removal(make: Make) -> None:
    """The client may have lost the other resources of the rejected response."""
    stream = stream_of(make(ENDPOINT, "bad"), make(ENDPOINT, "good"))
    nack(stream, ask(stream, ENDPOINT, "bad", "good")[0])

    responses = stream.on_snapshot(Snapshot.of((make(ENDPOINT, "good"),)))
    assert said(responses) == [
        ("ClusterLoadAssignment", ["good"], []),
        ("ClusterLoadAssignment", [], ["bad"]),
    ]
    for response in responses:
        ack(stream, response)
    assert stream.channels[0].rejection is None


def test_d12_removal_rejected_with_a_bad_neighbour_is_sent_again(make: Make) -> None:
    """A listener must not survive because another one is bad. The separate removal is sent only once."""
    stream = stream_of(make(LISTENER, "old"))
    ack(stream, ask(stream, LISTENER)[0])
    pushed = stream.on_snapshot(Snapshot.of((make(LISTENER, "bad"),)))
    assert said(pushed) == [("Listener", ["bad"], ["old"])]

    again = nack(stream, pushed[0])
    assert said(again) == [("Listener", [], ["old"])]
    assert nack(stream, again[0]) == []


def test_d12_rejection_of_a_removal_ends_with_the_next_acceptance(make: Make) -> None:
    """Some Envoy releases reject the removal of a secret.

    No resource could be corrected to end this rejection.
    """
    stream = stream_of(make(ENDPOINT, "a"), make(ENDPOINT, "b"))
    ack(stream, ask(stream, ENDPOINT, "a", "b")[0])
    nack(stream, stream.on_snapshot(Snapshot.of((make(ENDPOINT, "a"),)))[0])
    assert stream.channels[0].rejection == Rejection(13, "no")

    ack(stream, stream.on_snapshot(Snapshot.of((make(ENDPOINT, "a", 1),)))[0])
    assert [channel.rejection for channel in stream.channels] == [None]


def test_d12_rejected_version_is_not_sent_again_when_it_returns(make: Make) -> None:
    """The snapshot changes from bad to good and back before the client answers. Bad is sent only once."""
    good, bad = make(LISTENER, "a"), make(LISTENER, "a", 1)
    stream = stream_of(good)
    ack(stream, ask(stream, LISTENER)[0])
    nack(stream, stream.on_snapshot(Snapshot.of((bad,)))[0])
    assert said(stream.on_snapshot(Snapshot.of((good,)))) == [("Listener", ["a"], [])]

    assert stream.on_snapshot(Snapshot.of((bad,))) == []


def test_d12_corrected_cluster_is_followed_by_its_endpoints(make: Make) -> None:
    """The client did not apply the rejected cluster, so the corrected one is new to it and must warm (O3)."""
    rest = (make(ENDPOINT, "a"), make(ENDPOINT, "bad"))
    stream = stream_of(make(CLUSTER, "a"), make(CLUSTER, "bad"), *rest)
    ack(stream, ask(stream, CLUSTER)[0])
    ack(stream, ask(stream, ENDPOINT, "a", "bad")[0])
    pushed = stream.on_snapshot(Snapshot.of((make(CLUSTER, "a", 1), make(CLUSTER, "bad", 1), *rest)))
    reject(stream, pushed[0], "Invalid duration")

    mended = stream.on_snapshot(Snapshot.of((make(CLUSTER, "a", 1), make(CLUSTER, "bad", 2), *rest)))
    assert said(mended) == [("Cluster", ["bad"], []), ("ClusterLoadAssignment", ["bad"], [])]
    assert said(ack(stream, mended[0])) == [("Cluster", ["a"], []), ("ClusterLoadAssignment", ["a"], [])]


def test_d15_nonces_never_repeat_on_an_incremental_stream(make: Make) -> None:
    """More than 1000 responses of two types have different nonces, none of them empty."""
    stream = stream_of(make(ENDPOINT, "a"), make(ROUTE, "a"))
    responses = [*ask(stream, ENDPOINT, "a"), *ask(stream, ROUTE, "a")]
    for content in range(1, 1000):
        responses += stream.on_snapshot(Snapshot.of(make(kind, "a", content) for kind in (ENDPOINT, ROUTE)))

    assert len({response.nonce for response in responses} - {""}) == len(responses) > 1000


def test_o1_o5_push_sends_clusters_and_endpoints_before_listeners_and_routes(make: Make) -> None:
    """Listeners and routes wait for the ACK of the clusters, which are then warm."""
    types = (CLUSTER, ENDPOINT, LISTENER, ROUTE)
    stream = stream_of(*(make(type_url, "a") for type_url in types))
    for type_url in types:
        for response in ask(stream, type_url, "a"):
            ack(stream, response)

    pushed = stream.on_snapshot(Snapshot.of(make(type_url, "a", 1) for type_url in types))

    assert said(pushed) == [("Cluster", ["a"], []), ("ClusterLoadAssignment", ["a"], [])]
    assert stream.is_waiting
    assert said(ack(stream, pushed[0])) == [("Listener", ["a"], []), ("RouteConfiguration", ["a"], [])]


def test_o7_secret_rotates_by_one_push_and_a_missing_one_is_answered(make: Make) -> None:
    """The push contains only the secret, and waits for no other response."""

    def cert(content: int) -> Resource:
        message = secret_pb2.Secret(name="cert")
        message.tls_certificate.certificate_chain.inline_string = str(content)
        return encode(message)

    stream = stream_of(make(LISTENER, "l"), cert(0))
    ack(stream, ask(stream, LISTENER)[0])
    assert said(ask(stream, SECRET, "cert", "none")) == [("Secret", ["cert"], ["none"])]

    assert said(stream.on_snapshot(Snapshot.of((make(LISTENER, "l"), cert(1))))) == [("Secret", ["cert"], [])]


def test_n11_resource_locators_are_ignored() -> None:
    """No known client sends them, and they add no subscription."""
    message = discovery_pb2.DeltaDiscoveryRequest(type_url=ENDPOINT)
    message.resource_locators_subscribe.add(name="a")

    assert read_delta_request(message.SerializeToString()) == DeltaRequest(ENDPOINT)


def test_n12_resource_that_violates_constraints_is_served_unchanged() -> None:
    """The client's release may have other constraints than the server's protos, and can reject it."""
    strange = encode(cluster_pb2.Cluster(name="c", connect_timeout=duration_pb2.Duration(seconds=-1)))

    assert said(ask(stream_of(strange), CLUSTER)) == [("Cluster", ["c"], [])]
