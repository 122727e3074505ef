"""State of the world, rule by rule; the numbers are those of docs/xds-rules.md."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from google.protobuf.any_pb2 import Any

from protos.envoy.service.discovery.v3 import discovery_pb2
from xds.protocol.resources.resource import (
    CLUSTER,
    ENDPOINT,
    LISTENER,
    ROUTE,
    Resource,
    ResourceName,
    TypeUrl,
    Version,
)
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.sotw import AdsStream
from xds.protocol.wire import Nonce, Rejection, Request, Response, read_request, response_body

Make = Callable[..., Resource]


def ask(
    stream: AdsStream, type_url: TypeUrl, *names: str, nonce: str = "", version: str = ""
) -> list[Response]:
    """Send a request."""
    return stream.on_request(
        Request(type_url, tuple(map(ResourceName, names)), Version(version), Nonce(nonce))
    )


def ack(stream: AdsStream, response: Response, *names: str) -> list[Response]:
    """Accept a response."""
    return ask(stream, response.type_url, *names, nonce=response.nonce, version=response.version)


def nack(stream: AdsStream, response: Response, *names: str) -> list[Response]:
    """Reject a response."""
    return stream.on_request(
        Request(
            response.type_url,
            tuple(map(ResourceName, names)),
            nonce=response.nonce,
            rejection=Rejection(13, "no"),
        )
    )


def said(responses: list[Response]) -> list[tuple[str, list[str]]]:
    """Name the types and resources of responses, short."""
    return [(r.type_url.rsplit(".", 1)[1], [resource.name for resource in r.resources]) for r in responses]


def stream_of(*resources: Resource) -> AdsStream:
    """Make a stream whose snapshot is there."""
    stream = AdsStream()
    assert stream.on_snapshot(Snapshot.of(resources)) == []
    return stream


def test_w1_first_request_is_answered_even_if_empty_for_listeners_and_clusters() -> None:
    """An Envoy waits for the first LDS and CDS answer to finish its start."""
    stream = stream_of()

    assert said(ask(stream, CLUSTER)) == [("Cluster", [])]
    assert said(ask(stream, LISTENER)) == []  # the cluster answer is not accepted yet (O5)


def test_s12_nothing_is_answered_before_there_is_a_snapshot(make: Make) -> None:
    """Requests are remembered, and answered when the first snapshot comes."""
    stream = AdsStream()

    assert ask(stream, CLUSTER) == []
    assert ask(stream, ENDPOINT, "a") == []
    assert said(stream.on_snapshot(Snapshot.of((make(CLUSTER, "a"), make(ENDPOINT, "a"))))) == [
        ("Cluster", ["a"]),
        ("ClusterLoadAssignment", ["a"]),
    ]


def test_w2_an_equal_snapshot_is_silence(make: Make) -> None:
    """Equal content made anew sends nothing."""
    stream = stream_of(make(CLUSTER, "a"))
    ask(stream, CLUSTER)

    assert stream.on_snapshot(Snapshot.of((make(CLUSTER, "a"),))) == []


def test_w3_nonces_never_repeat_on_a_stream(make: Make) -> None:
    """A thousand pushes have a thousand nonces, none empty."""
    stream = stream_of(make(ENDPOINT, "a"))
    responses = ask(stream, ENDPOINT, "a")
    for content in range(1000):
        responses += stream.on_snapshot(Snapshot.of((make(ENDPOINT, "a", content + 1),)))

    assert len(responses) == 1001
    assert len({response.nonce for response in responses} - {""}) == 1001


def test_w4_a_stale_nonce_changes_nothing_and_the_ack_brings_the_names(make: Make) -> None:
    """The second names are taken from the ACK, not from the overtaken request."""
    stream = stream_of(make(ENDPOINT, "workload"), make(ENDPOINT, "roots"))
    first = ask(stream, ENDPOINT, "workload")

    assert ask(stream, ENDPOINT, "roots", "workload", nonce="") == []
    assert said(ack(stream, first[0], "roots", "workload")) == [("ClusterLoadAssignment", ["roots"])]


def test_w4_w6_a_rejection_that_comes_late_is_not_lost(make: Make) -> None:
    """A newer response was under way: nothing is sent for it, but it is known, and stands."""
    stream = stream_of(make(ENDPOINT, "a"), make(ENDPOINT, "b"))
    first = ask(stream, ENDPOINT, "a", "b")[0]
    second = stream.on_snapshot(Snapshot.of((make(ENDPOINT, "a"), make(ENDPOINT, "b", 1))))[0]

    assert stream.awaiting(ENDPOINT, first.nonce) is first
    assert nack(stream, first, "a", "b") == []
    assert stream.channels[0].rejection == Rejection(13, "no")
    assert said(ack(stream, second, "a", "b")) == [("ClusterLoadAssignment", ["a"])]


def test_w5_an_ack_is_silence_twice(make: Make) -> None:
    """Accepting says nothing new."""
    stream = stream_of(make(ENDPOINT, "a"))
    response = ask(stream, ENDPOINT, "a")[0]

    assert ack(stream, response, "a") == []
    assert ack(stream, response, "a") == []
    assert stream.channels[0].acked_version == response.version


def test_w6_a_nack_parks_and_still_honours_names(make: Make) -> None:
    """What was rejected is not sent again until it changes; a name added with the NACK is."""
    stream = stream_of(make(ENDPOINT, "a"), make(ENDPOINT, "b"))
    response = ask(stream, ENDPOINT, "a")[0]

    assert said(nack(stream, response, "a", "b")) == [("ClusterLoadAssignment", ["b"])]
    assert stream.channels[0].rejection == Rejection(13, "no")
    assert stream.on_snapshot(Snapshot.of((make(ENDPOINT, "a"), make(ENDPOINT, "b")))) == []
    assert said(stream.on_snapshot(Snapshot.of((make(ENDPOINT, "a", 1), make(ENDPOINT, "b"))))) == [
        ("ClusterLoadAssignment", ["a"])
    ]


def test_w8_a_name_asked_for_again_is_answered_again(make: Make) -> None:
    """A client that dropped a resource gets it anew, unchanged as it is."""
    stream = stream_of(make(ENDPOINT, "a"), make(ENDPOINT, "b"))
    first = ask(stream, ENDPOINT, "a")[0]
    second = ack(stream, first, "a", "b")[0]

    assert said([second]) == [("ClusterLoadAssignment", ["b"])]
    assert ack(stream, second, "a") == []
    assert said(ack(stream, second, "a", "b")) == [("ClusterLoadAssignment", ["b"])]


def test_w4_w8_a_name_dropped_and_asked_for_again_while_a_push_is_on_its_way_is_answered_again(
    make: Make,
) -> None:
    """Both requests are overtaken; that the client let go of what it had stands in the first of them."""
    a, b, c = (make(ENDPOINT, each) for each in "abc")
    stream = stream_of(a, b, c)
    first = ask(stream, ENDPOINT, "a", "b", "c")[0]
    assert ack(stream, first, "a", "b", "c") == []
    (second,) = stream.on_snapshot(Snapshot.of((make(ENDPOINT, "a", 1), b, c)))
    for names in ("a", "ab", "abc"):
        assert ack(stream, first, *names) == []

    assert stream.acknowledged(_answer(second, "abc")) is None
    assert said(ack(stream, second, "a", "b", "c")) == [("ClusterLoadAssignment", ["b", "c"])]
    (third,) = stream.on_snapshot(Snapshot.of((a, b, c)))
    assert said([third]) == [("ClusterLoadAssignment", ["a"])]
    assert stream.acknowledged(_answer(third, "abc")) is third, "once is enough"


def _answer(response: Response, names: str) -> Request:
    return Request(response.type_url, tuple(map(ResourceName, names)), response.version, response.nonce)


def test_w9_a_cluster_answer_lists_everything(make: Make) -> None:
    """One changes, all are listed: what is missing would be gone."""
    stream = stream_of(make(CLUSTER, "a"), make(CLUSTER, "b"))
    ack(stream, ask(stream, CLUSTER)[0])

    assert said(stream.on_snapshot(Snapshot.of((make(CLUSTER, "a"), make(CLUSTER, "b", 1))))) == [
        ("Cluster", ["a", "b"])
    ]


def test_w10_an_endpoint_answer_lists_what_changed(make: Make) -> None:
    """Of a hundred, one."""
    names = [f"e{i:03}" for i in range(100)]
    stream = stream_of(*(make(ENDPOINT, name) for name in names))
    ask(stream, ENDPOINT, *names)

    changed = [make(ENDPOINT, name, int(name == "e007")) for name in names]
    assert said(stream.on_snapshot(Snapshot.of(changed))) == [("ClusterLoadAssignment", ["e007"])]


def test_w11_names_that_end_are_not_heard_of_again(make: Make) -> None:
    """No names after names is no subscription."""
    stream = stream_of(make(ROUTE, "a"))
    response = ask(stream, ROUTE, "a")[0]

    assert ack(stream, response) == []
    assert stream.on_snapshot(Snapshot.of((make(ROUTE, "a", 1),))) == []


def test_w12_the_wildcard_sequence_of_the_protocol_page(make: Make) -> None:
    """[] is all, ["*", "A"] still all, ["A"] only A, [] nothing."""
    stream = stream_of(make(CLUSTER, "A"), make(CLUSTER, "B"))
    response = ask(stream, CLUSTER)[0]
    assert said([response]) == [("Cluster", ["A", "B"])]

    response = ack(stream, response, "*", "A")[-1]
    assert said([response]) == [("Cluster", ["A", "B"])]
    assert ack(stream, response, "A") == []
    response = stream.on_snapshot(Snapshot.of((make(CLUSTER, "A", 1), make(CLUSTER, "B", 1))))[0]
    assert said([response]) == [("Cluster", ["A"])]
    assert ack(stream, response) == []
    assert stream.on_snapshot(Snapshot.of((make(CLUSTER, "A", 2), make(CLUSTER, "B", 2)))) == []


def test_w13_no_names_mean_nothing_for_other_types(make: Make) -> None:
    """A reconnecting Envoy without clusters asks for no endpoints, not for the whole mesh's."""
    stream = stream_of(*(make(ENDPOINT, name) for name in "abc"))

    assert ask(stream, ENDPOINT) == []


