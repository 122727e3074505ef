"""Tests of problems of rejected resources: each names the one object at fault."""

from dataclasses import replace

import pytest

from catalog.policy.provenance import InputObject
from catalog.policy.units import Unit
from meshwright.delivery.quarantine.findings import RejectedResource
from meshwright.delivery.quarantine.objects_at_fault import listener_clauses
from meshwright.delivery.quarantine.problems import PROBLEMS, Rejections, problem
from meshwright.delivery.snapshots.group_snapshots import GroupSnapshots
from meshwright.delivery.snapshots.published_snapshots import PublishedSnapshots
from meshwright.delivery.snapshots.translation import translation
from meshwright.mesh.kinds import (
    HTTP_ROUTE_GROUP,
    RETRY,
    SERVICE,
    TRAFFIC_SPLIT,
    TRAFFIC_TARGET,
    UPSTREAM_POLICY,
    UPSTREAM_TRAFFIC_SETTING,
    WORKLOAD,
    Kind,
)
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import FromSource, InFile
from meshwright.mesh.policies.limits import (
    ConnectionLimits,
    RateLimit,
    RateLimits,
    RateUnit,
    UpstreamTrafficSetting,
)
from meshwright.mesh.policies.retries import Retries, Retry, RetryCondition
from meshwright.mesh.policies.upstreams import (
    BalancingAlgorithm,
    HashKey,
    HealthCheck,
    KeyKind,
    LoadBalancing,
    OutlierDetectionOverride,
    UpstreamPolicy,
)
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.mesh.workload import Edge
from meshwright.sidecars.contract.reasons import Reason
from meshwright.sidecars.envoy.driver import EnvoyDriver
from meshwright.specs.kinds import kind_meant
from tests.meshes import gateway
from tests.meshes import values as a
from xds.cache import NodeKey
from xds.protocol.resources.resource import LISTENER, ROUTE, ResourceName, Version

NODE = NodeKey("buyer-uuid.buyer.default")
VIEW = a.view()
ROUTES = ResourceName("rds-outbound.default/shop|80")


def _rejected(name: str = ROUTES, said: str = "bad\n regex", *, replaced: bool = True) -> RejectedResource:
    return RejectedResource(NODE, ROUTE, ResourceName(name), Version("2"), said, replaced)


def _made_from(kind: Kind, name: str, line: int) -> InputObject:
    return InputObject(ObjectKey(kind, Namespace("default"), name), InFile("mesh.yaml", 1, line))


RETRIED = f"It is retried automatically; to retry now: `meshwright proxy retry {NODE}`."


def _excluded(part: str) -> str:
    """Return the text of a problem of an excluded part of policy."""
    return (
        f"Proxy {NODE} (and perhaps other proxies) rejected route rds-outbound.default/shop|80 "
        f"because of {part}. "
        "That part is excluded, and calls are made without it, until you edit the object or the proxy "
        f"accepts it. {RETRIED}"
    )


def test_only_the_likeliest_object_is_blamed() -> None:
    """A split is likelier than its service. The proxy's message is joined into one line."""
    behind = (_made_from(SERVICE, "shop", 1), _made_from(TRAFFIC_SPLIT, "weights", 9))
    assert problem(VIEW, _rejected(), behind) == Problem(
        code="resource-rejected",
        severity=Severity.ERROR,
        origin=InFile("mesh.yaml", 1, 9),
        key=ObjectKey(TRAFFIC_SPLIT, Namespace("default"), "weights"),
        field="route rds-outbound.default/shop|80",
        value="rejected: bad regex",
        expected=(
            f"Proxy {NODE} (and perhaps other proxies of its group) rejected the resource "
            "and is served its last "
            f"good version, until you edit the object or the proxy accepts the resource. {RETRIED}"
        ),
    )


def test_rejected_listener_is_a_problem_of_its_workload() -> None:
    """Envoy mostly rejects a listener because it cannot bind an address of the workload."""
    behind = (_made_from(HTTP_ROUTE_GROUP, "all", 1), _made_from(WORKLOAD, "shop", 9))
    rejected = RejectedResource(
        NODE, LISTENER, ResourceName("inbound"), Version("2"), "cannot bind", replaced=True
    )
    assert problem(VIEW, rejected, behind).key == behind[1].key
    assert problem(VIEW, _rejected(), behind).key == behind[0].key, "negative control: a route is not"


def test_refused_retries_are_a_problem_of_their_retry_object() -> None:
    """Of several Retry objects with equal settings, the one behind the resource is named."""
    retries = Retries((RetryCondition.SERVER_ERROR,), 5)
    to = (a.service_key("shop"),)
    same = [Retry(a.policy_key(item), a.identity(item), to, retries) for item in ("another", "buyer")]
    other = Retry(a.policy_key("aaa"), a.identity("aaa"), to, Retries((RetryCondition.RESET,)))
    behind = (_made_from(SERVICE, "shop", 1), _made_from(RETRY, "buyer", 9))
    rejected = replace(_rejected(), unit=retries)
    result = problem(a.view(other, *same), rejected, behind)
    assert str(result.key) == "Retry default/buyer"
    assert result.value == "rejected: bad regex"
    assert result.expected == _excluded("Retry default/buyer")
    assert problem(a.view(other), rejected, behind).key is None, "negative control: it is gone"


