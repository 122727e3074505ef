"""Tests of route tables: splits and rules multiplied into one list, and the list without excluded parts."""

from datetime import timedelta

from catalog.policy.exclusions import without
from catalog.policy.group_policy import proxy_policy
from catalog.policy.units import Unit, units
from catalog.policy.values.outbound import OutboundService
from catalog.policy.values.route_actions import NO_BACKEND, Forward, WeightedBackend
from catalog.policy.values.route_table import AppliedRoute, AppliedRule, AppliedSplit, RouteEntry, RouteSource
from catalog.relations.groups import groups
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.kinds import HTTP_ROUTE
from meshwright.mesh.matching import Exact, RequestMatch
from meshwright.mesh.names import Port
from meshwright.mesh.policies.routing import HeaderChanges, RouteActions, RoutePolicy, RouteRule
from meshwright.mesh.policies.upstreams import HashKey, KeyKind
from meshwright.mesh.service import Protocol
from tests.meshes import values as a

SLOW = RouteActions(timedelta(seconds=9))
MARKED = RouteActions(timedelta(seconds=5), HeaderChanges(put=(("x-marked", "yes"),)))
MESH = (
    a.service("shop", a.port(80), a.port(90, 9090, a.TCP)),
    a.service("beta", a.port(80)),
    a.service("closed", a.port(80)),
    *(a.workload(name, f"10.0.0.{number}") for number, name in enumerate(("shop", "beta", "closed"), 1)),
    a.workload("buyer", "10.0.0.9"),
    a.route_group("all", a.match("all", ".*")),
    a.tcp_route("any"),
    *(a.target(f"to-{to}", "buyer", to, a.http("all"), a.tcp("any")) for to in ("shop", "beta")),
    a.route_group("paths", a.match("one", "/one"), a.match("two", "/two")),
    a.route_group("writes", a.match("post", "/.*", "POST")),
)
SPLIT = a.split("some", "shop", ("beta", 1), matches=("paths",))
RULES = (RouteRule((a.http("writes"), a.http("paths", "one")), MARKED), RouteRule((), SLOW))
POLICY = RoutePolicy(a.policy_key("treat"), a.service_key("shop"), RULES)


def shop(*objects: object, port: int = 80) -> OutboundService:
    """Return the shop's port as the buyer calls it."""
    view = a.view(*MESH, *objects)
    (group,) = (proxy_group for proxy_group in groups(view) if proxy_group.primary.name == "buyer")
    called = {
        (outbound_service.upstream, outbound_service.port): outbound_service
        for outbound_service in proxy_policy(view, group).outbound
    }
    return called[a.service_key("shop"), Port(port)]


def described(entry: RouteEntry) -> tuple[str, str, str]:
    """Return the matches of an entry, the services or status behind it, and the objects that decide it."""
    named = "+".join(match.name for match in entry.named_matches) or "*"
    assert entry.matches == tuple(match.request_match for match in entry.named_matches)
    match entry.action:
        case Forward() as forward:
            seconds = "" if forward.timeout is None else f" within {forward.timeout.seconds} s"
            to = ",".join(share.upstream.name for share in entry.backends) + seconds
        case answer:
            to = str(int(answer.status))
    return named, to, ", ".join(str(source.part.object_key) for source in entry.provenance)


def table(called: OutboundService) -> list[tuple[str, str, str]]:
    """Return the descriptions of the entries in order."""
    return [described(entry) for entry in called.table]


SOME, TREAT = "TrafficSplit default/some", "RoutePolicy default/treat"
BOTH = f"{SOME}, {TREAT}"


def test_splits_and_rules_are_multiplied_in_their_order() -> None:
    """The split's matches come first. Each has the policy's rules in order, and one match twice is one."""
    assert table(shop(SPLIT, POLICY)) == [
        ("one+post", "beta within 5 s", BOTH),
        ("one", "beta within 5 s", BOTH),
        ("two+post", "beta within 5 s", BOTH),
        ("two+one", "beta within 5 s", BOTH),
        ("one", "beta within 9 s", BOTH),
        ("two", "beta within 9 s", BOTH),
        ("post", "shop within 5 s", TREAT),
        ("one", "shop within 5 s", TREAT),
        ("*", "shop within 9 s", TREAT),
    ]


