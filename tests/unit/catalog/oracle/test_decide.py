"""Tests of the oracle: rules and ports, splits and their precedence, headers, permissive mode."""

from dataclasses import replace

import pytest

from catalog.oracle.decide import Answer, Request, Share, Verdict, decide, fits, judge
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.kinds import TRAFFIC_SPLIT
from meshwright.mesh.names import Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import TrafficTarget
from meshwright.mesh.workload import WorkloadPort
from tests.meshes import values as a

ALL, GET, CANARY = a.match("all", ".*"), a.match("get", None, "GET"), a.match("canary", "/canary.*")
GROUPS = (
    a.route_group("all", ALL),
    a.route_group("get", GET),
    a.route_group("canary", CANARY),
    a.route_group("none"),
)
ROUTES = (a.tcp_route("any"), a.tcp_route("web", 8080))
TWO_PORTS = (a.port(80, 8080, name="web"), a.port(3306, 3306, a.TCP, name="db"))
MESH = (
    a.service("shop", *TWO_PORTS),
    a.service("v2", *TWO_PORTS),
    a.service("root", *TWO_PORTS, app="nobody"),
    a.workload("shop", "10.0.0.1"),
    a.workload("v2", "10.0.0.2"),
    a.workload("buyer", "10.0.0.8"),
    *GROUPS,
    *ROUTES,
)
TO_BOTH = (
    a.target("to-shop", "buyer", "shop", a.http("all"), a.tcp("any")),
    a.target("to-v2", "buyer", "v2", a.http("all"), a.tcp("any")),
)


def ask(path: str = "/", name: str = "root", number: int = 80, client: str = "buyer") -> Request:
    """Make a GET request."""
    return Request(a.identity(client), a.service_key(name), Port(number), "GET", path)


def served_by(*things: object, path: str = "/", number: int = 80, name: str = "root") -> dict[str, int]:
    """Return the weights of the services that may answer and that admit the request."""
    shares = decide(a.view(*MESH, *things), ask(path, name, number)).shares
    return {share.service.name: share.weight for share in shares if share.admitted}


@pytest.mark.parametrize(
    ("made", "verdict", "on_tcp"),
    [
        (a.target("t", "buyer", "shop", a.http("all")), Verdict.ADMITS, Verdict.HTTP_ONLY),
        (a.target("t", "buyer", "shop", a.http("canary")), Verdict.OTHER_REQUESTS, Verdict.HTTP_ONLY),
        (a.target("t", "buyer", "shop", a.tcp("any")), Verdict.ADMITS, Verdict.ADMITS),
        (a.target("t", "buyer", "shop", a.tcp("web")), Verdict.ADMITS, Verdict.OTHER_PORTS),
        (
            a.target("t", "buyer", "shop", a.http("canary"), a.tcp("web")),
            Verdict.OTHER_REQUESTS,
            Verdict.OTHER_PORTS,
        ),
        (a.target("t", "buyer", "shop", a.tcp("x")), Verdict.DANGLING, Verdict.DANGLING),
        (a.target("t", "buyer", "shop", a.http("x")), Verdict.DANGLING, Verdict.HTTP_ONLY),
        (a.target("t", "buyer", "shop", a.http("none")), Verdict.DANGLING, Verdict.HTTP_ONLY),
        (a.target("t", "buyer", "shop", a.http("all", "all", "x")), Verdict.ADMITS, Verdict.HTTP_ONLY),
        (
            a.target("t", "buyer", "shop", a.http("canary", "canary", "x")),
            Verdict.OTHER_REQUESTS,
            Verdict.HTTP_ONLY,
        ),
        (a.target("t", "buyer", "shop", a.http("all", "x")), Verdict.DANGLING, Verdict.HTTP_ONLY),
        (a.target("t", "buyer", "shop"), Verdict.NO_RULES, Verdict.NO_RULES),
        (a.target("t", "thief", "shop", a.tcp("any")), Verdict.OTHER_CLIENTS, Verdict.OTHER_CLIENTS),
        (a.target("t", "buyer", "shop", a.tcp("any"), only=8080), Verdict.ADMITS, Verdict.OTHER_PORTS),
    ],
)
def test_verdict_of_one_target_depends_on_rules_port_and_protocol(
    made: TrafficTarget, verdict: Verdict, on_tcp: Verdict
) -> None:
    """The verdicts for HTTP port 8080 and TCP port 3306 name the reason."""
    mesh = a.view(*MESH, made)
    assert judge(mesh, ask(), made, Port(8080), is_http=True) is verdict
    assert judge(mesh, ask(), made, Port(3306), is_http=False) is on_tcp


def test_target_for_another_namespace_is_not_in_force() -> None:
    """A target in namespace bank has no effect on a destination in another namespace."""
    made = replace(a.target("t", "buyer", "shop", a.tcp("any")), key=a.policy_key("t", "bank"))
    assert judge(a.view(*MESH, made), ask(), made, Port(1), is_http=True) is Verdict.NOT_IN_FORCE


