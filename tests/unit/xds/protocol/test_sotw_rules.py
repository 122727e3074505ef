"""Tests of state-of-the-world xDS, rule by rule; the numbers are those of docs/understand/xds-rules.md."""

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
    """Return the short types and resources of responses."""
    return [(r.type_url.rsplit(".", 1)[1], [resource.name for resource in r.resources]) for r in responses]


def stream_of(*resources: Resource) -> AdsStream:
    """Create a stream that has a snapshot of these resources."""
    stream = AdsStream()
    assert stream.on_snapshot(Snapshot.of(resources)) == []
    return stream


def test_w1_first_request_for_clusters_is_answered_even_if_empty() -> None:
    """Envoy waits for this answer during its start.

    The answer for listeners waits for the ACK of the clusters.
    """
    stream = stream_of()

    assert said(ask(stream, CLUSTER)) == [("Cluster", [])]
    assert said(ask(stream, LISTENER)) == []  # the cluster answer is not accepted yet (O5)


def test_s12_requests_before_the_first_snapshot_are_answered_by_it(make: Make) -> None:
    """The server remembers the requests, because an empty answer would be an outage."""
    stream = AdsStream()

    assert ask(stream, CLUSTER) == []
    assert ask(stream, ENDPOINT, "a") == []
    assert said(stream.on_snapshot(Snapshot.of((make(CLUSTER, "a"), make(ENDPOINT, "a"))))) == [
        ("Cluster", ["a"]),
        ("ClusterLoadAssignment", ["a"]),
    ]


def test_w2_equal_snapshot_sends_no_response(make: Make) -> None:
    """A snapshot that is built again with equal content has equal versions."""
    stream = stream_of(make(CLUSTER, "a"))
    ask(stream, CLUSTER)

    assert stream.on_snapshot(Snapshot.of((make(CLUSTER, "a"),))) == []


def test_w3_nonces_never_repeat_on_a_state_of_the_world_stream(make: Make) -> None:
    """The responses to a request and a thousand pushes have different nonces, none of them empty."""
    stream = stream_of(make(ENDPOINT, "a"))
    responses = ask(stream, ENDPOINT, "a")
    for content in range(1000):
        responses += stream.on_snapshot(Snapshot.of((make(ENDPOINT, "a", content + 1),)))

    assert len(responses) == 1001
    assert len({response.nonce for response in responses} - {""}) == 1001


def test_w4_request_with_a_stale_nonce_is_ignored_and_the_ack_carries_the_names(make: Make) -> None:
    """The second name takes effect with the ACK, not with the ignored request."""
    stream = stream_of(make(ENDPOINT, "workload"), make(ENDPOINT, "roots"))
    first = ask(stream, ENDPOINT, "workload")

    assert ask(stream, ENDPOINT, "roots", "workload", nonce="") == []
    assert said(ack(stream, first[0], "roots", "workload")) == [("ClusterLoadAssignment", ["roots"])]


def test_w4_w6_late_rejection_is_recorded(make: Make) -> None:
    """The NACK of an overtaken response gets no answer, but is recorded.

    The resource is tried again later.
    """
    stream = stream_of(make(ENDPOINT, "a"), make(ENDPOINT, "b"))
    first = ask(stream, ENDPOINT, "a", "b")[0]
    second = stream.on_snapshot(Snapshot.of((make(ENDPOINT, "a"), make(ENDPOINT, "b", 1))))[0]

    assert stream.awaiting(ENDPOINT, first.nonce) is first
    assert nack(stream, first, "a", "b") == []
    assert stream.channels[0].rejection == Rejection(13, "no")
    assert said(ack(stream, second, "a", "b")) == [("ClusterLoadAssignment", ["a"])]


def test_w5_repeated_ack_gets_no_response(make: Make) -> None:
    """An ACK with unchanged names needs no answer."""
    stream = stream_of(make(ENDPOINT, "a"))
    response = ask(stream, ENDPOINT, "a")[0]

    assert ack(stream, response, "a") == []
    assert ack(stream, response, "a") == []
    assert stream.channels[0].acked_version == response.version


