"""Tests of lint for valid objects that may be mistakes: each code, and similar cases without one."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from catalog.lint.codes import Code
from catalog.lint.problems import problems
from catalog.lint.smi.match_coverage import Shape
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.kinds import TRAFFIC_TARGET
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import HTTPMatch, TrafficTarget
from meshwright.mesh.problems.spelling import nearest
from meshwright.mesh.service import Protocol
from meshwright.mesh.workload import WorkloadPort
from tests.meshes import values as a

SHOP = (
    a.service("shop"),
    a.service("v2"),
    a.workload("shop", "10.0.0.1"),
    a.workload("v2", "10.0.0.2"),
    a.workload("buyer", "10.0.0.3"),
    a.route_group("all", a.match("all", ".*")),
    a.route_group(
        "books", a.match("books", "/books"), a.match("get", "/books", "GET"), a.match("other", "/x")
    ),
    a.tcp_route("any"),
    a.tcp_route("web", 8080),
)
GOOD = a.target("t", "buyer", "shop", a.http("books", "books"))


def admits(name: str, *sources: str) -> TrafficTarget:
    """Make a target for the shop with several sources."""
    identities = tuple(a.identity(source) for source in sources)
    return TrafficTarget(a.policy_key(name), a.identity("shop"), identities, (a.http("books", "books"),))


def said(*things: object) -> list[tuple[str, str, str, str]]:
    """Return code, object, field and value of every problem."""
    return [
        (problem.code, str(problem.key), problem.field, problem.value)
        for problem in problems(a.view(*SHOP, *things))
    ]


def test_valid_objects_have_no_problem() -> None:
    """A target with one match between two existing workloads has no problem."""
    assert said(GOOD) == []


BUYER = "default/buyer"
DATABASE = a.service("db", a.port(3306, 3306, Protocol.TCP))
BANKER = replace(admits("u"), sources=(a.identity("buyer"), a.identity("buyer", "bank")))
TARGET, SPLIT = "TrafficTarget default/t", "TrafficSplit default/s"


@pytest.mark.parametrize(
    ("things", "code", "named", "field", "value"),
    [
        (
            [a.target("t", "buyer", "gone", a.http("books", "books"))],
            Code.UNKNOWN_DESTINATION,
            TARGET,
            "spec.destination",
            "default/gone",
        ),
        ([a.target("t", "buyer", "shop")], Code.NO_RULES, TARGET, "spec.rules", ""),
        ([admits("t", "gone")], Code.UNKNOWN_SOURCES, TARGET, "spec.sources", "default/gone"),
        (
            [BANKER],
            Code.SOURCE_NAMESPACE,
            "TrafficTarget default/u",
            "spec.sources",
            "bank/buyer",
        ),
        ([a.target("t", "buyer", "shop", a.tcp("any"))], Code.WIDE_OPEN, TARGET, "spec.rules", ""),
        (
            [a.target("t", "buyer", "shop", a.tcp("any"), a.http("all"))],
            Code.WIDE_OPEN,
            TARGET,
            "spec.rules",
            "",
        ),
        (
            [a.target("t", "buyer", "shop", a.tcp("web")), admits("u", "v2", "buyer")],
            Code.OPENS_HTTP,
            TARGET,
            "spec.rules",
            "8080",
        ),
        (
            [a.workload("thief", "10.0.0.4"), admits("t", "buyer", "v2", "thief")],
            Code.EVERYBODY,
            TARGET,
            "spec.sources",
            "3",
        ),
        (
            [a.target("t", "buyer", "shop", a.http("books"))],
            Code.SHADOWED_MATCH,
            TARGET,
            "spec.rules[0]",
            "books/get",
        ),
        (
            [a.target("t", "buyer", "shop", a.http("books", "other"), a.http("all"))],
            Code.SHADOWED_MATCH,
            TARGET,
            "spec.rules[0]",
            "books/other",
        ),
        (
            [a.route_group("g", a.match("a", "/x", "GET"), a.match("b"), a.match("c", "/x", "GET"))],
            Code.DUPLICATE_MATCH,
            "HTTPRouteGroup default/g",
            "spec.matches[2]",
            "c",
        ),
        (
            [a.route_group("g", a.match("a", headers=(("te", "gzip"),)))],
            Code.UNSEEN_HEADER,
            "HTTPRouteGroup default/g",
            "spec.matches[0].headers",
            "te",
        ),
        (
            [a.route_group("g", a.match("a", headers=(("x-request-id", ".*"),)))],
            Code.UNSEEN_HEADER,
            "HTTPRouteGroup default/g",
            "spec.matches[0].headers",
            "x-request-id",
        ),
        (
            [
                GOOD,
                a.split("a", "shop", ("shop", 1), matches=("all",)),
                a.split("s", "shop", ("shop", 1), matches=("books",)),
            ],
            Code.SHADOWED_SPLIT,
            SPLIT,
            "spec.matches",
            "books",
        ),
        (
            [a.tcp_route("gone", 9999), a.target("t", "buyer", "shop", a.tcp("gone"))],
            Code.NO_PORT,
            TARGET,
            "spec.rules",
            "",
        ),
        (
            [a.target("t", "buyer", "db", a.http("books", "books")), DATABASE, a.workload("db", "10.0.0.5")],
            Code.NO_PORT,
            TARGET,
            "spec.rules",
            "",
        ),
        ([a.target("t", "buyer", "shop", a.tcp("any"), only=80)], Code.NO_PORT, TARGET, "spec.rules", ""),
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
            [GOOD, a.split("s", "shop", ("v2", 1))],
            Code.BACKEND_NOT_ALLOWED,
            SPLIT,
            "spec.backends",
            "default/v2",
        ),
        (
            [GOOD, a.split("a", "shop", ("shop", 1)), a.split("s", "shop", ("v2", 1), matches=("books",))],
            Code.BACKEND_NOT_ALLOWED,
            SPLIT,
            "spec.backends",
            "default/v2",
        ),
        (
            [GOOD, a.split("s", "shop", ("shop", 1), ("v2", 1))],
            Code.BACKEND_NOT_ALLOWED,
            SPLIT,
            "spec.backends",
            "default/v2",
        ),
        (
            [a.route_group("g", a.match("a", "/x"), a.match("b", "books", "GET"))],
            Code.UNFIT_PATH,
            "HTTPRouteGroup default/g",
            "spec.matches[1].pathRegex",
            "books",
        ),
        (
            [a.service("guess", a.port(80, source="default"), app="shop")],
            Code.PROTOCOL_GUESSED,
            "Service default/guess",
            "spec.ports",
            "80",
        ),
    ],
)
def test_each_code_is_reported_once_at_its_object_and_field(
    things: Sequence[object], code: Code, named: str, field: str, value: str
) -> None:
    """Each set of objects has exactly one problem, at the object and field concerned."""
    assert said(*things) == [(code, named, field, value)]


@pytest.mark.parametrize(
    "things",
    [
        [admits("t", "buyer", "gone")],
        [a.target("t", "buyer", "shop", a.tcp("web"))],
        [a.target("t", "buyer", "shop", a.tcp("any"), a.http("books", "books"))],
        [a.target("t", "buyer", "shop", a.tcp("any"), only=8080)],
        [admits("t", "buyer", "v2")],
        [GOOD, admits("u", "v2")],
        [GOOD, a.target("u", "buyer", "shop", a.http("books", "other"))],
        [GOOD, a.target("u", "buyer", "v2", a.http("books", "books"))],
        [GOOD, a.target("u", "v2", "shop", a.tcp("web"))],
        [GOOD, a.target("u", "buyer", "shop", a.tcp("web"), a.http("books", "other"))],
        [GOOD, a.target("u", "buyer", "v2", a.tcp("web"))],
        [
            GOOD,
            a.service("db", a.port(3306, 3306, Protocol.TCP), app="shop"),
            a.tcp_route("db", 3306),
            a.target("u", "buyer", "shop", a.tcp("db")),
        ],
        [a.target("t", "buyer", "shop", a.tcp("web"), a.tcp("other")), a.tcp_route("other", 9999)],
        [a.target("t", "buyer", "shop", a.http("books", "get", "other"))],
        [GOOD, a.split("s", "shop", ("shop", 1), ("v2", 0))],
        [GOOD, a.split("s", "shop", ("shop", 1), ("v2", 1)), MeshConfig(permissive=True)],
        [
            GOOD,
            a.target("u", "buyer", "v2", a.http("books", "other")),
            a.split("s", "shop", ("shop", 1), ("v2", 1)),
        ],
        [
            GOOD,
            a.split("a", "shop", ("shop", 1), matches=("books",)),
            a.split("s", "shop", ("shop", 1), matches=("all",)),
        ],
        [
            a.service("guess", a.port(80, source="default"), app="told"),
            a.workload("told", "10.0.0.9", WorkloadPort(Port(8080), "", Protocol.HTTP)),
        ],
    ],
)
def test_objects_close_to_a_problem_have_none(things: Sequence[object]) -> None:
    """Near misses of each code are valid, for example a target with only some unknown sources."""
    assert said(*things) == []


@pytest.mark.parametrize("route", ["any", "web"])
@pytest.mark.parametrize("name", ["a", "z"])
def test_tcp_route_that_opens_an_http_port_is_reported(route: str, name: str) -> None:
    """A TCPRoute, with or without ports, admits what the HTTPRouteGroup of another target restricts.

    The order of the targets does not matter.
    """
    result = problems(a.view(*SHOP, GOOD, a.target(name, "buyer", "shop", a.tcp(route))))
    wanted = (
        "This TrafficTarget admits every request at this HTTP port, although TrafficTarget "
        "default/t admits only some requests of default/buyer. Name other ports, or put both rules "
        "into one TrafficTarget."
    )
    opening = [(str(problem.key), problem.expected) for problem in result if problem.code == Code.OPENS_HTTP]
    assert opening == [(f"TrafficTarget default/{name}", wanted)]


def test_backend_that_callers_may_not_call_is_reported_with_the_effect() -> None:
    """Another backend takes the share, or the calls fail if none is left.

    The problem names five callers and counts the others.
    """
    shared, lost = (
        [problem.expected for problem in problems(a.view(*SHOP, GOOD, a.split("s", "shop", *backends)))]
        for backends in ((("shop", 1), ("v2", 1)), (("v2", 1),))
    )
    who = "default/buyer may call the apex or another backend, but not this backend"
    text = f"{who}, so it is left out of their calls"
    admit = "Admit them with a TrafficTarget."
    assert shared == [f"{text}. {admit}"]
    assert lost == [f"{text}; calls of default/buyer that this TrafficSplit decides fail. {admit}"]
    many = admits("t", *(f"c{number}" for number in range(7)))
    (said_of_many,) = (
        problem.expected
        for problem in problems(a.view(*SHOP, many, a.split("s", "shop", ("shop", 1), ("v2", 1))))
        if problem.code == Code.BACKEND_NOT_ALLOWED
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
def test_expression_that_fits_no_path_is_reported(regex: str) -> None:
    """An expression is reported if it fits no leading slash, or only a path that sidecars never pass."""
    result = said(a.route_group("g", a.match("m", regex)))
    assert [(code, value) for code, *_, value in result] == [(Code.UNFIT_PATH, regex)]


@pytest.mark.parametrize(
    "regex",
    [
        *("/books", "^/books$", "b?/x", "b*/x", "b{0}/x", "x|/y", "(?i)/x", r"\/x", "[/]x", ".*"),
        *("/a//b", "/a%2Fb", "/caf%C3%A9", "/a/[.][.]/b", r"/a\.b"),
    ],
)
def test_expression_that_may_fit_a_path_is_not_reported(regex: str) -> None:
    """The expression may still fit where its first character alone does not decide."""
    assert said(a.route_group("g", a.match("m", regex))) == []


def test_only_a_few_of_many_unknown_names_get_suggestions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A target with 300 unknown sources and 300 unknown matches costs at most ten comparisons of names."""
    compared = list[str]()

    def counting(word: str, there: Sequence[str]) -> str | None:
        compared.append(word)
        return nearest(word, there)

    monkeypatch.setattr("catalog.lint.wording.nearest", counting)
    names = [f"shop-{number}" for number in range(300)]
    target = replace(admits("t", *names), rules=(a.http("books", *(f"book-{each}" for each in range(300))),))
    result = {problem.code: problem.expected for problem in problems(a.view(*SHOP, target))}
    assert result[Code.UNKNOWN_SOURCES].count("did you mean") == 5
    assert result[Code.UNKNOWN_MATCH].count("did you mean") == 1
    assert len(compared) <= 10


