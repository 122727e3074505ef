"""Tests of access: the table of rules and protocols, and agreement with the oracle."""

import itertools
import re

import pytest

from catalog.oracle.decide import Answer, Request, Share, decide, fits
from catalog.policy.access import FullAccess, Grant, MatchingAccess, NoAccess, grant
from catalog.policy.group_policy import proxy_policy
from catalog.policy.values.inbound import AccessRule, EveryoneInTheMesh, InboundPort, OnlyRules
from catalog.relations.groups import group_of
from catalog.store.view import View
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.kinds import TRAFFIC_SPLIT, TRAFFIC_TARGET
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import HTTPMatch, TrafficTarget
from tests.meshes import values as a

BOOKS, READ = a.match("books", "/books.*"), a.match("read", ".*", "GET")
ROUTES = (
    a.route_group("routes", BOOKS, READ),
    a.tcp_route("any"),
    a.tcp_route("web", 8080),
    a.tcp_route("db", 3306),
)


@pytest.mark.parametrize(
    ("rules", "on_http", "on_tcp"),
    [
        ((), NoAccess(), NoAccess()),
        ((a.http("routes"),), MatchingAccess((BOOKS, READ)), NoAccess()),
        ((a.http("routes", "read"),), MatchingAccess((READ,)), NoAccess()),
        ((a.http("routes", "read"), a.http("routes", "books")), MatchingAccess((READ, BOOKS)), NoAccess()),
        ((a.tcp("any"),), FullAccess(), FullAccess()),
        ((a.tcp("web"),), FullAccess(), NoAccess()),
        ((a.tcp("db"),), NoAccess(), FullAccess()),
        ((a.tcp("db"), a.tcp("web")), FullAccess(), FullAccess()),
        ((a.http("routes", "read"), a.tcp("any")), MatchingAccess((READ,)), FullAccess()),
        ((a.http("routes", "read"), a.tcp("web")), MatchingAccess((READ,)), NoAccess()),
        ((a.http("routes", "read"), a.tcp("db")), NoAccess(), FullAccess()),
        # An unknown route never admits more than an existing route of its kind would.
        ((a.http("missing"),), NoAccess(), NoAccess()),
        ((a.http("routes", "missing"),), NoAccess(), NoAccess()),
        ((a.http("routes", "missing"), a.tcp("any")), NoAccess(), FullAccess()),
        # Only the existing matches of a rule count.
        ((a.http("routes", "read", "missing"),), MatchingAccess((READ,)), NoAccess()),
        ((a.http("routes", "read", "missing"), a.tcp("db")), NoAccess(), FullAccess()),
        ((a.http("missing"), a.tcp("any")), NoAccess(), FullAccess()),
        ((a.http("routes", "read"), a.tcp("missing")), NoAccess(), NoAccess()),
        ((a.http("missing"), a.http("routes", "read")), MatchingAccess((READ,)), NoAccess()),
    ],
)
def test_rules_of_a_target_grant_access_by_protocol(
    rules: tuple[object, ...], on_http: Grant, on_tcp: Grant
) -> None:
    """Each combination of rules grants at HTTP port 8080 and TCP port 3306 what the table has."""
    wanted = a.target("t", "buyer", "shop", *rules)  # type: ignore[arg-type]  # parametrize loses the types
    mesh = a.view(*ROUTES, wanted)
    assert grant(mesh, wanted, Port(8080), a.HTTP) == on_http
    assert grant(mesh, wanted, Port(3306), a.TCP) == on_tcp


def test_matches_of_one_group_and_callers_are_the_objects_of_the_mesh() -> None:
    """A large mesh has tens of thousands of targets, so their policy holds no equal copies."""
    group, wanted = a.route_group("routes", BOOKS, READ), a.target("t", "buyer", "shop", a.http("routes"))
    shop = a.workload("shop", "10.0.0.1")
    mesh = a.view(a.service("shop"), shop, group, wanted)
    (port,) = proxy_policy(mesh, group_of(mesh, shop)).inbound
    (rule,) = port.access.rules
    assert rule.matches is group.matches
    assert rule.callers is wanted.sources


