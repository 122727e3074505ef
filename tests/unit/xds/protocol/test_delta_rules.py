"""Incremental, rule by rule; the numbers are those of docs/xds-rules.md."""

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
    """Name the types, resources and removals of responses, short."""
    return [
        (r.type_url.rsplit(".", 1)[1], [resource.name for resource in r.resources], list(r.removed))
        for r in responses
    ]


def stream_of(*resources: Resource) -> DeltaStream:
    """Make a stream whose snapshot is there."""
    stream = DeltaStream()
    assert stream.on_snapshot(Snapshot.of(resources)) == []
    return stream


def test_d1_an_ack_may_carry_subscriptions(make: Make) -> None:
    """Both lists are honoured in any message."""
    stream = stream_of(make(ENDPOINT, "a"), make(ENDPOINT, "b"))
    response = ask(stream, ENDPOINT, "a")[0]

    assert said(ask(stream, ENDPOINT, "b", minus=["a"], answers=response)) == [
        ("ClusterLoadAssignment", ["b"], [])
    ]
    assert stream.on_snapshot(Snapshot.of((make(ENDPOINT, "a", 1), make(ENDPOINT, "b")))) == []


def test_d2_a_stale_nonce_does_not_void_a_subscription(make: Make) -> None:
    """Two pushes; the ACK of the first brings a name, which is sent."""
    stream = stream_of(make(ENDPOINT, "a"), make(ENDPOINT, "x"))
    first = ask(stream, ENDPOINT, "a")[0]
    stream.on_snapshot(Snapshot.of((make(ENDPOINT, "a", 1), make(ENDPOINT, "x"))))

    assert said(ask(stream, ENDPOINT, "x", answers=first)) == [("ClusterLoadAssignment", ["x"], [])]


def test_d3_asked_for_again_is_sent_again(make: Make) -> None:
    """The client may have forgotten what we believe it holds."""
    stream = stream_of(make(ENDPOINT, "a"))
    ack(stream, ask(stream, ENDPOINT, "a")[0])

    assert said(ask(stream, ENDPOINT, "a")) == [("ClusterLoadAssignment", ["a"], [])]


def test_d4_a_missing_name_is_answered_at_once_and_sent_when_it_appears(make: Make) -> None:
    """Envoy need not wait for its fetch timeout."""
    stream = stream_of(make(ENDPOINT, "a"))

    assert said(ask(stream, ENDPOINT, "a", "zz")) == [("ClusterLoadAssignment", ["a"], ["zz"])]
    assert said(stream.on_snapshot(Snapshot.of((make(ENDPOINT, "a"), make(ENDPOINT, "zz"))))) == [
        ("ClusterLoadAssignment", ["zz"], [])
    ]


def test_o6_a_missing_route_is_not_said_to_be_missing(make: Make) -> None:
    """Envoy would disarm its timer and wait for ever."""
    stream = stream_of()

    assert ask(stream, ROUTE, "r") == []
    assert said(stream.on_snapshot(Snapshot.of((make(ROUTE, "r"),)))) == [("RouteConfiguration", ["r"], [])]


def test_o6_a_route_that_goes_while_it_is_on_its_way_is_said_to_be_gone(make: Make) -> None:
    """The client drops it and asks again before it has read the answer: it must not keep what is no more."""
    stream = stream_of(make(ROUTE, "r"))
    on_its_way = ask(stream, ROUTE, "r")
    assert said(on_its_way) == [("RouteConfiguration", ["r"], [])]
    assert stream.on_snapshot(Snapshot.of(())) == []
    assert ask(stream, ROUTE, minus=["r"]) == []

    assert said(ask(stream, ROUTE, "r")) == [("RouteConfiguration", [], ["r"])]


def test_d5_one_of_a_hundred_changes(make: Make) -> None:
    """The response has exactly that one."""
    names = [f"e{i:03}" for i in range(100)]
    stream = stream_of(*(make(ENDPOINT, name) for name in names))
    ask(stream, ENDPOINT, *names)

    assert said(stream.on_snapshot(Snapshot.of(make(ENDPOINT, n, int(n == "e042")) for n in names))) == [
        ("ClusterLoadAssignment", ["e042"], [])
    ]


