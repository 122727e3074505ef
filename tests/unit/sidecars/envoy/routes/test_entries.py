"""Tests of route entries as Envoy routes: shares, headers, retries and limits, as whole messages."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from google.protobuf import any_pb2, json_format

from catalog.policy.values.outbound import OutboundService
from catalog.policy.values.route_actions import (
    Answer,
    AnsweredShare,
    Forward,
    RequestMirror,
    RouteAction,
    ShareChanges,
    WeightedBackend,
)
from catalog.policy.values.route_table import AppliedRoute, RequestTreatment, RouteEntry, RouteSource
from meshwright.mesh.gateway.filters import Cors, NewPath, PathForm, Rewrite
from meshwright.mesh.gateway.rules import Rule, RuleRetry
from meshwright.mesh.kinds import HTTP_ROUTE
from meshwright.mesh.matching import RequestMatch
from meshwright.mesh.names import Port
from meshwright.mesh.policies.resilience import RetryPolicy
from meshwright.mesh.policies.retries import Retries, RetryCondition
from meshwright.mesh.policies.routing import HeaderChanges
from meshwright.mesh.service import Protocol
from meshwright.sidecars.envoy.routes import route
from meshwright.sidecars.envoy.routes.attempts import Attempts
from meshwright.sidecars.envoy.routes.entries import entry_routes
from protos.envoy.config.route.v3 import route_pb2
from tests.meshes import values as a

ONE, TWO = (WeightedBackend(a.service_key(name), "8080", 1) for name in ("one", "two"))
SECOND = timedelta(seconds=1)
Json = dict[str, Any]


def made(action: RouteAction, treatment: RequestTreatment | None = None, **of: Any) -> list[Json]:
    """Return the routes of an entry for all requests, without name and match if that is for all."""
    entry = RouteEntry((RequestMatch(),), action, treatment=treatment)
    result = [json_format.MessageToDict(item) for item in entry_routes(entry, "", Attempts(**of))]
    for item in result:
        assert item["match"].pop("prefix") == "/"
    return [{key: value for key, value in item.items() if value != {}} for item in result]


def to(cluster: str, **more: Any) -> Json:
    """Return the action that sends requests to a cluster, without a limit of time."""
    return {"route": {"cluster": cluster, "timeout": "0s", **more}}


def up_to(millionths: int, item: Json) -> Json:
    """Return a route for requests whose random number is below a fraction."""
    fraction = {"numerator": millionths, "denominator": "MILLION"}
    return {"match": {"runtimeFraction": {"defaultValue": fraction}}, **item}


def answer(status: int) -> Json:
    """Return the answer of the caller's proxy."""
    return {"directResponse": {"status": status}}


def test_answered_shares_get_their_fraction_and_leave_the_others() -> None:
    """One random number is compared with all fractions, so they are sums; weight 0 gets no request."""
    shares = (replace(ONE, weight=20), AnsweredShare(500, 30), replace(TWO, weight=0), AnsweredShare(403, 50))
    assert made(Forward(shares)) == [
        up_to(200_000, to("default/one|8080")),
        up_to(500_000, answer(500)),
        answer(403),
    ]


def test_share_that_is_answered_alone_is_an_answer_to_all() -> None:
    """The last route has no fraction."""
    assert made(Forward((AnsweredShare(500, 1), replace(ONE, weight=0)))) == [answer(500)]
    assert made(Answer(500)) == [answer(500)]


def test_shares_without_changes_are_weighted_clusters() -> None:
    """One route has all of them, also the one of weight 0."""
    clusters = [{"name": "default/one|8080", "weight": 1}, {"name": "default/two|8080", "weight": 0}]
    assert made(Forward((ONE, replace(TWO, weight=0)))) == [
        {"route": {"weightedClusters": {"clusters": clusters}, "timeout": "0s"}}
    ]


def test_share_has_its_own_rewrite_and_mirror_beside_those_of_the_rule() -> None:
    """The path of the rule stays where the share rewrites the host alone."""
    own = ShareChanges(rewrite=Rewrite("own"), mirrors=(RequestMirror(TWO, 1, 4),))
    of_rule = Rewrite("rule", NewPath(PathForm.FULL, "/new"))
    forward = Forward((replace(ONE, own=own), TWO), rewrite=of_rule, mirrors=(RequestMirror(TWO),))

    def mirrored(millionths: int) -> Json:
        return {
            "cluster": "default/two|8080",
            "runtimeFraction": {"defaultValue": {"numerator": millionths, "denominator": "MILLION"}},
            "disableShadowHostSuffixAppend": True,
        }

    path = {"regexRewrite": {"pattern": {"regex": "^.*$"}, "substitution": "/new"}}
    every, some = mirrored(1_000_000), mirrored(250_000)
    both = to("default/one|8080", hostRewriteLiteral="own", requestMirrorPolicies=[every, some], **path)
    rule = to("default/two|8080", hostRewriteLiteral="rule", requestMirrorPolicies=[every], **path)
    assert made(forward) == [up_to(500_000, both), rule]