def test_workload_name_in_place_of_its_account_is_explained() -> None:
    """The problem names the ServiceAccount of the workload whose name was used."""
    pod = a.workload("buyer-1", "10.0.0.9", account="buyer")
    made = [
        a.target("t", "buyer-1", "shop", a.http("books", "books")),
        a.target("u", "buyer", "buyer-1", a.tcp("web")),
    ]
    meant = "(the workload default/buyer-1 has the ServiceAccount default/buyer)"
    result = {problem.code: problem.expected for problem in problems(a.view(*SHOP, pod, *made))}
    mend = f"Create the workload, or correct the name {meant}."
    assert result == {
        Code.UNKNOWN_SOURCES: (
            "Workloads with these ServiceAccounts do not exist, so the TrafficTarget does not admit "
            f"callers. {mend}"
        ),
        Code.UNKNOWN_DESTINATION: (
            "A workload with this ServiceAccount does not exist, so the TrafficTarget does not admit "
            f"requests. {mend}"
        ),
    }


def test_misspelt_account_is_reported_with_a_suggestion() -> None:
    """The nearest account of the namespace is suggested, and none if no account is similar."""
    made = [
        a.target("t", "shopp", "shop", a.http("books", "books")),
        a.target("u", "buyer", "byer", a.tcp("web")),
        a.target("v", "buyer", "zzz", a.tcp("web")),
    ]
    pod = a.workload("buyer-1", "10.0.0.9", account="buyer")
    result = sorted(
        (problem.code, problem.value, problem.expected) for problem in problems(a.view(*SHOP, pod, *made))
    )
    wanted = (
        "A workload with this ServiceAccount does not exist, so the TrafficTarget does not admit requests. "
        "Create the workload, or correct the name."
    )
    assert result == [
        (Code.UNKNOWN_DESTINATION, "default/byer", f"{wanted.removesuffix('.')} (did you mean buyer?)."),
        (Code.UNKNOWN_DESTINATION, "default/zzz", wanted),
        (
            Code.UNKNOWN_SOURCES,
            "default/shopp",
            (
                "Workloads with these ServiceAccounts do not exist, so the TrafficTarget does not admit "
                "callers. Create the workload, or correct the name (did you mean shop?)."
            ),
        ),
    ]