def test_requests_of_no_rule_and_no_split_have_entries_of_their_own() -> None:
    """Without a rule for all requests, the rest is not treated; without a split, the service answers."""
    treated = RoutePolicy(POLICY.key, POLICY.service, RULES[:1])
    assert table(shop(treated)) == [
        ("post", "shop within 5 s", TREAT),
        ("one", "shop within 5 s", TREAT),
        ("*", "shop", ""),
    ]
    assert table(shop(SPLIT)) == [("one", "beta", SOME), ("two", "beta", SOME), ("*", "shop", "")]
    assert table(shop()) == [("*", "shop", "")]


def test_answer_without_a_backend_is_treated_as_well() -> None:
    """A split whose backends the client may not call answers 503, with the headers of the rule."""
    shut = a.split("shut", "shop", ("closed", 1), matches=("writes",))
    first, *_ = shop(shut, RoutePolicy(POLICY.key, POLICY.service, (RouteRule((), MARKED),))).table
    assert described(first) == ("post", "503", f"TrafficSplit default/shut, {TREAT}")
    assert first.treatment is not None
    assert first.treatment.request_headers == MARKED.request_headers


def _unit(called: OutboundService, text: str) -> Unit:
    return next(unit for unit in units(called) if text in repr(unit))


def test_entries_of_an_excluded_match_leave_their_requests_to_later_entries() -> None:
    """A match of the split and a match of the policy are excluded alike, wherever they are used."""
    called = shop(SPLIT, POLICY)
    assert table(without(called, {_unit(called, "name='one'")})) == [
        ("two+post", "beta within 5 s", BOTH),
        ("two", "beta within 9 s", BOTH),
        ("post", "shop within 5 s", TREAT),
        ("*", "shop within 9 s", TREAT),
    ]


def test_requests_of_an_excluded_rule_are_handled_as_without_it() -> None:
    """Later rules get the requests of a rule with matches. After one for all requests there is none."""
    called = shop(SPLIT, POLICY)
    marked, slow = dict.fromkeys(unit for unit in units(called) if isinstance(unit, AppliedRule))
    assert (marked.actions, slow.actions) == (MARKED, SLOW)
    assert table(without(called, {marked})) == [
        ("one", "beta within 9 s", BOTH),
        ("two", "beta within 9 s", BOTH),
        ("*", "shop within 9 s", TREAT),
    ]
    assert table(without(called, {slow}))[4:] == [
        ("one", "beta", SOME),
        ("two", "beta", SOME),
        ("post", "shop within 5 s", TREAT),
        ("one", "shop within 5 s", TREAT),
        ("*", "shop", ""),
    ]


def test_requests_of_an_excluded_split_for_all_requests_get_no_backend() -> None:
    """They are treated as before, and answered with 503."""
    called = shop(a.split("whole", "shop", ("beta", 1)), POLICY)
    (split,) = {unit for unit in units(called) if isinstance(unit, AppliedSplit)}
    less = without(called, {split})
    assert table(less) == [("post", "503", TREAT), ("one", "503", TREAT), ("*", "503", TREAT)]
    assert {entry.action for entry in less.table} == {NO_BACKEND}


def _route_entry(number: int, path: str, *keys: HashKey) -> RouteEntry:
    rule = Rule((RequestMatch(Exact(path)),))
    source = RouteSource(AppliedRoute(HTTP_ROUTE, a.policy_key("routes"), number, rule))
    backend = WeightedBackend(a.service_key("beta"), "8080", 1)
    return RouteEntry(rule.matches, Forward((backend,), keys), (source,))


def test_match_of_a_gateway_api_rule_is_excluded_alone() -> None:
    """Its entry goes, and with a hash key excluded the match stays the same unit."""
    key = HashKey(KeyKind.HEADER, "x-user")
    one, two = _route_entry(0, "/one", key), _route_entry(1, "/two", key)
    called = OutboundService(a.service_key("shop"), Port(80), Protocol.HTTP, (one, two))
    first, second = one.provenance[0].part, two.provenance[0].part
    assert {*units(called)} == {first, second, key}
    assert isinstance(first, AppliedRoute)
    assert without(called, {first}).table == (two,)
    assert without(called, {key}).table == (_route_entry(0, "/one"), _route_entry(1, "/two"))
    assert without(called, {first, second}).table == ()
    assert (one.chosen_by, one.request_names) == ("HTTPRoute:default/routes/rule-1", ("rule-1",))