def test_w14_a_missing_name_is_remembered(make: Make) -> None:
    """No answer now, and one when it appears."""
    stream = stream_of()

    assert ask(stream, ENDPOINT, "x") == []
    assert said(stream.on_snapshot(Snapshot.of((make(ENDPOINT, "x"),)))) == [("ClusterLoadAssignment", ["x"])]


def test_w17_a_reconnect_is_answered_in_full(make: Make) -> None:
    """Named types are answered whatever version the client says it has."""
    stream = stream_of(make(ENDPOINT, "a"), make(ENDPOINT, "b"))

    assert said(ask(stream, ENDPOINT, "a", "b", version="whatever")) == [
        ("ClusterLoadAssignment", ["a", "b"])
    ]


def test_s5_types_do_not_leak_into_each_other(make: Make) -> None:
    """A rejected cluster says nothing of endpoints."""
    stream = stream_of(make(CLUSTER, "a"), make(ENDPOINT, "a"))
    cluster = ask(stream, CLUSTER)[0]
    endpoint = ask(stream, ENDPOINT, "a")[0]
    nack(stream, cluster)
    ack(stream, endpoint, "a")

    assert [(c.type_url, c.rejection is None) for c in stream.channels] == [
        (CLUSTER, False),
        (ENDPOINT, True),
    ]