def test_account_of_another_namespace_is_suggested() -> None:
    """An unknown account that exists in another namespace is probably meant, so the problem names it."""
    mesh = a.view(*SHOP, a.workload("cashier", "10.0.0.9", namespace="bank"), admits("t", "cashier"))
    result = {problem.code: problem.expected for problem in problems(mesh)}
    assert result[Code.SOURCE_NAMESPACE] == (
        "A workload with this ServiceAccount does not exist, but there is bank/cashier. Correct the "
        "namespace."
    )
    key = ObjectKey(TRAFFIC_TARGET, Namespace("default"), "t")
    assert {problem.key for problem in problems(mesh)} == {key}


def test_narrowed_scope_that_fits_no_service_is_reported() -> None:
    """Each entry without a Service is reported at its Namespace or Workload.

    A Service of that name in another namespace is suggested.
    """
    field = "metadata.annotations.meshwright.dev/egress-services"
    wide = a.namespace("default", scope=a.narrowed("*/*", "default/*", "*/v2", "default/shop"))
    assert said(GOOD, wide, a.workload("w", "10.0.0.9", scope=())) == []
    for thing, on in (
        (a.namespace("n", scope=a.narrowed("bank/*", "*/gone", "bank/v2")), "Namespace n"),
        (a.workload("w", "10.0.0.9", scope=a.narrowed("bank/*", "*/gone", "bank/v2")), "Workload default/w"),
    ):
        assert said(GOOD, thing) == [
            (Code.UNKNOWN_EGRESS, on, field, item) for item in ("*/gone", "bank/*", "bank/v2")
        ]
        last = problems(a.view(*SHOP, GOOD, thing))[-1]
        assert last.expected == (
            "A Service with this name does not exist, but there is default/v2. The entry is not in force "
            "until a Service has the name."
        )


def test_match_covers_another_only_if_certain() -> None:
    """Paths are compared as text, methods as sets and headers as conditions; in doubt, no match covers."""

    def covers(one: HTTPMatch, other: HTTPMatch) -> bool:
        return Shape.from_match(one).covers(Shape.from_match(other))

    assert covers(a.match("a"), a.match("b", "/x", "GET", headers=(("x", "y"),)))
    assert covers(a.match("a", ".*"), a.match("b", "/x"))
    assert covers(a.match("a", "/x", "GET", "PUT"), a.match("b", "/x", "GET"))
    assert not covers(a.match("a", "/x", "GET"), a.match("b", "/x"))
    assert not covers(a.match("a", "/x.*"), a.match("b", "/x"))
    assert not covers(a.match("a", None, headers=(("x", "y"),)), a.match("b"))