def _added(*headers: tuple[str, str], action: str = "OVERWRITE_IF_EXISTS_OR_ADD") -> list[Json]:
    return [{"header": {"key": key, "value": value}, "appendAction": action} for key, value in headers]


def test_headers_of_a_share_are_changed_after_those_of_the_rule() -> None:
    """Envoy would do the reverse. The host is rewritten, and a percent sign is no command."""
    rule = HeaderChanges(put=(("x-a", "1%"), ("x-b", "1")), remove=("x-c",))
    own = HeaderChanges(put=(("host", "own"), ("x-c", "2")), remove=("host", "x-a"))
    (item,) = made(Forward((replace(ONE, own=ShareChanges(own)),)), RequestTreatment(rule))
    assert item == {
        **to("default/one|8080", hostRewriteLiteral="own"),
        "requestHeadersToAdd": _added(("x-b", "1"), ("x-c", "2")),
        "requestHeadersToRemove": ["x-a", "x-c"],
    }
    (item,) = made(Forward((ONE,)), RequestTreatment(rule))
    assert item["requestHeadersToAdd"] == _added(("x-a", "1%%"), ("x-b", "1"))


def test_two_changes_of_headers_become_one() -> None:
    """The later change wins, and added values stay beside each other."""
    first = HeaderChanges((("a", "1"), ("b", "1")), (("c", "1"), ("d", "1"), ("e", "1")), ("f",))
    second = HeaderChanges((("a", "2"), ("c", "2")), (("e", "2"), ("f", "2")), ("b", "d"))
    assert first.followed_by(second) == HeaderChanges(
        (("a", "2"), ("c", "2")), (("e", "1"), ("e", "2"), ("f", "2")), ("b", "d", "f")
    )
    assert first.followed_by(HeaderChanges()) == first
    assert HeaderChanges().followed_by(first) == first


def retry_of(forward: Forward, **of: Any) -> Json | None:
    """Return the retry policy of a route, without what all have in common; None for the mesh's."""
    (item,) = made(forward, **of)
    result: Json | None = item["route"].get("retryPolicy")
    for name in ("hostSelectionRetryMaxAttempts", "retryHostPredicate", "retriableHeaders"):
        if result is not None:
            result.pop(name, None)
    return result


UNSEEN = "connect-failure,refused-stream,reset-before-request,retriable-headers"
LIMITED = Forward((ONE,), per_try=SECOND)


@pytest.mark.parametrize(
    ("forward", "of", "expected"),
    [
        (Forward((ONE,)), {"mesh": RetryPolicy()}, None),
        (Forward((ONE,), retries=RuleRetry(0)), {"mesh": RetryPolicy()}, {"numRetries": 0}),
        (Forward((ONE,), retries=RuleRetry(2)), {}, {"numRetries": 2, "retryOn": UNSEEN}),
        (
            Forward((ONE,), retries=RuleRetry(1, (500, 503), SECOND)),
            {},
            {
                "numRetries": 1,
                "retryOn": f"{UNSEEN},retriable-status-codes",
                "retriableStatusCodes": [500, 503],
                "retryBackOff": {"baseInterval": "1s", "maxInterval": "10s"},
            },
        ),
        (LIMITED, {}, {"numRetries": 0, "perTryTimeout": "1s"}),
        (LIMITED, {"mesh": RetryPolicy()}, {"numRetries": 2, "retryOn": UNSEEN, "perTryTimeout": "1s"}),
        (replace(LIMITED, retries=RuleRetry(0)), {}, {"numRetries": 0, "perTryTimeout": "1s"}),
        (
            replace(LIMITED, retries=RuleRetry(1, (504,))),
            {},
            {
                "numRetries": 1,
                "retryOn": f"{UNSEEN},retriable-status-codes,reset",
                "retriableStatusCodes": [504],
                "perTryTimeout": "1s",
            },
        ),
    ],
)
def test_retries_of_a_rule_replace_those_of_the_mesh(
    forward: Forward, of: Json, expected: Json | None
) -> None:
    """A limit of an attempt leaves the retries, and an attempt that ran out is one with status 504."""
    assert retry_of(forward, **of) == expected