SLOW = RateLimit(5, RateUnit.SECOND)
CHECK = HealthCheck("/well")
KEY = HashKey(KeyKind.HEADER, "x-user")
EJECTING = OutlierDetectionOverride(failures=3)
SETTING = UpstreamTrafficSetting(
    a.policy_key("s"), "shop.default", ConnectionLimits(connections=1), RateLimits(requests=SLOW)
)
POLICY = UpstreamPolicy(
    a.policy_key("u"),
    a.service_key("shop"),
    EJECTING,
    LoadBalancing(BalancingAlgorithm.CONSISTENT_HASH, KEY),
    CHECK,
)


@pytest.mark.parametrize(
    ("unit", "kind", "name", "part"),
    [
        (RateLimits(requests=SLOW), UPSTREAM_TRAFFIC_SETTING, "s", "rate limits"),
        (ConnectionLimits(connections=1), UPSTREAM_TRAFFIC_SETTING, "s", "connection limits"),
        (EJECTING, UPSTREAM_POLICY, "u", "outlier detection"),
        (CHECK, UPSTREAM_POLICY, "u", "health check"),
        (KEY, UPSTREAM_POLICY, "u", "hash key"),
    ],
)
def test_refused_settings_of_calls_are_a_problem_of_their_object(
    unit: Unit, kind: Kind, name: str, part: str
) -> None:
    """Without that object the problem names none.

    For rate limits and health checks, of which a resource may have a part only, an input is named.
    """
    rejected = replace(_rejected(), unit=unit)
    result = problem(a.view(SETTING, POLICY), rejected, ())
    assert result.key == ObjectKey(kind, Namespace("default"), name)
    assert result.expected == _excluded(f"the {part} of {result.key}")
    assert problem(a.view(), rejected, ()).key is None
    behind = (_made_from(SERVICE, "shop", 1), _made_from(kind, "x", 2))
    knows_less = isinstance(unit, RateLimits | HealthCheck)
    assert problem(a.view(), rejected, behind).key == (behind[1].key if knows_less else None)


def test_long_rejection_is_cut_to_200_characters() -> None:
    """Envoy's message can be much longer, which would make a page unreadable."""
    result = problem(VIEW, _rejected(said="x" * 500), ())
    assert len(result.value) == 200
    assert result.value.endswith("...")


def test_rejection_without_inputs_is_a_problem_of_the_proxies() -> None:
    """A rejection may be about a resource that is no longer computed."""
    result = problem(VIEW, _rejected(replaced=False), ())
    assert (result.origin, result.key) == (FromSource("proxies"), None)
    assert result.expected.endswith(
        "is served its last good version where there is one, until you edit the object or the proxy accepts "
        f"the resource. {RETRIED}"
    )


def _serving(*things: object) -> GroupSnapshots:
    view = a.view(*things)
    serving = GroupSnapshots(view, translation(EnvoyDriver()))
    serving.rendering.certify(
        {workload.identity: a.certificate(workload.identity, "1") for workload in view.workloads.values()},
        b"R",
    )
    for _ in serving.steps(PublishedSnapshots(), serving.touched()):
        pass
    return serving


THINGS = (
    a.service("shop"),
    a.workload("buyer", "10.0.0.1"),
    a.workload("shop", "10.0.0.2"),
    a.target("t", "buyer", "shop", a.http("all")),
    a.route_group("all", a.match("any")),
)


def test_inputs_of_a_rejection_are_looked_up_once_with_their_current_line() -> None:
    """An object that moves in its file is the same input, but has another line."""
    serving = _serving(*THINGS)
    rejections = Rejections()
    (before,) = rejections.problems(serving, [_rejected()])
    assert (str(before.key), before.origin) == ("HTTPRouteGroup default/all", InFile("test", 1, 5))
    moved = a.view(a.service("first"), *THINGS)
    serving.view.apply(serving.view.edits_to(moved.known()))
    serving.rendering.translate = lambda _: ()
    (after,) = rejections.problems(serving, [_rejected()])
    assert after.origin == InFile("test", 1, 6)
    assert rejections.problems(serving, []) == ()
    (unknown,) = rejections.problems(serving, [_rejected()])
    assert unknown.key is None, "negative control: it was forgotten, and nothing is made any more"


def test_problems_beyond_the_limit_are_counted() -> None:
    """An Envoy that rejects everything must not make a page unreadable."""
    problems = Rejections().problems(
        _serving(*THINGS), [_rejected(f"r{number}") for number in range(PROBLEMS + 7)]
    )
    assert len(problems) == PROBLEMS + 1
    assert problems[-1].expected == "7 more resources are rejected; `meshwright proxies` lists the proxies."