def test_named_port_is_judged_at_each_workloads_number() -> None:
    """Two workloads of one identity have the named port at two numbers, and only the admitted one answers."""
    web = a.port(80, "web")
    mesh = a.view(
        a.service("shop", web),
        a.workload("one", "10.0.0.1", WorkloadPort(Port(8080), "web"), app="shop", account="shop"),
        a.workload("two", "10.0.0.2", WorkloadPort(Port(9090), "web"), app="shop", account="shop"),
        *ROUTES,
        a.target("t", "buyer", "shop", a.tcp("web")),
    )
    decision = decide(mesh, ask(name="shop"))
    assert (decision.answer, decision.shares) == (
        Answer.ALLOWED,
        (Share(a.service_key("shop"), 1, (a.identity("shop"),), ()),),
    )


OLD, NEW = "2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z"


@pytest.mark.parametrize(
    ("splits", "path", "winner"),
    [
        (((("a"), OLD, ()), ("b", NEW, ())), "/", "a"),
        ((("a", NEW, ()), ("b", OLD, ())), "/", "b"),
        ((("a", "", ()), ("b", NEW, ())), "/", "b"),
        ((("b", "", ()), ("a", "", ())), "/", "a"),
        ((("a", OLD, ()), ("b", NEW, ("canary",))), "/canary", "b"),
        ((("a", OLD, ()), ("b", NEW, ("canary",))), "/", "a"),
        ((("a", NEW, ("get",)), ("b", OLD, ("canary",))), "/canary", "b"),
        ((("a", NEW, ("get",)), ("b", OLD, ("canary",))), "/", "a"),
        ((("a", OLD, ()), ("b", NEW, ("canary", "x"))), "/canary", "a"),
        ((("a", OLD, ()), ("b", NEW, ("none",))), "/canary", "a"),
    ],
)
def test_split_precedence_is_matches_then_age_then_name(
    splits: tuple[tuple[str, str, tuple[str, ...]], ...], path: str, winner: str
) -> None:
    """A split with a fitting match precedes one without; then the oldest, and then the first name.

    A split without a creation time comes last.
    """
    made = [a.split(name, "root", ("shop", 1), matches=matches, created=at) for name, at, matches in splits]
    because = decide(a.view(*MESH, *TO_BOTH, *made), ask(path)).because
    assert [key.name for key in because if key.kind == TRAFFIC_SPLIT] == [winner]


def test_split_shares_follow_weights_admission_and_protocol() -> None:
    """Only admitted backends have shares.

    Splits do not nest, and splits with matches have no effect on TCP.
    """
    both = a.split("s", "root", ("shop", 3), ("v2", 1))
    assert served_by(both, *TO_BOTH) == {"shop": 3, "v2": 1}
    assert served_by(both, *TO_BOTH, number=3306) == {"shop": 3, "v2": 1}
    assert served_by(both, TO_BOTH[1]) == {"v2": 1}
    assert served_by(both) == {}
    own = a.split("s", "shop", ("shop", 1), ("v2", 1))
    assert served_by(own, *TO_BOTH, name="shop") == {"shop": 1, "v2": 1}
    assert served_by(own, a.split("t", "v2", ("shop", 1)), *TO_BOTH, name="shop") == {"shop": 1, "v2": 1}
    zero = a.split("s", "root", ("shop", 0), ("v2", 1))
    assert served_by(zero, *TO_BOTH) == {"shop": 0, "v2": 1}
    assert served_by(zero, TO_BOTH[0]) == {}
    specific = a.split("s", "shop", ("v2", 1), matches=("all",))
    assert served_by(specific, *TO_BOTH, name="shop") == {"v2": 1}
    assert served_by(specific, *TO_BOTH, name="shop", number=3306) == {"shop": 1}


@pytest.mark.parametrize(
    "refused",
    [
        a.split("s", "shop", ("v2", 0)),
        a.split("s", "shop", ("x", 1)),
        a.split("s", "shop", ("v2", 2**32)),
        a.split("s", "shop", ("v2", 1), matches=("x",)),
        replace(a.split("s", "shop", ("v2", 1)), key=a.policy_key("s", "bank")),
    ],
)
def test_invalid_split_has_no_effect(refused: object) -> None:
    """The apex answers for itself if weights, backends, matches or the namespace are invalid."""
    assert served_by(refused, *TO_BOTH, name="shop") == {"shop": 1}


def test_permissive_mode_admits_every_identity_and_keeps_splits() -> None:
    """Every client with a certificate may call the backends of a split; a client without one is refused."""
    mesh = a.view(*MESH, a.split("s", "root", ("shop", 1), ("v2", 1)), MeshConfig(permissive=True))
    decision = decide(mesh, ask(client="stranger"))
    assert (decision.answer, [share.service.name for share in decision.shares]) == (
        Answer.ALLOWED,
        ["shop", "v2"],
    )
    assert decision.because == (ObjectKey.from_name(TRAFFIC_SPLIT, a.policy_key("s")),)
    assert decide(mesh, replace(ask(), client=None)).answer is Answer.REFUSED