def test_o1_o5_a_push_goes_clusters_endpoints_then_listeners_and_routes(make: Make) -> None:
    """Listeners and routes wait until the clusters are accepted, which is when they are warm."""
    types = (CLUSTER, ENDPOINT, LISTENER, ROUTE)
    stream = stream_of(*(make(type_url, "a") for type_url in types))
    for type_url in types:
        for response in ask(stream, type_url, *([] if type_url in (CLUSTER, LISTENER) else ["a"])):
            ack(stream, response, *([] if type_url in (CLUSTER, LISTENER) else ["a"]))

    pushed = stream.on_snapshot(Snapshot.of(make(type_url, "a", 1) for type_url in types))

    assert said(pushed) == [("Cluster", ["a"]), ("ClusterLoadAssignment", ["a"])]
    assert stream.is_waiting
    assert said(ack(stream, pushed[0])) == [("Listener", ["a"]), ("RouteConfiguration", ["a"])]


def test_o5_a_client_that_never_answers_is_served_at_the_deadline(make: Make) -> None:
    """The gate opens without an ACK when time is up."""
    stream = stream_of(make(CLUSTER, "a"), make(LISTENER, "a"))
    ask(stream, CLUSTER)

    assert ask(stream, LISTENER) == []
    assert stream.is_waiting
    assert said(stream.on_deadline()) == [("Listener", ["a"])]
    assert not stream.is_waiting