def test_w6_nack_holds_the_version_back_and_its_new_names_are_answered(make: Make) -> None:
    """The rejected resource is sent again only after a change. A name added in the NACK is answered."""
    stream = stream_of(make(ENDPOINT, "a"), make(ENDPOINT, "b"))
    response = ask(stream, ENDPOINT, "a")[0]

    assert said(nack(stream, response, "a", "b")) == [("ClusterLoadAssignment", ["b"])]
    assert stream.channels[0].rejection == Rejection(13, "no")
    assert stream.on_snapshot(Snapshot.of((make(ENDPOINT, "a"), make(ENDPOINT, "b")))) == []
    assert said(stream.on_snapshot(Snapshot.of((make(ENDPOINT, "a", 1), make(ENDPOINT, "b"))))) == [
        ("ClusterLoadAssignment", ["a"])
    ]


def test_w8_name_requested_again_is_answered_again(make: Make) -> None:
    """The client dropped the resource, so it is sent again although its content is unchanged."""
    stream = stream_of(make(ENDPOINT, "a"), make(ENDPOINT, "b"))
    first = ask(stream, ENDPOINT, "a")[0]
    second = ack(stream, first, "a", "b")[0]

    assert said([second]) == [("ClusterLoadAssignment", ["b"])]
    assert ack(stream, second, "a") == []
    assert said(ack(stream, second, "a", "b")) == [("ClusterLoadAssignment", ["b"])]


def test_w4_w8_name_dropped_and_requested_again_during_a_push_is_answered_again(
    make: Make,
) -> None:
    """A push overtakes both the request that drops the name and the one that adds it.

    The client no longer holds the resource, so it is sent again after the ACK.
    """
    a, b, c = (make(ENDPOINT, item) for item in "abc")
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


def test_w9_cluster_response_lists_all_clusters(make: Make) -> None:
    """A cluster that is missing from the response would be removed, so unchanged ones are listed too."""
    stream = stream_of(make(CLUSTER, "a"), make(CLUSTER, "b"))
    ack(stream, ask(stream, CLUSTER)[0])

    assert said(stream.on_snapshot(Snapshot.of((make(CLUSTER, "a"), make(CLUSTER, "b", 1))))) == [
        ("Cluster", ["a", "b"])
    ]


def test_w10_endpoint_response_lists_only_changed_endpoints(make: Make) -> None:
    """One of a hundred assignments has changed, and the response contains only this one."""
    names = [f"e{i:03}" for i in range(100)]
    stream = stream_of(*(make(ENDPOINT, name) for name in names))
    ask(stream, ENDPOINT, *names)

    changed = [make(ENDPOINT, name, int(name == "e007")) for name in names]
    assert said(stream.on_snapshot(Snapshot.of(changed))) == [("ClusterLoadAssignment", ["e007"])]


def test_w11_empty_list_after_names_ends_the_subscription(make: Make) -> None:
    """A later change of the route is not sent."""
    stream = stream_of(make(ROUTE, "a"))
    response = ask(stream, ROUTE, "a")[0]

    assert ack(stream, response) == []
    assert stream.on_snapshot(Snapshot.of((make(ROUTE, "a", 1),))) == []


def test_w12_wildcard_sequence_of_the_protocol_page_is_followed(make: Make) -> None:
    """The list [] means all clusters, ["*", "A"] also all, ["A"] only A, and a later [] none."""
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


def test_w13_first_request_without_names_subscribes_to_nothing_for_other_types(make: Make) -> None:
    """An Envoy that reconnects without clusters must not get the endpoints of the whole mesh."""
    stream = stream_of(*(make(ENDPOINT, name) for name in "abc"))

    assert ask(stream, ENDPOINT) == []


def test_w14_missing_name_is_remembered_and_sent_when_it_appears(make: Make) -> None:
    """The request itself gets no response, because state of the world cannot report a missing resource."""
    stream = stream_of()

    assert ask(stream, ENDPOINT, "x") == []
    assert said(stream.on_snapshot(Snapshot.of((make(ENDPOINT, "x"),)))) == [("ClusterLoadAssignment", ["x"])]


def test_w17_reconnect_is_answered_in_full(make: Make) -> None:
    """Requested names are answered whatever version the client reports."""
    stream = stream_of(make(ENDPOINT, "a"), make(ENDPOINT, "b"))

    assert said(ask(stream, ENDPOINT, "a", "b", version="whatever")) == [
        ("ClusterLoadAssignment", ["a", "b"])
    ]


def test_s5_rejection_of_one_type_does_not_affect_another(make: Make) -> None:
    """Types on a stream are independent: clusters are rejected, and endpoints are not."""
    stream = stream_of(make(CLUSTER, "a"), make(ENDPOINT, "a"))
    cluster = ask(stream, CLUSTER)[0]
    endpoint = ask(stream, ENDPOINT, "a")[0]
    nack(stream, cluster)
    ack(stream, endpoint, "a")

    assert [(c.type_url, c.rejection is None) for c in stream.channels] == [
        (CLUSTER, False),
        (ENDPOINT, True),
    ]