def test_retry_of_the_caller_applies_where_the_rule_has_none() -> None:
    """It stays as it is for other routes when one of them limits its attempts."""
    own = Retries((RetryCondition.RESET,), 4)
    called = OutboundService(a.service_key("one"), Port(80), Protocol.HTTP, (), retries=own)
    attempts = Attempts.of_service(called, RetryPolicy())
    limited, plain = attempts.policy(LIMITED), attempts.policy(Forward((ONE,)))
    assert limited is not None
    assert plain is not None
    assert (limited.retry_on, limited.num_retries.value) == (plain.retry_on, plain.num_retries.value)
    assert (limited.HasField("per_try_timeout"), plain.HasField("per_try_timeout")) == (True, False)


def test_routes_of_one_rule_are_counted_together() -> None:
    """The names in statistics are those of route and rule, also of the only rule.

    A single entry of another kind has the service's statistics.
    """
    rule = Rule((RequestMatch(),), name="beta")
    key = a.policy_key("routes")
    entries = [
        RouteEntry(
            (), Forward((ONE, AnsweredShare(500, 1))), (RouteSource(AppliedRoute(HTTP_ROUTE, key, 0, rule)),)
        ),
        RouteEntry((), Forward((ONE,)), (RouteSource(AppliedRoute(HTTP_ROUTE, key, 1, Rule())),)),
    ]
    assert _counted(*entries) == [
        "80|default/routes/beta",
        "80|default/routes/beta",
        "80|default/routes/rule-2",
    ]
    assert _counted(entries[0]) == ["80|default/routes/beta"] * 2
    assert _counted(RouteEntry((), Forward((ONE,)))) == [""]


def _counted(*entries: RouteEntry) -> list[str]:
    called = OutboundService(a.service_key("one"), Port(80), Protocol.HTTP, entries)
    message = any_pb2.Any.FromString(route.outbound(called).body)
    configuration = route_pb2.RouteConfiguration.FromString(message.value)
    return [item.stat_prefix for item in configuration.virtual_hosts[0].routes]


def test_preflight_is_answered_for_origins_and_patterns() -> None:
    """An origin is compared as a whole, with its default port, and `*` in it is any labels of a host."""
    allowed = Cors(("https://a.example:8443", "https://*.b.example"), ("GET", "PUT"), credentials=True)
    refused, item = made(Forward((ONE,)), RequestTreatment(cors=allowed))
    policy = item["typedPerFilterConfig"]["envoy.filters.http.cors"]
    origins = [
        {"safeRegex": {"regex": r"(?i:https://a\.example:8443)"}},
        {"safeRegex": {"regex": r"(?i:https://[^:/]+\.b\.example(?::443)?)"}},
    ]
    assert policy["allowOriginStringMatch"] == origins
    assert (policy["allowMethods"], policy["maxAge"], policy["allowCredentials"]) == ("GET, PUT", "5", True)
    assert refused["directResponse"] == {"status": 403}
    assert refused["match"]["headers"][-2:] == [
        {"name": "origin", "stringMatch": matcher, "invertMatch": True} for matcher in origins
    ]


def test_preflight_of_any_origin_is_answered() -> None:
    """No request is refused where all origins are allowed."""
    (item,) = made(Forward((ONE,)), RequestTreatment(cors=Cors(("*",), ("GET",))))
    assert "typedPerFilterConfig" in item


def test_preflight_of_a_method_is_answered_for_the_entry_with_this_method() -> None:
    """A browser asks with OPTIONS for a request with another method."""
    entry = RouteEntry(
        (RequestMatch(methods=("GET",)),),
        Forward((ONE,)),
        treatment=RequestTreatment(cors=Cors(("*",), ("GET",))),
    )
    asked, item = entry_routes(entry, "r", Attempts())
    wanted = [json_format.MessageToDict(header.string_match) for header in asked.match.headers]
    assert [header.name for header in asked.match.headers] == [
        ":method",
        "access-control-request-method",
        "origin",
    ]
    assert wanted == [{"exact": "OPTIONS"}, {"safeRegex": {"regex": "GET"}}, {"safeRegex": {"regex": ".+"}}]
    assert [header.string_match.exact for header in item.match.headers] == ["GET"]