def test_destination_port_of_old_versions_restricts_all_rules() -> None:
    """`spec.destination.port` of v1alpha1 and v1alpha2 keeps a target to that port."""
    wanted = a.target("t", "buyer", "shop", a.tcp("any"), only=3306)
    mesh = a.view(*ROUTES, wanted)
    assert grant(mesh, wanted, Port(8080), a.HTTP) == NoAccess()
    assert grant(mesh, wanted, Port(3306), a.TCP) == FullAccess()


def test_target_admits_nothing_to_a_destination_in_another_namespace() -> None:
    """A TrafficTarget is in force only in the namespace of its destination."""
    foreign = TrafficTarget(
        a.target("t", "buyer", "shop").key,
        a.identity("shop", "bank"),
        (a.identity("buyer"),),
        (a.tcp("any"),),
    )
    mesh = a.view(*ROUTES, foreign, a.workload("shop", "10.0.0.1", namespace="bank"))
    assert grant(mesh, foreign, Port(8080), a.HTTP) == NoAccess()


MESH = (
    a.service("shop", a.port(80, 8080), a.port(3306, 3306, a.TCP)),
    a.service("shop-v2"),
    a.workload("shop", "10.0.0.1"),
    a.workload("shop-v2", "10.0.0.2"),
    a.workload("buyer", "10.0.0.8"),
    a.workload("thief", "10.0.0.9"),
    a.route_group("routes", BOOKS, READ, a.match("curl", None, headers=(("x-agent", "curl/.*"),))),
    *ROUTES[1:],
    a.target("buyer-books", "buyer", "shop", a.http("routes", "books")),
    a.target("buyer-curl", "buyer", "shop", a.http("routes", "curl"), a.tcp("web")),
    a.target("thief-db", "thief", "shop", a.tcp("db")),
    a.target("thief-reads-v2", "thief", "shop-v2", a.http("routes", "read")),
)


def inbound(mesh: View, workload_name: str, number: int) -> InboundPort:
    """Return the inbound port of a workload from its proxy's policy."""
    workload = next(item for key, item in mesh.workloads.items() if key.name == workload_name)
    policy = proxy_policy(mesh, group_of(mesh, workload))
    return next(port for port in policy.inbound if port.port == number)


def test_matches_at_a_port_are_named_by_their_groups() -> None:
    """Each match that a target admits is listed once, with the first group that has it.

    Permissive ports and TCP ports have none.
    """
    mesh = a.view(
        *MESH,
        a.route_group("again", BOOKS, a.match("other", "/other")),
        a.target("z", "thief", "shop", a.http("again")),
    )
    result = [
        (str(named_match.group), named_match.match.name) for named_match in inbound(mesh, "shop", 8080).named
    ]
    assert result == [
        ("default/again", "books"),
        ("default/again", "other"),
        ("default/routes", "curl"),
    ]
    assert inbound(mesh, "shop", 3306).named == ()
    permissive = a.view(*MESH, a.namespace("default", permissive=True))
    assert inbound(permissive, "shop", 8080).named == ()


def admits(port_policy: InboundPort, request: Request) -> bool:
    """Evaluate the access rules of a ProxyPolicy as a proxy does, without code of the oracle."""
    match port_policy.access:
        case EveryoneInTheMesh():
            return request.client is not None
        case OnlyRules(rules):
            return any(
                request.client in rule.callers
                and (rule.matches is None or any(_holds(match, request) for match in rule.matches))
                for rule in rules
            )


def _holds(wanted: HTTPMatch, request: Request) -> bool:
    given: dict[str, list[str]] = {}
    for name, value in request.headers:
        given.setdefault(name.lower(), []).append(value)
    return (
        re.fullmatch(wanted.path_regex or ".*", request.path.split("?")[0]) is not None
        and request.method in (wanted.methods or (request.method,))
        and all(
            any(re.fullmatch(header.regex, value) for value in given.get(header.name, []))
            for header in wanted.headers
        )
    )


