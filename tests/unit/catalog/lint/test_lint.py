"""What is said of objects that fit together and may not be meant: each code, and when it is not said."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from catalog.lint.codes import Code
from catalog.lint.matches import covers
from catalog.lint.problems import problems
from mesh.config import MeshConfig
from mesh.names import Namespace, Port
from mesh.objects import ObjectKey
from mesh.policy import TrafficTarget
from mesh.service import Protocol
from mesh.workload import WorkloadPort
from tests.meshes.values import (
    http,
    identity,
    match,
    namespace,
    narrowed,
    policy_key,
    port,
    route_group,
    service,
    split,
    target,
    tcp,
    tcp_route,
    view,
    workload,
)

SHOP = (
    service("shop"),
    service("v2"),
    workload("shop", "10.0.0.1"),
    workload("v2", "10.0.0.2"),
    workload("buyer", "10.0.0.3"),
    route_group("all", match("all", ".*")),
    route_group("books", match("books", "/books"), match("get", "/books", "GET"), match("other", "/x")),
    tcp_route("any"),
    tcp_route("web", 8080),
)
GOOD = target("t", "buyer", "shop", http("books", "books"))


def admits(name: str, *sources: str) -> TrafficTarget:
    """Make a target for the shop with several sources."""
    found = tuple(identity(each) for each in sources)
    return TrafficTarget(policy_key(name), identity("shop"), found, (http("books", "books"),))


def said(*things: object) -> list[tuple[str, str, str, str]]:
    """Return code, object, field and value of every problem."""
    return [(each.code, str(each.key), each.field, each.value) for each in problems(view(*SHOP, *things))]


def test_nothing_is_said_of_what_is_right() -> None:
    """One target with one match, between two that are there."""
    assert said(GOOD) == []


BUYER = "default/buyer"
DATABASE = service("db", port(3306, 3306, Protocol.TCP))
BANKER = replace(admits("u"), sources=(identity("buyer"), identity("buyer", "bank")))
TARGET, SPLIT = "TrafficTarget default/t", "TrafficSplit default/s"


@pytest.mark.parametrize(
    ("things", "code", "named", "field", "value"),
    [
        (
            [target("t", "buyer", "gone", http("books", "books"))],
            Code.UNKNOWN_DESTINATION,
            TARGET,
            "spec.destination",
            "default/gone",
        ),
        ([target("t", "buyer", "shop")], Code.NO_RULES, TARGET, "spec.rules", ""),
        ([admits("t", "gone")], Code.UNKNOWN_SOURCES, TARGET, "spec.sources", "default/gone"),
        (
            [BANKER],
            Code.SOURCE_NAMESPACE,
            "TrafficTarget default/u",
            "spec.sources",
            "bank/buyer",
        ),
        ([target("t", "buyer", "shop", tcp("any"))], Code.WIDE_OPEN, TARGET, "spec.rules", ""),
        (
            [target("t", "buyer", "shop", tcp("any"), http("all"))],
            Code.WIDE_OPEN,
            TARGET,
            "spec.rules",
            "",
        ),
        (
            [target("t", "buyer", "shop", tcp("web")), admits("u", "v2", "buyer")],
            Code.OPENS_HTTP,
            TARGET,
            "spec.rules",
            "8080",
        ),
        (
            [workload("thief", "10.0.0.4"), admits("t", "buyer", "v2", "thief")],
            Code.EVERYBODY,
            TARGET,
            "spec.sources",
            "3",
        ),
        (
            [target("t", "buyer", "shop", http("books"))],
            Code.SHADOWED_MATCH,
            TARGET,
            "spec.rules[0]",
            "books/get",
        ),
        (
            [target("t", "buyer", "shop", http("books", "other"), http("all"))],
            Code.SHADOWED_MATCH,
            TARGET,
            "spec.rules[0]",
            "books/other",
        ),
        (
            [route_group("g", match("a", "/x", "GET"), match("b"), match("c", "/x", "GET"))],
            Code.DUPLICATE_MATCH,
            "HTTPRouteGroup default/g",
            "spec.matches[2]",
            "c",
        ),
        (
            [route_group("g", match("a", headers=(("te", ".*"),)))],
            Code.UNSEEN_HEADER,
            "HTTPRouteGroup default/g",
            "spec.matches[0].headers",
            "te",
        ),
        (
            [route_group("g", match("a", headers=(("x-request-id", ".*"),)))],
            Code.UNSEEN_HEADER,
            "HTTPRouteGroup default/g",
            "spec.matches[0].headers",
            "x-request-id",
        ),
        (
            [
                GOOD,
                split("a", "shop", ("shop", 1), matches=("all",)),
                split("s", "shop", ("shop", 1), matches=("books",)),
            ],
            Code.SHADOWED_SPLIT,
            SPLIT,
            "spec.matches",
            "books",
        ),
        (
            [tcp_route("gone", 9999), target("t", "buyer", "shop", tcp("gone"))],
            Code.NO_PORT,
            TARGET,
            "spec.rules",
            "",
        ),
        (
            [target("t", "buyer", "db", http("books", "books")), DATABASE, workload("db", "10.0.0.5")],
            Code.NO_PORT,
            TARGET,
            "spec.rules",
            "",
        ),
        ([target("t", "buyer", "shop", tcp("any"), only=80)], Code.NO_PORT, TARGET, "spec.rules", ""),
        (
            [GOOD, admits("u", "buyer")],
            Code.DUPLICATE_TARGET,
            "TrafficTarget default/u",
            "spec.sources",
            BUYER,
        ),
        (
            [admits("t", "buyer"), admits("a", "buyer", "v2")],
            Code.DUPLICATE_TARGET,
            TARGET,
            "spec.sources",
            BUYER,
        ),
        (
            [GOOD, split("s", "shop", ("v2", 1))],
            Code.BACKEND_NOT_ALLOWED,
            SPLIT,
            "spec.backends",
            "default/v2",
        ),
        (
            [GOOD, split("a", "shop", ("shop", 1)), split("s", "shop", ("v2", 1), matches=("books",))],
            Code.BACKEND_NOT_ALLOWED,
            SPLIT,
            "spec.backends",
            "default/v2",
        ),
        (
            [GOOD, split("s", "shop", ("shop", 1), ("v2", 1))],
            Code.BACKEND_NOT_ALLOWED,
            SPLIT,
            "spec.backends",
            "default/v2",
        ),
        (
            [route_group("g", match("a", "/x"), match("b", "books", "GET"))],
            Code.UNFIT_PATH,
            "HTTPRouteGroup default/g",
            "spec.matches[1].pathRegex",
            "books",
        ),
        (
            [service("guess", port(80, source="default"), app="shop")],
            Code.PROTOCOL_GUESSED,
            "Service default/guess",
            "spec.ports",
            "80",
        ),
    ],
)
def test_each_code(things: Sequence[object], code: Code, named: str, field: str, value: str) -> None:
    """It is said once, of the object and field concerned, and nothing else is said."""
    assert said(*things) == [(code, named, field, value)]


@pytest.mark.parametrize(
    "things",
    [
        [admits("t", "buyer", "gone")],
        [target("t", "buyer", "shop", tcp("web"))],
        [target("t", "buyer", "shop", tcp("any"), http("books", "books"))],
        [target("t", "buyer", "shop", tcp("any"), only=8080)],
        [admits("t", "buyer", "v2")],
        [GOOD, admits("u", "v2")],
        [GOOD, target("u", "buyer", "shop", http("books", "other"))],
        [GOOD, target("u", "buyer", "v2", http("books", "books"))],
        [GOOD, target("u", "v2", "shop", tcp("web"))],
        [GOOD, target("u", "buyer", "shop", tcp("web"), http("books", "other"))],
        [GOOD, target("u", "buyer", "v2", tcp("web"))],
        [
            GOOD,
            service("db", port(3306, 3306, Protocol.TCP), app="shop"),
            tcp_route("db", 3306),
            target("u", "buyer", "shop", tcp("db")),
        ],
        [target("t", "buyer", "shop", tcp("web"), tcp("other")), tcp_route("other", 9999)],
        [target("t", "buyer", "shop", http("books", "get", "other"))],
        [GOOD, split("s", "shop", ("shop", 1), ("v2", 0))],
        [GOOD, split("s", "shop", ("shop", 1), ("v2", 1)), MeshConfig(permissive=True)],
        [
            GOOD,
            target("u", "buyer", "v2", http("books", "other")),
            split("s", "shop", ("shop", 1), ("v2", 1)),
        ],
        [
            GOOD,
            split("a", "shop", ("shop", 1), matches=("books",)),
            split("s", "shop", ("shop", 1), matches=("all",)),
        ],
        [
            service("guess", port(80, source="default"), app="told"),
            workload("told", "10.0.0.9", WorkloadPort(Port(8080), "", Protocol.HTTP)),
        ],
    ],
)
def test_when_nothing_is_said(things: Sequence[object]) -> None:
    """The neighbours of each: not all sources unknown, one port, narrower, not yet callable, told."""
    assert said(*things) == []


@pytest.mark.parametrize("route", ["any", "web"])
@pytest.mark.parametrize("name", ["a", "z"])
def test_a_tcp_route_that_opens_http_is_told_of(route: str, name: str) -> None:
    """Beside HTTPRouteGroups of the same source, with ports or without, whichever target comes first."""
    found = problems(view(*SHOP, GOOD, target(name, "buyer", "shop", tcp(route))))
    wanted = (
        "TrafficTarget default/t says what default/buyer may request at this port, which speaks HTTP, "
        "and this one admits every request; name other ports, or put both rules into one target"
    )
    opening = [(str(each.key), each.expected) for each in found if each.code == Code.OPENS_HTTP]
    assert opening == [(f"TrafficTarget default/{name}", wanted)]


def test_calls_that_fail_for_a_backend_that_is_not_allowed_are_told_of() -> None:
    """Where another backend is left, it has the share; where none is, who is left with nobody is named."""
    shared, lost = (
        [each.expected for each in problems(view(*SHOP, GOOD, split("s", "shop", *backends)))]
        for backends in ((("shop", 1), ("v2", 1)), (("v2", 1),))
    )
    who = "default/buyer may call the apex or another backend of it, and not this one"
    text = f"{who}; it gets no share of theirs"
    assert shared == [text]
    assert lost == [f"{text}, and the calls of default/buyer that this split decides fail"]
    many = admits("t", *(f"c{number}" for number in range(7)))
    (said_of_many,) = (
        each.expected
        for each in problems(view(*SHOP, many, split("s", "shop", ("shop", 1), ("v2", 1))))
        if each.code == Code.BACKEND_NOT_ALLOWED
    )
    named = ", ".join(f"default/c{number}" for number in range(5))
    assert said_of_many.startswith(f"{named} and 2 more may call")


@pytest.mark.parametrize(
    "regex",
    [
        *("^books/.*", "b+", "0", "-", "(a|b)/.*", "[a-z]+"),
        *(r"/a/\.\./b", r"/a/\.", "/%62ooks", r"/a\\b", r"/a\?x", "/a#b", "/café", "/a b", "/%00"),
    ],
)
def test_expressions_that_fit_no_path(regex: str) -> None:
    """Whatever fits begins with no slash; or it is one path, which no sidecar passes on so."""
    found = said(route_group("g", match("m", regex)))
    assert [(code, value) for code, *_, value in found] == [(Code.UNFIT_PATH, regex)]


@pytest.mark.parametrize(
    "regex",
    [
        *("/books", "^/books$", "b?/x", "b*/x", "b{0}/x", "x|/y", "(?i)/x", r"\/x", "[/]x", ".*"),
        *("/a//b", "/a%2Fb", "/caf%C3%A9", "/a/[.][.]/b", r"/a\.b"),
    ],
)
def test_expressions_that_may_fit_a_path(regex: str) -> None:
    """Also where it cannot be told from the first character alone."""
    assert said(route_group("g", match("m", regex))) == []


def test_a_workload_s_name_is_not_its_account() -> None:
    """Who names the workload instead is told which ServiceAccount it has."""
    pod = workload("buyer-1", "10.0.0.9", account="buyer")
    made = [
        target("t", "buyer-1", "shop", http("books", "books")),
        target("u", "buyer", "buyer-1", tcp("web")),
    ]
    meant = "(the workload default/buyer-1 has the ServiceAccount default/buyer)"
    found = {each.code: each.expected for each in problems(view(*SHOP, pod, *made))}
    wanted = "the identity of a workload; until one has it,"
    assert found == {
        Code.UNKNOWN_SOURCES: f"{wanted} nobody is admitted {meant}",
        Code.UNKNOWN_DESTINATION: f"{wanted} nothing is admitted {meant}",
    }


def test_a_name_in_another_namespace_is_pointed_out() -> None:
    """Who is nobody here and somebody there is most likely meant."""
    mesh = view(*SHOP, workload("cashier", "10.0.0.9", namespace="bank"), admits("t", "cashier"))
    found = {each.code: each.expected for each in problems(mesh)}
    assert found[Code.SOURCE_NAMESPACE] == "no workload has this identity; one has bank/cashier"
    key = ObjectKey("TrafficTarget", Namespace("default"), "t")
    assert {each.key for each in problems(mesh)} == {key}


def test_a_narrowing_is_held_against_what_is_there() -> None:
    """Each part that fits no Service, on whom it stands; where there is one of that name, it is named."""
    field = "metadata.annotations.meshwright.dev/egress-services"
    wide = namespace("default", scope=narrowed("*/*", "default/*", "*/v2", "default/shop"))
    assert said(GOOD, wide, workload("w", "10.0.0.9", scope=())) == []
    for thing, on in (
        (namespace("n", scope=narrowed("bank/*", "*/gone", "bank/v2")), "Namespace n"),
        (workload("w", "10.0.0.9", scope=narrowed("bank/*", "*/gone", "bank/v2")), "Workload default/w"),
    ):
        assert said(GOOD, thing) == [
            (Code.UNKNOWN_EGRESS, on, field, each) for each in ("*/gone", "bank/*", "bank/v2")
        ]
        last = problems(view(*SHOP, GOOD, thing))[-1]
        assert last.expected == "no Service is called so, but default/v2 is; this adds nothing until one is"


def test_covering() -> None:
    """Paths as they are written, methods as sets, headers as conditions: what is doubtful does not cover."""
    assert covers(match("a"), match("b", "/x", "GET", headers=(("x", "y"),)))
    assert covers(match("a", ".*"), match("b", "/x"))
    assert covers(match("a", "/x", "GET", "PUT"), match("b", "/x", "GET"))
    assert not covers(match("a", "/x", "GET"), match("b", "/x"))
    assert not covers(match("a", "/x.*"), match("b", "/x"))
    assert not covers(match("a", None, headers=(("x", "y"),)), match("b"))