def test_o2_an_old_cluster_goes_only_when_the_routes_have_switched(make: Make) -> None:
    """Make before break: both clusters, then the route, then the new cluster alone."""
    stream = stream_of(make(CLUSTER, "old"), make(ENDPOINT, "old"), make(ROUTE, "r"))
    ack(stream, ask(stream, CLUSTER)[0])
    ack(stream, ask(stream, ENDPOINT, "old")[0], "old")
    ack(stream, ask(stream, ROUTE, "r")[0], "r")

    made = stream.on_snapshot(Snapshot.of((make(CLUSTER, "new"), make(ENDPOINT, "new"), make(ROUTE, "r", 1))))
    assert said(made) == [("Cluster", ["new", "old"])]
    switched = ack(stream, made[0])
    assert said(switched) == [("RouteConfiguration", ["r"])]
    broken = ack(stream, switched[0], "r")
    assert said(broken) == [("Cluster", ["new"])]
    assert made[0].version != broken[0].version


def test_o2_an_old_cluster_stays_while_the_new_route_is_refused(make: Make) -> None:
    """It is listed until the client has taken another route."""
    stream = stream_of(make(CLUSTER, "old"), make(ROUTE, "r"))
    ack(stream, ask(stream, CLUSTER)[0])
    ack(stream, ask(stream, ROUTE, "r")[0], "r")
    made = stream.on_snapshot(Snapshot.of((make(CLUSTER, "new"), make(ROUTE, "r", 1))))
    switched = ack(stream, made[0])
    assert nack(stream, switched[0], "r") == []
    assert stream.on_deadline() == []
    mended = stream.on_snapshot(Snapshot.of((make(CLUSTER, "new"), make(ROUTE, "r", 2))))
    assert said(mended) == [("RouteConfiguration", ["r"])]
    assert said(ack(stream, mended[0], "r")) == [("Cluster", ["new"])]


def test_o3_a_changed_cluster_is_followed_by_its_endpoints(make: Make) -> None:
    """Unchanged endpoints are sent again behind the cluster; those of unchanged clusters are not."""
    endpoints = (make(ENDPOINT, "a"), make(ENDPOINT, "b"))
    stream = stream_of(make(CLUSTER, "a"), make(CLUSTER, "b"), *endpoints)
    ack(stream, ask(stream, CLUSTER)[0])
    ack(stream, ask(stream, ENDPOINT, "a", "b")[0], "a", "b")

    assert said(stream.on_snapshot(Snapshot.of((make(CLUSTER, "a", 1), make(CLUSTER, "b"), *endpoints)))) == [
        ("Cluster", ["a", "b"]),
        ("ClusterLoadAssignment", ["a"]),
    ]


def test_o8_a_removal_that_is_taken_back_in_time_is_never_said(make: Make) -> None:
    """A cluster that goes and comes again while the route is switching stays."""
    both = (make(CLUSTER, "a"), make(ROUTE, "r"))
    stream = stream_of(*both)
    ack(stream, ask(stream, CLUSTER)[0])
    ack(stream, ask(stream, ROUTE, "r")[0], "r")

    switched = stream.on_snapshot(Snapshot.of((make(ROUTE, "r", 1),)))
    assert said(switched) == [("RouteConfiguration", ["r"])]
    again = stream.on_snapshot(Snapshot.of(both))
    assert said(again) == [("RouteConfiguration", ["r"])]
    assert ack(stream, again[0], "r") == []


def test_w7_the_version_in_a_request_decides_nothing(make: Make) -> None:
    """Neither an ACK with a strange version nor a NACK with the rejected one is taken for something else."""
    stream = stream_of(make(ENDPOINT, "a"))
    response = ask(stream, ENDPOINT, "a")[0]
    rejecting = Request(ENDPOINT, (ResourceName("a"),), response.version, response.nonce, Rejection(13, "no"))

    assert stream.on_request(rejecting) == []
    assert stream.channels[0].rejection == Rejection(13, "no")
    good = stream.on_snapshot(Snapshot.of((make(ENDPOINT, "a", 1),)))[0]
    assert ask(stream, ENDPOINT, "a", nonce=good.nonce, version="strange") == []
    assert [(c.rejection, c.acked_version) for c in stream.channels] == [(None, good.version)]