def test_d6_a_deleted_cluster_is_removed(make: Make) -> None:
    """The rest is not mentioned."""
    stream = stream_of(make(CLUSTER, "a"), make(CLUSTER, "b"))
    ack(stream, ask(stream, CLUSTER)[0])

    assert said(stream.on_snapshot(Snapshot.of((make(CLUSTER, "a"),)))) == [("Cluster", [], ["b"])]


def test_d7_the_wildcard_sequence_of_the_protocol_page(make: Make) -> None:
    """[], +A, -*, -A, and then a change is silence."""
    stream = stream_of(make(CLUSTER, "A"), make(CLUSTER, "B"))
    ack(stream, ask(stream, CLUSTER)[0])
    ack(stream, ask(stream, CLUSTER, "A")[0])
    assert ask(stream, CLUSTER, minus=["*"]) == []
    only_a = stream.on_snapshot(Snapshot.of((make(CLUSTER, "A", 1), make(CLUSTER, "B", 1))))
    assert said(only_a) == [("Cluster", ["A"], [])]
    ack(stream, only_a[0])
    assert ask(stream, CLUSTER, minus=["A"]) == []

    assert stream.on_snapshot(Snapshot.of((make(CLUSTER, "A", 2),))) == []


def test_d8_no_names_mean_nothing_for_other_types(make: Make) -> None:
    """An empty first request for endpoints subscribes to none."""
    stream = stream_of(make(ENDPOINT, "a"))

    assert ask(stream, ENDPOINT) == []


def test_d9_a_name_dropped_under_a_wildcard_is_answered(make: Make) -> None:
    """It is still there, or it is not: the client must be told."""
    stream = stream_of(make(CLUSTER, "A"))
    ack(stream, ask(stream, CLUSTER)[0])
    ack(stream, ask(stream, CLUSTER, "A", "gone")[0])

    assert said(ask(stream, CLUSTER, minus=["A", "gone"])) == [("Cluster", ["A"], ["gone"])]


def test_d10_the_first_wildcard_answer_is_sent_even_if_empty() -> None:
    """Envoy waits for it."""
    assert said(ask(stream_of(), LISTENER)) == [("Listener", [], [])]


def test_d11_a_superfluous_unsubscribe_is_ignored(make: Make) -> None:
    """Nothing was asked for, nothing is said."""
    stream = stream_of(make(ENDPOINT, "a"))
    ask(stream, ENDPOINT, "a")

    assert ask(stream, ENDPOINT, minus=["never-seen"]) == []


def test_d12_a_nack_parks_and_the_good_content_is_sent_when_it_returns(make: Make) -> None:
    """What was rejected is not what the client holds."""
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


def test_d12_a_rejection_stands_while_other_resources_are_accepted(make: Make) -> None:
    """An ACK for a neighbour does not hide what is still wrong."""
    stream = stream_of(make(LISTENER, "a"))
    first = ask(stream, LISTENER)
    nack(stream, first[0])
    second = stream.on_snapshot(Snapshot.of((make(LISTENER, "a"), make(LISTENER, "b"))))
    ack(stream, second[0])

    assert said(second) == [("Listener", ["b"], [])]
    assert stream.channels[0].rejection == Rejection(13, "no")


def test_d12_a_nack_of_an_older_response_counts(make: Make) -> None:
    """Both responses are under way when the first is rejected."""
    stream = stream_of(make(LISTENER, "a"))
    first = ask(stream, LISTENER)[0]
    second = stream.on_snapshot(Snapshot.of((make(LISTENER, "a"), make(LISTENER, "b"))))[0]
    nack(stream, first)
    ack(stream, second)

    assert stream.channels[0].rejection == Rejection(13, "no")


