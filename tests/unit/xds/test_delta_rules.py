"""Incremental, rule by rule; the numbers are those of docs/xds-rules.md."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from protos.envoy.service.discovery.v3 import discovery_pb2
from xds.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, Resource, ResourceName, TypeUrl, Version
from xds.snapshot import Snapshot
from xds.stream import DeltaStream
from xds.wire import NO_NONCE, DeltaRequest, Rejection, Response, delta_response_body

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


def test_a_version_is_a_hash_of_content(make: Make) -> None:
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
        discovery_pb2.DeltaDiscoveryResponse.FromString(delta_response_body(each, ""))
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