def test_o1_o5_push_sends_clusters_and_endpoints_before_listeners_and_routes(make: Make) -> None:
    """Listeners and routes wait for the ACK of the clusters, which are then warm."""
    types = (CLUSTER, ENDPOINT, LISTENER, ROUTE)
    stream = stream_of(*(make(type_url, "a") for type_url in types))
    for type_url in types:
        for response in ask(stream, type_url, *([] if type_url in (CLUSTER, LISTENER) else ["a"])):
            ack(stream, response, *([] if type_url in (CLUSTER, LISTENER) else ["a"]))

    pushed = stream.on_snapshot(Snapshot.of(make(type_url, "a", 1) for type_url in types))

    assert said(pushed) == [("Cluster", ["a"]), ("ClusterLoadAssignment", ["a"])]
    assert stream.is_waiting
    assert said(ack(stream, pushed[0])) == [("Listener", ["a"]), ("RouteConfiguration", ["a"])]


def test_o5_client_that_never_answers_is_served_at_the_deadline(make: Make) -> None:
    """Listeners wait for the ACK of the clusters only for a limited time."""
    stream = stream_of(make(CLUSTER, "a"), make(LISTENER, "a"))
    ask(stream, CLUSTER)

    assert ask(stream, LISTENER) == []
    assert stream.is_waiting
    assert said(stream.on_deadline()) == [("Listener", ["a"])]
    assert not stream.is_waiting


def test_o2_old_cluster_is_removed_only_after_the_routes_have_switched(make: Make) -> None:
    """Make before break: first both clusters, then the route, then the new cluster alone."""
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


def test_o2_old_cluster_remains_while_the_new_route_is_rejected(make: Make) -> None:
    """The old cluster remains listed until the client has accepted another route."""
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


def test_o3_changed_cluster_is_followed_by_its_endpoints(make: Make) -> None:
    """Its unchanged endpoints are sent again after the cluster; those of unchanged clusters are not."""
    endpoints = (make(ENDPOINT, "a"), make(ENDPOINT, "b"))
    stream = stream_of(make(CLUSTER, "a"), make(CLUSTER, "b"), *endpoints)
    ack(stream, ask(stream, CLUSTER)[0])
    ack(stream, ask(stream, ENDPOINT, "a", "b")[0], "a", "b")

    assert said(stream.on_snapshot(Snapshot.of((make(CLUSTER, "a", 1), make(CLUSTER, "b"), *endpoints)))) == [
        ("Cluster", ["a", "b"]),
        ("ClusterLoadAssignment", ["a"]),
    ]


def test_o8_removal_cancelled_before_it_is_sent_is_never_sent(make: Make) -> None:
    """A cluster that returns while the route is switching remains.

    The newest snapshot replaces pending steps.
    """
    both = (make(CLUSTER, "a"), make(ROUTE, "r"))
    stream = stream_of(*both)
    ack(stream, ask(stream, CLUSTER)[0])
    ack(stream, ask(stream, ROUTE, "r")[0], "r")

    switched = stream.on_snapshot(Snapshot.of((make(ROUTE, "r", 1),)))
    assert said(switched) == [("RouteConfiguration", ["r"])]
    again = stream.on_snapshot(Snapshot.of(both))
    assert said(again) == [("RouteConfiguration", ["r"])]
    assert ack(stream, again[0], "r") == []


def test_w7_version_in_a_request_is_ignored(make: Make) -> None:
    """An ACK may have a strange version and a NACK the rejected one; only the nonce and the error count."""
    stream = stream_of(make(ENDPOINT, "a"))
    response = ask(stream, ENDPOINT, "a")[0]
    rejecting = Request(ENDPOINT, (ResourceName("a"),), response.version, response.nonce, Rejection(13, "no"))

    assert stream.on_request(rejecting) == []
    assert stream.channels[0].rejection == Rejection(13, "no")
    good = stream.on_snapshot(Snapshot.of((make(ENDPOINT, "a", 1),)))[0]
    assert ask(stream, ENDPOINT, "a", nonce=good.nonce, version="strange") == []
    assert [(c.rejection, c.acked_version) for c in stream.channels] == [(None, good.version)]