def test_d13_a_reconnect_gets_what_differs(make: Make) -> None:
    """Not what it holds, but what is old, and word of what is gone."""
    current, new = make(CLUSTER, "a"), make(CLUSTER, "b", 1)
    stream = stream_of(current, new)
    responses = ask(stream, CLUSTER, held=(current, make(CLUSTER, "b"), make(CLUSTER, "c")))

    assert said(responses) == [("Cluster", ["b"], [])]
    assert said(ack(stream, responses[0])) == [("Cluster", [], ["c"])]


def test_d13_what_is_listed_but_not_subscribed_is_ignored(make: Make) -> None:
    """Versions are no subscription."""
    stream = stream_of(make(ROUTE, "a"), make(ROUTE, "b"))

    assert ask(stream, ROUTE, "a", held=(make(ROUTE, "a"), make(ROUTE, "b"))) == []
    assert stream.on_snapshot(Snapshot.of((make(ROUTE, "a"), make(ROUTE, "b", 1)))) == []


def test_d14_a_reconnect_with_equal_content_is_sent_no_resource(make: Make) -> None:
    """Versions are hashes: another process agrees with them."""
    stream = stream_of(make(CLUSTER, "a"), make(LISTENER, "l"), make(ROUTE, "r"))

    responses = ask(stream, CLUSTER, held=(make(CLUSTER, "a"),))
    responses += ack(stream, responses[0])
    responses += ask(stream, LISTENER, held=(make(LISTENER, "l"),))
    responses += ask(stream, ROUTE, "r", held=(make(ROUTE, "r"),))
    assert [r for r in responses if r.resources or r.removed] == []


def test_o4_endpoints_are_sent_on_a_new_stream_whatever_is_held(make: Make) -> None:
    """An Envoy that reconnects while it warms needs them."""
    stream = stream_of(make(ENDPOINT, "a"))

    assert said(ask(stream, ENDPOINT, "a", held=(make(ENDPOINT, "a"),))) == [
        ("ClusterLoadAssignment", ["a"], [])
    ]


def test_d17_an_equal_snapshot_is_silence(make: Make) -> None:
    """Nothing changed, nothing sent."""
    stream = stream_of(make(CLUSTER, "a"))
    ack(stream, ask(stream, CLUSTER)[0])

    assert stream.on_snapshot(Snapshot.of((make(CLUSTER, "a"),))) == []


def test_d18_removed_and_added_again_is_one_final_state(make: Make) -> None:
    """While the removal waits, the resource returns: it is sent, and never taken back."""
    stream = stream_of(make(CLUSTER, "a"), make(ROUTE, "r"))
    ack(stream, ask(stream, CLUSTER)[0])
    ack(stream, ask(stream, ROUTE, "r")[0])
    route = stream.on_snapshot(Snapshot.of((make(ROUTE, "r", 1),)))
    assert said(route) == [("RouteConfiguration", ["r"], [])]

    assert said(stream.on_snapshot(Snapshot.of((make(CLUSTER, "a", 1), make(ROUTE, "r", 1))))) == [
        ("Cluster", ["a"], [])
    ]
    assert ack(stream, route[0]) == []


def test_o2_an_old_cluster_goes_only_when_the_routes_have_switched(make: Make) -> None:
    """Make before break: the new cluster, then the route, then the old one's removal."""
    stream = stream_of(make(CLUSTER, "old"), make(ROUTE, "r"))
    ack(stream, ask(stream, CLUSTER)[0])
    ack(stream, ask(stream, ROUTE, "r")[0])

    made = stream.on_snapshot(Snapshot.of((make(CLUSTER, "new"), make(ROUTE, "r", 1))))
    assert said(made) == [("Cluster", ["new"], [])]
    switched = ack(stream, made[0])
    assert said(switched) == [("RouteConfiguration", ["r"], [])]
    assert said(ack(stream, switched[0])) == [("Cluster", [], ["old"])]