def test_w16_a_repeated_request_is_silence(make: Make) -> None:
    """An Envoy that asks for endpoints again has them already, behind the cluster (O3)."""
    endpoints = make(ENDPOINT, "a")
    stream = stream_of(make(CLUSTER, "a"), endpoints)
    ack(stream, ask(stream, CLUSTER)[0])
    first = ask(stream, ENDPOINT, "a")[0]
    assert ack(stream, first, "a") == []

    stream.on_snapshot(Snapshot.of((make(CLUSTER, "a", 1), endpoints)))
    assert ack(stream, first, "a") == []


def test_s7_a_type_that_nobody_has_is_silence_and_the_others_go_on() -> None:
    """The stream does not end for it: a client of another release may ask for more than we know."""
    stream = stream_of()

    assert ask(stream, TypeUrl("type.googleapis.com/foo.Bar"), "x") == []
    assert ask(stream, TypeUrl("type.googleapis.com/envoy.api.v2.Cluster")) == []
    assert said(ask(stream, CLUSTER)) == [("Cluster", [])]


def test_s8_a_client_that_never_answers_hears_of_changes_all_the_same(make: Make) -> None:
    """An answer may never come, and nothing of the same step waits for it."""
    stream = stream_of(make(CLUSTER, "a"), make(ENDPOINT, "a"))
    ask(stream, CLUSTER)
    ask(stream, ENDPOINT, "a")

    for content in (1, 2):
        pushed = stream.on_snapshot(Snapshot.of((make(CLUSTER, "a", content), make(ENDPOINT, "a", content))))
        assert said(pushed) == [("Cluster", ["a"]), ("ClusterLoadAssignment", ["a"])]


def test_s8_every_body_has_the_type_of_its_response(make: Make) -> None:
    """A client rejects a response with another type in it."""
    types = (CLUSTER, ENDPOINT, LISTENER, ROUTE)
    stream = stream_of(*(make(type_url, "a") for type_url in types))
    responses = [r for t in (CLUSTER, ENDPOINT) for r in ask(stream, t, "a")]
    responses += ack(stream, responses[0], "a")
    responses += [r for t in (LISTENER, ROUTE) for r in ask(stream, t, "a")]

    assert [r.type_url for r in responses] == list(types)
    for response in responses:
        assert [Any.FromString(each.body).type_url for each in response.resources] == [response.type_url]


@pytest.mark.parametrize("code", [0, 3, 13, 14])
def test_n1_any_error_is_a_rejection(make: Make, code: int) -> None:
    """Clients differ in their codes; that there is an error is what counts."""
    stream = stream_of(make(ENDPOINT, "a"))
    response = ask(stream, ENDPOINT, "a")[0]
    message = discovery_pb2.DiscoveryRequest(
        type_url=ENDPOINT, resource_names=["a"], response_nonce=response.nonce, error_detail={"code": code}
    )

    assert stream.on_request(read_request(message.SerializeToString())) == []
    assert stream.channels[0].rejection == Rejection(code, "")


def test_n5_n6_no_time_to_live_and_no_wrapping_in_state_of_the_world(make: Make) -> None:
    """A heartbeat that lists nothing else would delete a listener; a body is never wrapped in a Resource."""
    mortal = replace(make(LISTENER, "l"), ttl_seconds=1.5)
    response = ask(stream_of(mortal), LISTENER)[0]
    sent = discovery_pb2.DiscoveryResponse.FromString(b"".join(response_body(response, "")))

    assert not hasattr(AdsStream(), "on_heartbeat")
    assert [body.type_url for body in sent.resources] == [LISTENER]


def test_d12_what_stood_beside_a_bad_resource_is_sent_again_when_that_changes(make: Make) -> None:
    """Of endpoints a client may have taken none, or some: which, it does not say."""
    stream = stream_of(make(ENDPOINT, "bad"), make(ENDPOINT, "good"))
    nack(stream, ask(stream, ENDPOINT, "bad", "good")[0], "bad", "good")

    mended = stream.on_snapshot(Snapshot.of((make(ENDPOINT, "bad", 1), make(ENDPOINT, "good"))))
    assert said(mended) == [("ClusterLoadAssignment", ["bad"])]
    again = ack(stream, mended[0], "bad", "good")
    assert said(again) == [("ClusterLoadAssignment", ["good"])]
    assert ack(stream, again[0], "bad", "good") == []
    assert stream.channels[0].rejection is None