@pytest.mark.parametrize("permissive", [False, True])
def test_policy_admits_what_the_oracle_allows(permissive: bool) -> None:
    """For a table of requests, the rules of the server's proxy and the oracle agree; both answers occur."""
    mesh = a.view(*MESH, MeshConfig(permissive=permissive))
    seen = {True: 0, False: 0}
    for client, (name, number, target_number), path, method, headers in itertools.product(
        ("buyer", "thief", "stranger"),
        (("shop", 80, 8080), ("shop", 3306, 3306), ("shop-v2", 80, 8080)),
        ("/", "/books", "/books/1?q=1", "/x/books", "/book"),
        ("GET", "POST"),
        ((), (("X-Agent", "curl/8"),), (("x-agent", "x"), ("x-agent", "curl/9"))),
    ):
        request = Request(a.identity(client), a.service_key(name), Port(number), method, path, headers)
        allowed = admits(inbound(mesh, name, target_number), request)
        assert decide(mesh, request).allowed == allowed, request
        seen[allowed] += 1
    assert seen[True] > 20
    assert (seen[False] > 20) != permissive


def test_targets_of_one_destination_unite() -> None:
    """A TrafficTarget never takes away what another one of the same destination admits."""
    access = inbound(a.view(*MESH), "shop", 8080).access
    assert isinstance(access, OnlyRules)
    curl = a.match("curl", None, headers=(("x-agent", "curl/.*"),))
    assert access.rules == (
        AccessRule(ObjectKey.from_name(TRAFFIC_TARGET, MESH[-4].key), (a.identity("buyer"),), (BOOKS,)),
        AccessRule(ObjectKey.from_name(TRAFFIC_TARGET, MESH[-3].key), (a.identity("buyer"),), (curl,)),
    )


def test_decision_names_targets_split_and_shares() -> None:
    """The reasons are the split and the targets that admit the request, and each backend has its share.

    If only one backend admits it, the answer is `depends`.
    """
    mesh = a.view(
        *MESH,
        a.target("buyer-v2", "buyer", "shop-v2", a.http("routes", "read")),
        a.split("canary", "shop", ("shop", 3), ("shop-v2", 1)),
    )
    asked = Request(a.identity("buyer"), a.service_key("shop"), Port(80), "GET", "/books")
    default = Namespace("default")
    decision = decide(mesh, asked)
    assert decision.answer is Answer.ALLOWED
    assert decision.shares == (
        Share(a.service_key("shop"), 3, (a.identity("shop"),), ()),
        Share(a.service_key("shop-v2"), 1, (a.identity("shop-v2"),), ()),
    )
    assert [(key.kind, key.name) for key in decision.because] == [
        (TRAFFIC_SPLIT, "canary"),
        (TRAFFIC_TARGET, "buyer-books"),
        (TRAFFIC_TARGET, "buyer-v2"),
    ]
    assert {key.namespace for key in decision.because} == {default}
    post = Request(a.identity("buyer"), a.service_key("shop"), Port(80), "POST", "/books")
    assert decide(mesh, post).answer is Answer.DEPENDS


@pytest.mark.parametrize(
    ("client", "name", "number", "answer"),
    [
        (None, "shop", 80, Answer.REFUSED),
        ("buyer", "missing", 80, Answer.UNREACHABLE),
        ("buyer", "shop", 81, Answer.UNREACHABLE),
        ("buyer", "shop-v2", 80, Answer.UNREACHABLE),
        ("thief", "shop", 80, Answer.UNREACHABLE),
        ("buyer", "shop", 80, Answer.REFUSED),
    ],
)
def test_refused_and_unreachable_calls_are_distinguished(
    client: str | None, name: str, number: int, answer: Answer
) -> None:
    """A client without an identity or match is refused.

    An unknown service or port, or one without any target for the client, is unreachable.
    """
    who = None if client is None else a.identity(client)
    assert decide(a.view(*MESH), Request(who, a.service_key(name), Port(number), "GET", "/")).answer is answer


def test_host_header_match_fits_the_authority() -> None:
    """A header match on `host` looks at the authority under either name."""
    wanted = a.match("m", None, headers=(("host", "shop"),))
    request = Request(None, a.service_key("shop"), Port(80), headers=((":authority", "shop"),))
    assert fits(wanted, request)
    assert not fits(wanted, Request(None, a.service_key("shop"), Port(80)))