def swapped_and_refused(make: Make) -> DeltaStream:
    """Return a stream whose cluster was swapped, and whose route to the new one was rejected."""
    stream = stream_of(make(CLUSTER, "old"), make(ENDPOINT, "old"), make(ROUTE, "r"))
    ack(stream, ask(stream, CLUSTER)[0])
    ack(stream, ask(stream, ENDPOINT, "old")[0])
    ack(stream, ask(stream, ROUTE, "r")[0])
    made = stream.on_snapshot(Snapshot.of((make(CLUSTER, "new"), make(ENDPOINT, "new"), make(ROUTE, "r", 1))))
    assert nack(stream, ack(stream, made[0])[0]) == []
    assert stream.on_deadline() == []
    return stream


def test_o2_an_old_cluster_stays_while_the_new_route_is_refused(make: Make) -> None:
    """The client goes on with the old route: what that refers to goes when the client has taken another."""
    stream = swapped_and_refused(make)
    new = make(CLUSTER, "new"), make(ENDPOINT, "new")
    mended = stream.on_snapshot(Snapshot.of((*new, make(ROUTE, "r", 2))))
    assert said(mended) == [("RouteConfiguration", ["r"], [])]
    assert said(ack(stream, mended[0])) == [
        ("Cluster", [], ["old"]),
        ("ClusterLoadAssignment", [], ["old"]),
    ]


def test_o2_an_old_cluster_goes_with_the_route_that_was_refused(make: Make) -> None:
    """Nothing refers to it any more."""
    stream = swapped_and_refused(make)
    gone = stream.on_snapshot(Snapshot.of((make(CLUSTER, "new"), make(ENDPOINT, "new"))))
    assert said(gone) == [
        ("RouteConfiguration", [], ["r"]),
        ("Cluster", [], ["old"]),
        ("ClusterLoadAssignment", [], ["old"]),
    ]


def test_d7_what_waits_when_the_wildcard_ends_is_not_sent(make: Make) -> None:
    """Nobody is subscribed to it; it comes when the wildcard is asked for again."""
    stream = stream_of(make(CLUSTER, "a"), make(LISTENER, "b"))
    ack(stream, ask(stream, CLUSTER)[0])
    ack(stream, ask(stream, LISTENER)[0])
    listeners = make(LISTENER, "b"), make(LISTENER, "d")
    held_back = stream.on_snapshot(Snapshot.of((make(CLUSTER, "a", 1), *listeners)))
    assert said(held_back) == [("Cluster", ["a"], [])]
    assert ask(stream, LISTENER, minus=("*",)) == []
    assert ack(stream, held_back[0]) == []
    assert said(ask(stream, LISTENER, "*")) == [("Listener", ["b", "d"], [])]


def test_d18_a_missing_name_that_appears_before_it_is_answered_is_there(make: Make) -> None:
    """Its answer waits for the clusters': what is said then is as it is then, and never in both lists."""
    stream = stream_of(make(CLUSTER, "a"), make(LISTENER, "b"))
    ack(stream, ask(stream, CLUSTER)[0])
    ack(stream, ask(stream, LISTENER, "b")[0])
    made = stream.on_snapshot(Snapshot.of((make(CLUSTER, "a", 1), make(LISTENER, "b"))))
    assert ask(stream, LISTENER, "late") == []
    both = make(LISTENER, "b"), make(LISTENER, "late")
    assert stream.on_snapshot(Snapshot.of((make(CLUSTER, "a", 1), *both))) == []
    assert said(ack(stream, made[0])) == [("Listener", ["late"], [])]


def test_o3_a_changed_cluster_is_followed_by_its_endpoints(make: Make) -> None:
    """A delta Envoy does not ask for them: without, it warms for 15 seconds."""
    stream = stream_of(make(CLUSTER, "a"), make(ENDPOINT, "a"))
    ack(stream, ask(stream, CLUSTER)[0])
    ack(stream, ask(stream, ENDPOINT, "a")[0])

    assert said(stream.on_snapshot(Snapshot.of((make(CLUSTER, "a", 1), make(ENDPOINT, "a"))))) == [
        ("Cluster", ["a"], []),
        ("ClusterLoadAssignment", ["a"], []),
    ]