def test_workload_needs_a_target_to_call_itself() -> None:
    """A destination is no source, so a call of the own service is unreachable without a target."""
    own = a.target("t", "shop", "shop", a.http("all"))
    assert decide(a.view(*MESH), ask(name="shop", client="shop")).answer is Answer.UNREACHABLE
    assert decide(a.view(*MESH, own), ask(name="shop", client="shop")).answer is Answer.ALLOWED


@pytest.mark.parametrize(
    ("given", "name", "regex", "wanted"),
    [
        ((("X-Tag", "a"), ("x-tag", "b")), "x-tag", "b", True),
        ((("X-Tag", "a,b"),), "x-tag", "b", False),
        ((("X-Tag", ""),), "x-tag", ".*", True),
        ((), "x-tag", ".*", False),
        ((("Host", "shop"),), "host", "shop", True),
        ((("Host", "shopx"),), "host", "shop", False),
        ((("host", "SHOP.default:8080"),), "host", r"shop\.default", True),
        ((("host", "shop.default.:8080"),), "host", r"Shop\.default", True),
        ((("host", "shop.default."),), "host", r"shop\.default$", True),
        ((("host", "shop:81"),), "host", "shop:81", True),
        ((("host", "shop:80"),), "host", "shop:81", False),
        ((("host", "shop.."),), "host", "shop", False),
        ((("host", "shop:x"),), "host", "shop", False),
        ((("x", "SHOP"),), "x", "shop", False),
        ((("User-Agent", "a"), ("user-agent", "b")), "user-agent", "b", False),
        ((("User-Agent", "a"), ("user-agent", "b")), "user-agent", "a,b", True),
        ((("cookie", "a"), ("cookie", "b")), "cookie", "b", True),
        ((("te", "trailers"),), "te", ".*", True),
        ((("te", "gzip"),), "te", ".*", False),
    ],
)
def test_header_match_fits_one_value_and_ignores_the_names_case(
    given: tuple[tuple[str, str], ...], name: str, regex: str, wanted: bool
) -> None:
    """One fitting value of a repeated header suffices.

    Some repeated headers are joined, and some never reach a rule.
    """
    request = replace(ask(), headers=given)
    assert fits(a.match("m", None, headers=((name, regex),)), request) is wanted


@pytest.mark.parametrize(
    ("regex", "path", "wanted"),
    [
        ("/books", "/books?x=1", True),
        ("/books", "/books/1", False),
        ("/books|/x", "/books/x", False),
        ("books", "/books", False),
        (r"/a\.b", "/axb", False),
        (".*", "/", True),
        (r"/\d", "/\u0663", False),
    ],
)
def test_path_must_fit_in_full_and_without_its_query(regex: str, path: str, wanted: bool) -> None:
    """An expression for a path fits neither a prefix nor a part, and digits are those of ASCII."""
    assert fits(a.match("m", regex), ask(path)) is wanted


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/canary/../canary?x=/..", Answer.ALLOWED),
        ("/a/%2e%2e/canary", Answer.ALLOWED),
        ("/%63anary\\1", Answer.ALLOWED),
        ("http://other/canary", Answer.ALLOWED),
        ("/canary/../x", Answer.REFUSED),
        ("//canary", Answer.REFUSED),
        ("/canary%2f", Answer.REFUSED),
        ("/canary#x", Answer.REFUSED),
        ("/canary?é", Answer.REFUSED),
    ],
)
def test_paths_are_judged_after_normalisation(path: str, answer: Answer) -> None:
    """The oracle normalises paths as sidecars do.

    A path that sidecars refuse gets 400, whatever policy admits.
    """
    mesh = a.view(*MESH, a.target("t", "buyer", "shop", a.http("canary")))
    decision = decide(mesh, ask(path, "shop"))
    down = 400 if any(item in path for item in ("%2f", "#", "é")) else None
    assert (decision.answer, decision.turned_down and decision.turned_down.status) == (answer, down)
    assert (
        decide(mesh, ask(path, "v2")).answer is Answer.UNREACHABLE
    )  # the request reaches no sidecar that could refuse it
    over_http2 = replace(ask("/canary?\udcff", "shop"), http2=True)
    assert decide(mesh, over_http2).answer is Answer.ALLOWED


def test_authority_of_an_absolute_url_replaces_the_host_header() -> None:
    """A match on the host sees the authority of an absolute URL, whatever the Host header is."""
    hosted = a.route_group("hosted", a.match("m", None, headers=(("host", "other"),)))
    mesh = a.view(*MESH, hosted, a.target("t", "buyer", "shop", a.http("hosted")))
    for path, answer in (("http://other/", Answer.ALLOWED), ("/", Answer.REFUSED)):
        asked = replace(ask(path, "shop"), headers=(("Host", "shop"),))
        assert decide(mesh, asked).answer is answer


def test_match_without_methods_fits_every_method() -> None:
    """A match with methods fits only these methods."""
    assert fits(a.match("m", None), ask())
    assert fits(a.match("m", None, "GET", "PUT"), ask())
    assert not fits(a.match("m", None, "POST"), ask())