def test_rejection_of_a_removed_proxy_has_no_inputs() -> None:
    """A proxy may be removed between two waves."""
    assert [item.key for item in Rejections().problems(_serving(), [_rejected()])] == [None]


MATCH = a.match("one", "/one")


def _unit(said: str, *changed: str) -> str:
    """Return the object and field that are blamed for a refused match after these objects changed."""
    serving = _serving(*THINGS[:-1], a.route_group("all", MATCH))
    keys = frozenset(
        ObjectKey(kind_meant(kind, None), Namespace("default"), name)
        for kind, name in map(str.split, changed)
    )
    rejected = replace(_rejected("rds-inbound.8080", said), unit=MATCH, changed=keys)
    behind = (_made_from(HTTP_ROUTE_GROUP, "all", 5), _made_from(TRAFFIC_TARGET, "t", 4))
    result = problem(serving.view, rejected, behind)
    assert isinstance(result.origin, InFile)
    assert (result.origin.path, result.value) == ("test", f"rejected: {said}")
    return f"{result.key} {result.field}"


def test_refused_match_is_a_problem_of_its_group_or_of_its_edited_user() -> None:
    """An expression quoted in the message is at fault, otherwise the edited object is.

    After a restart no edit is known, so the group is named.
    """
    group = "HTTPRouteGroup default/all spec.matches[0]"
    assert _unit("no") == group
    assert _unit("no", "HTTPRouteGroup all", "TrafficTarget t") == group
    assert _unit(f"bad regex {MATCH.path_regex}", "TrafficTarget t") == group
    assert _unit("no", "TrafficTarget t") == "TrafficTarget default/t route rds-inbound.8080"
    assert _unit("no", "Service shop") == group, "what did not use it is not at fault"


def test_rejected_resource_is_a_problem_of_the_object_that_changed() -> None:
    """An earlier bug blamed an untouched route group although a split had been edited."""
    behind = (_made_from(HTTP_ROUTE_GROUP, "all", 1), _made_from(TRAFFIC_SPLIT, "sp", 9))
    edited = replace(_rejected(), changed=frozenset({behind[1].key}))
    assert problem(VIEW, edited, behind).key == behind[1].key
    assert problem(VIEW, _rejected(), behind).key == behind[0].key, "negative control: by kinds alone"


def test_temporary_rejection_is_a_problem_of_the_proxys_workload() -> None:
    """An address in use is a fault of the machine, whichever objects changed before."""
    serving = _serving(*THINGS)
    behind = (_made_from(SERVICE, "shop", 1),)
    rejected = RejectedResource(
        NODE,
        LISTENER,
        ResourceName("outbound"),
        Version("2"),
        "cannot bind '10.0.0.1:1': Address already in use",
        replaced=False,
        reason=Reason.ADDRESS_IN_USE,
        changed=frozenset({behind[0].key}),
    )
    result = problem(serving.view, rejected, behind)
    assert str(result.key) == "Workload default/buyer"
    assert result.value == "rejected: cannot bind '10.0.0.1:1': Address already in use"
    assert result.expected == (
        f"Proxy {NODE} (and perhaps other proxies of its group) cannot apply the resource at the moment "
        f"(address-in-use). {RETRIED} The objects behind it may be correct: Service default/shop."
    )


def test_listener_that_a_gateway_may_not_bind_names_the_gateway_and_the_missing_right() -> None:
    """The line about the proxy says the same. A free port needs no right, and a sidecar has no Gateway."""
    edge = a.workload("edge", "10.0.0.1", interception=Edge("public"))
    view = gateway.view(
        gateway.CLASS, gateway.gateway("public", gateway.listener("web", 80), gateway.listener("b", 81)), edge
    )
    name = ResourceName("edge-listener|10.0.0.1|80")
    rejected = RejectedResource(
        NodeKey("edge-uuid.edge.default"),
        LISTENER,
        name,
        Version("2"),
        "cannot bind '10.0.0.1:80': Permission denied",
        replaced=False,
        reason=Reason.PERMISSION,
    )
    right = (
        "a port below 1024 needs CAP_NET_BIND_SERVICE for the proxy's user "
        "(`meshwright unit agent --low-ports`)"
    )
    serves = "it serves listener web (port 80) of Gateway default/public"
    result = problem(view, rejected, ())
    assert str(result.key) == "Workload default/edge"
    assert result.expected == (
        "Proxy edge-uuid.edge.default (and perhaps other proxies of its group) cannot apply the resource at "
        f"the moment (permission); {serves}; {right}. It is retried automatically; to retry now: "
        "`meshwright proxy retry edge-uuid.edge.default`."
    )
    assert listener_clauses(view, rejected) == (serves, right)
    assert listener_clauses(view, replace(rejected, name=ResourceName("outbound-listener"))) == ()
    assert listener_clauses(view, replace(rejected, reason=Reason.ADDRESS_IN_USE)) == (serves,)
    assert listener_clauses(VIEW, replace(rejected, proxy=NODE)) == (right,)