def test_s12_a_reconnect_before_the_first_snapshot_is_held(make: Make) -> None:
    """What the client holds is remembered until there is something to compare it with."""
    stream = DeltaStream()
    assert ask(stream, CLUSTER, held=(make(CLUSTER, "a"), make(CLUSTER, "gone"))) == []

    responses = stream.on_snapshot(Snapshot.of((make(CLUSTER, "a"), make(CLUSTER, "new"))))
    assert said(responses) == [("Cluster", ["new"], [])]
    assert said(ack(stream, responses[0])) == [("Cluster", [], ["gone"])]


def test_d14_a_version_is_a_hash_of_content(make: Make) -> None:
    """It is written down here: another process, or another release of ours, must not differ unnoticed."""
    assert make(LISTENER, "a").version == Version("838931b2bced84a0")


def on_demand(resource: Resource) -> Resource:
    """Return the resource as one that a wildcard does not show."""
    return replace(resource, on_demand=True)


def test_n7_a_cluster_on_demand_is_sent_to_who_names_it(make: Make) -> None:
    """The wildcard does not show it; its name does, and so does a later change of it."""
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


def test_n7_an_unknown_cluster_on_demand_is_answered_at_once(make: Make) -> None:
    """So that Envoy can answer its request; the cluster is pushed when it comes."""
    stream = stream_of(make(CLUSTER, "a"))
    ack(stream, ask(stream, CLUSTER)[0])

    unknown = ask(stream, CLUSTER, "od")
    assert said(unknown) == [("Cluster", [], ["od"])]
    ack(stream, unknown[0])
    assert said(stream.on_snapshot(Snapshot.of((make(CLUSTER, "a"), on_demand(make(CLUSTER, "od")))))) == [
        ("Cluster", ["od"], [])
    ]


def test_n5_who_holds_a_resource_with_a_time_to_live_hears_of_it_without_its_body(make: Make) -> None:
    """The resource brings its time; the heartbeat has name and version only, and nothing else is in it."""
    mortal = replace(make(LISTENER, "l"), ttl_seconds=1.5)
    stream = stream_of(mortal, make(LISTENER, "immortal"))
    first = ask(stream, LISTENER)[0]
    ack(stream, first)

    beat = stream.on_heartbeat()
    assert said(beat) == [("Listener", ["l"], [])]
    sent, again = (
        discovery_pb2.DeltaDiscoveryResponse.FromString(b"".join(delta_response_body(each, "")))
        for each in (first, beat[0])
    )
    assert [(r.name, r.ttl.ToNanoseconds(), r.HasField("resource")) for r in sent.resources] == [
        ("immortal", 0, True),
        ("l", 1_500_000_000, True),
    ]
    assert [(r.name, r.version, r.HasField("resource")) for r in again.resources] == [
        ("l", mortal.version, False)
    ]


def test_s7_a_type_that_nobody_has_does_not_end_the_stream() -> None:
    """Its names are answered as missing, and the other types go on."""
    stream = stream_of()

    assert said(ask(stream, TypeUrl("type.googleapis.com/foo.Bar"), "x")) == [("Bar", [], ["x"])]
    assert said(ask(stream, CLUSTER)) == [("Cluster", [], [])]


def reject(stream: DeltaStream, response: Response, words: str) -> None:
    """Reject a response in these words."""
    stream.on_request(DeltaRequest(response.type_url, nonce=response.nonce, rejection=Rejection(13, words)))