def test_w16_repeated_request_gets_no_response(make: Make) -> None:
    """The endpoints that Envoy requests again were already sent after their cluster (O3)."""
    endpoints = make(ENDPOINT, "a")
    stream = stream_of(make(CLUSTER, "a"), endpoints)
    ack(stream, ask(stream, CLUSTER)[0])
    first = ask(stream, ENDPOINT, "a")[0]
    assert ack(stream, first, "a") == []

    stream.on_snapshot(Snapshot.of((make(CLUSTER, "a", 1), endpoints)))
    assert ack(stream, first, "a") == []


def test_s7_unknown_type_gets_no_response_and_other_types_are_served() -> None:
    """A client of another release may request unknown types, and its stream must not end for that."""
    stream = stream_of()

    assert ask(stream, TypeUrl("type.googleapis.com/foo.Bar"), "x") == []
    assert ask(stream, TypeUrl("type.googleapis.com/envoy.api.v2.Cluster")) == []
    assert said(ask(stream, CLUSTER)) == [("Cluster", [])]


def test_s8_changes_are_sent_to_a_client_that_never_answers(make: Make) -> None:
    """An ACK may never arrive, and responses of the same step do not wait for it."""
    stream = stream_of(make(CLUSTER, "a"), make(ENDPOINT, "a"))
    ask(stream, CLUSTER)
    ask(stream, ENDPOINT, "a")

    for content in (1, 2):
        pushed = stream.on_snapshot(Snapshot.of((make(CLUSTER, "a", content), make(ENDPOINT, "a", content))))
        assert said(pushed) == [("Cluster", ["a"]), ("ClusterLoadAssignment", ["a"])]


def test_s8_every_body_has_the_type_of_its_response(make: Make) -> None:
    """A client rejects a response that contains another type."""
    types = (CLUSTER, ENDPOINT, LISTENER, ROUTE)
    stream = stream_of(*(make(type_url, "a") for type_url in types))
    responses = [r for t in (CLUSTER, ENDPOINT) for r in ask(stream, t, "a")]
    responses += ack(stream, responses[0], "a")
    responses += [r for t in (LISTENER, ROUTE) for r in ask(stream, t, "a")]

    assert [r.type_url for r in responses] == list(types)
    for response in responses:
        assert [Any.FromString(resource.body).type_url for resource in response.resources] == [
            response.type_url
        ]


@pytest.mark.parametrize("code", [0, 3, 13, 14])
def test_n1_request_with_an_error_of_any_code_is_a_rejection(make: Make, code: int) -> None:
    """Clients use different codes, so only the presence of an error counts."""
    stream = stream_of(make(ENDPOINT, "a"))
    response = ask(stream, ENDPOINT, "a")[0]
    message = discovery_pb2.DiscoveryRequest(
        type_url=ENDPOINT, resource_names=["a"], response_nonce=response.nonce, error_detail={"code": code}
    )

    assert stream.on_request(read_request(message.SerializeToString())) == []
    assert stream.channels[0].rejection == Rejection(code, "")


def test_n5_n6_state_of_the_world_has_no_heartbeats_and_no_wrapped_bodies(make: Make) -> None:
    """A heartbeat without the other listeners would delete them. A body is never wrapped in a `Resource`."""
    mortal = replace(make(LISTENER, "l"), ttl_seconds=1.5)
    response = ask(stream_of(mortal), LISTENER)[0]
    sent = discovery_pb2.DiscoveryResponse.FromString(b"".join(response_body(response, "")))

    assert not hasattr(AdsStream(), "on_heartbeat")
    assert [body.type_url for body in sent.resources] == [LISTENER]


def test_d12_neighbours_of_a_bad_resource_are_sent_again_after_its_change(make: Make) -> None:
    """The client does not report which of the other endpoints of a rejected response it has applied."""
    stream = stream_of(make(ENDPOINT, "bad"), make(ENDPOINT, "good"))
    nack(stream, ask(stream, ENDPOINT, "bad", "good")[0], "bad", "good")

    mended = stream.on_snapshot(Snapshot.of((make(ENDPOINT, "bad", 1), make(ENDPOINT, "good"))))
    assert said(mended) == [("ClusterLoadAssignment", ["bad"])]
    again = ack(stream, mended[0], "bad", "good")
    assert said(again) == [("ClusterLoadAssignment", ["good"])]
    assert ack(stream, again[0], "bad", "good") == []
    assert stream.channels[0].rejection is None