def test_n3_a_rejection_is_about_the_listeners_that_it_names(make: Make) -> None:
    """Envoy has applied the others; when the bad one is gone, so is the rejection."""
    stream = stream_of(make(LISTENER, "a"), make(LISTENER, "a|1"), make(LISTENER, "b"))
    reject(stream, ask(stream, LISTENER)[0], "Error adding/updating listener(s) a|1: duplicate address")
    assert stream.channels[0].rejected.keys() == {"a|1"}

    gone = stream.on_snapshot(Snapshot.of((make(LISTENER, "a"), make(LISTENER, "b"))))
    assert said(gone) == [("Listener", [], ["a|1"])]
    assert stream.channels[0].rejection is None


@pytest.mark.parametrize(("type_url", "words"), [(LISTENER, "no reason"), (ENDPOINT, "a is bad")])
def test_n3_a_rejection_that_names_none_or_of_a_type_taken_whole_is_about_all(
    make: Make, type_url: TypeUrl, words: str
) -> None:
    """What may have been lost is not believed to be there."""
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
def test_n3_d12_what_a_rejection_may_have_cost_is_sent_again(make: Make, words: str, again: Said) -> None:
    """Only one form of Envoy's words says that the others were applied (1.36 to 1.40)."""
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


def test_d12_a_change_beside_a_bad_resource_is_not_drawn_into_its_rejection(make: Make) -> None:
    """The changed one goes alone; the other is tried once more after it, and parked again."""
    stream = stream_of(make(ENDPOINT, "bad"), make(ENDPOINT, "good"))
    nack(stream, ask(stream, ENDPOINT, "bad", "good")[0])

    changed = stream.on_snapshot(Snapshot.of((make(ENDPOINT, "bad"), make(ENDPOINT, "good", 1))))
    assert said(changed) == [("ClusterLoadAssignment", ["good"], [])]
    again = ack(stream, changed[0])
    assert said(again) == [("ClusterLoadAssignment", ["bad"], [])]
    assert nack(stream, again[0]) == []
    assert stream.channels[0].rejected.keys() == {"bad"}


def test_d12_what_stood_beside_a_bad_resource_is_sent_again_when_that_goes(make: Make) -> None:
    """The bad one is taken out of the mesh: what it had cost comes."""
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


def test_d12_a_removal_that_was_rejected_with_a_bad_neighbour_is_said_again(make: Make) -> None:
    """A listener that shall go must not stay because another one is bad; said alone it is said once."""
    stream = stream_of(make(LISTENER, "old"))
    ack(stream, ask(stream, LISTENER)[0])
    pushed = stream.on_snapshot(Snapshot.of((make(LISTENER, "bad"),)))
    assert said(pushed) == [("Listener", ["bad"], ["old"])]

    again = nack(stream, pushed[0])
    assert said(again) == [("Listener", [], ["old"])]
    assert nack(stream, again[0]) == []


def test_d12_a_rejected_removal_is_forgotten_with_the_next_acceptance(make: Make) -> None:
    """Some releases reject the removal of a secret: no resource is to blame, and none has to be mended."""
    stream = stream_of(make(ENDPOINT, "a"), make(ENDPOINT, "b"))
    ack(stream, ask(stream, ENDPOINT, "a", "b")[0])
    nack(stream, stream.on_snapshot(Snapshot.of((make(ENDPOINT, "a"),)))[0])
    assert stream.channels[0].rejection == Rejection(13, "no")

    ack(stream, stream.on_snapshot(Snapshot.of((make(ENDPOINT, "a", 1),)))[0])
    assert [channel.rejection for channel in stream.channels] == [None]


def test_d12_a_rejected_version_is_not_sent_again_when_it_returns(make: Make) -> None:
    """Good, bad, good, and bad once more before the client has answered: bad was sent once."""
    good, bad = make(LISTENER, "a"), make(LISTENER, "a", 1)
    stream = stream_of(good)
    ack(stream, ask(stream, LISTENER)[0])
    nack(stream, stream.on_snapshot(Snapshot.of((bad,)))[0])
    assert said(stream.on_snapshot(Snapshot.of((good,)))) == [("Listener", ["a"], [])]

    assert stream.on_snapshot(Snapshot.of((bad,))) == []


def test_d12_a_rejected_cluster_that_is_made_good_brings_its_endpoints(make: Make) -> None:
    """It was not applied, so it is new to the client when it comes again, and warms (O3)."""
    rest = (make(ENDPOINT, "a"), make(ENDPOINT, "bad"))
    stream = stream_of(make(CLUSTER, "a"), make(CLUSTER, "bad"), *rest)
    ack(stream, ask(stream, CLUSTER)[0])
    ack(stream, ask(stream, ENDPOINT, "a", "bad")[0])
    pushed = stream.on_snapshot(Snapshot.of((make(CLUSTER, "a", 1), make(CLUSTER, "bad", 1), *rest)))
    reject(stream, pushed[0], "Invalid duration")

    mended = stream.on_snapshot(Snapshot.of((make(CLUSTER, "a", 1), make(CLUSTER, "bad", 2), *rest)))
    assert said(mended) == [("Cluster", ["bad"], []), ("ClusterLoadAssignment", ["bad"], [])]
    assert said(ack(stream, mended[0])) == [("Cluster", ["a"], []), ("ClusterLoadAssignment", ["a"], [])]


def test_d15_nonces_never_repeat_on_a_stream(make: Make) -> None:
    """Whatever the type."""
    stream = stream_of(make(ENDPOINT, "a"), make(ROUTE, "a"))
    responses = [*ask(stream, ENDPOINT, "a"), *ask(stream, ROUTE, "a")]
    for content in range(1, 1000):
        responses += stream.on_snapshot(Snapshot.of(make(kind, "a", content) for kind in (ENDPOINT, ROUTE)))

    assert len({response.nonce for response in responses} - {""}) == len(responses) > 1000


def test_o1_o5_a_push_goes_clusters_endpoints_then_listeners_and_routes(make: Make) -> None:
    """Listeners and routes wait until the clusters are accepted, which is when they are warm."""
    types = (CLUSTER, ENDPOINT, LISTENER, ROUTE)
    stream = stream_of(*(make(type_url, "a") for type_url in types))
    for type_url in types:
        for response in ask(stream, type_url, "a"):
            ack(stream, response)

    pushed = stream.on_snapshot(Snapshot.of(make(type_url, "a", 1) for type_url in types))

    assert said(pushed) == [("Cluster", ["a"], []), ("ClusterLoadAssignment", ["a"], [])]
    assert stream.is_waiting
    assert said(ack(stream, pushed[0])) == [("Listener", ["a"], []), ("RouteConfiguration", ["a"], [])]


def test_o7_a_secret_rotates_by_one_push_and_a_missing_one_is_answered(make: Make) -> None:
    """Nothing else is sent with it, and nothing waits for it."""

    def cert(content: int) -> Resource:
        message = secret_pb2.Secret(name="cert")
        message.tls_certificate.certificate_chain.inline_string = str(content)
        return encode(message)

    stream = stream_of(make(LISTENER, "l"), cert(0))
    ack(stream, ask(stream, LISTENER)[0])
    assert said(ask(stream, SECRET, "cert", "none")) == [("Secret", ["cert"], ["none"])]

    assert said(stream.on_snapshot(Snapshot.of((make(LISTENER, "l"), cert(1))))) == [("Secret", ["cert"], [])]


def test_n11_resource_locators_are_ignored() -> None:
    """No client sends them; who does asks for nothing by them."""
    message = discovery_pb2.DeltaDiscoveryRequest(type_url=ENDPOINT)
    message.resource_locators_subscribe.add(name="a")

    assert read_delta_request(message.SerializeToString()) == DeltaRequest(ENDPOINT)


def test_n12_a_resource_of_another_release_is_served_as_it_is() -> None:
    """A cluster that our protos' constraints forbid may be good for the client: it says if it is not."""
    strange = encode(cluster_pb2.Cluster(name="c", connect_timeout=duration_pb2.Duration(seconds=-1)))

    assert said(ask(stream_of(strange), CLUSTER)) == [("Cluster", ["c"], [])]
