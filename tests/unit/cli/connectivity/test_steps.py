"""Every step's verdict, from facts alone: what is as policy says, what is not, and what nobody can tell."""

from dataclasses import replace

import pytest

from catalog.oracle.decide import Answer
from meshwright.admin.pages.calls.sidecars import SidecarState
from meshwright.agent.calling.outcomes import DENIED, Outcome, OwnAnswer, RequestOutcome
from meshwright.agent.calling.request import Call
from meshwright.cli.connectivity.facts import (
    Agent,
    DecisivePush,
    Endpoint,
    Facts,
    Sidecar,
    read_agent,
    read_facts,
)
from meshwright.cli.connectivity.request import not_tried, planned
from meshwright.cli.connectivity.steps import NAMED, Point, first_difference, status, steps
from meshwright.cli.connectivity.verdict import Verdict
from meshwright.cli.errors import Status
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.service import Protocol
from meshwright.sidecars.layout import Side

BUYER = Sidecar("u2.buyer.shop", "shop/buyer-1", SidecarState.IN_STEP, called_at=("127.0.0.3:7001",))
STORE = Sidecar("u1.store.shop", "shop/store-1", SidecarState.IN_STEP)
THERE = Endpoint("10.0.0.1:8080", given=True, application="127.0.0.1:8080")
FACTS = Facts(
    caller="shop/buyer",
    called="shop/store:80",
    method="GET",
    path="/books",
    headers=(("host", "store.shop"),),
    protocol=Protocol.HTTP,
    policy=Answer.ALLOWED,
    because=("TrafficTarget shop/buyers",),
    conclusion="allowed",
    policy_lacks=False,
    besides=(),
    turned_down=None,
    callers=(BUYER,),
    endpoints=(THERE,),
    servers=(STORE,),
)
REFUSED = replace(FACTS, policy=Answer.REFUSED, conclusion="refused: the server's sidecar answers 403")
UNREACHABLE = replace(FACTS, policy=Answer.UNREACHABLE, conclusion="unreachable")
AGENT = Agent("127.0.0.1:15020", "u2.buyer.shop")
YES = RequestOutcome(Outcome.ANSWERED, "127.0.0.3:7001", 200, milliseconds=3.0)
FORBIDDEN = RequestOutcome(Outcome.ANSWERED, "127.0.0.3:7001", 403, "no-rule-fits shop/buyers", DENIED)
DOWN = RequestOutcome(
    Outcome.ANSWERED,
    "127.0.0.3:7001",
    503,
    words="upstream connect error or disconnect/reset before headers. reset reason: connection failure",
    undelivered=True,
)
NOBODY = RequestOutcome(Outcome.ANSWERED, "127.0.0.3:7001", 503, words="no healthy upstream")
CLOSED, OPEN, SILENT, NO_LISTENER = (
    RequestOutcome(each, "127.0.0.3:7001")
    for each in (Outcome.CLOSED, Outcome.OPEN, Outcome.SILENT, Outcome.REFUSED)
)


def verdict(
    facts: Facts, point: Point, agent: Agent = AGENT, seen: RequestOutcome = YES
) -> tuple[Verdict, str, str]:
    """Return how the one step about a point was judged."""
    (found,) = (each.judged for each in steps(facts, agent, seen) if each.point is point)
    return found.verdict, found.text, found.do


def test_all_is_as_policy_says() -> None:
    """Allowed and answered, denied and denied: both are a yes, and no step is the first to differ."""
    for facts, seen in ((FACTS, YES), (REFUSED, FORBIDDEN), (UNREACHABLE, NO_LISTENER)):
        found = steps(facts, AGENT, seen)
        assert [each.point for each in found] == list(Point)
        assert {each.judged.verdict for each in found} == {Verdict.OK}
        assert (status(found), first_difference(found)) == (Status.YES, None)


@pytest.mark.parametrize(
    ("stands", "next_step"),
    [
        (SidecarState.NOT_CONNECTED, "`meshwright agent status`"),
        (SidecarState.HELD, "`meshwright proxy show u1.store.shop`"),
        (SidecarState.FAILED, "`meshwright lint`"),
        (SidecarState.BEHIND, "`meshwright proxy show u1.store.shop history`"),
        (SidecarState.REJECTED, "`meshwright proxy retry u1.store.shop`"),
    ],
)
@pytest.mark.parametrize("point", [Point.CALLER, Point.CALLED])
def test_a_sidecar_that_is_not_in_step_differs(stands: SidecarState, next_step: str, point: Point) -> None:
    """On either side, with its words and the next step; what comes after it is judged all the same."""
    ill = replace(STORE, stands=stands, said="is so", rejected=("route r: no such regex: it",))
    side = replace(FACTS, callers=(ill,)), replace(FACTS, servers=(ill,))
    facts = side[point is Point.CALLED]
    found, text, do = verdict(facts, point)
    said = "u1.store.shop (shop/store-1) is so; route r: no such regex: it"
    assert (found, text) == (Verdict.FAILED, said)
    assert next_step in do
    all_steps = steps(facts, AGENT, YES)
    first = first_difference(all_steps)
    assert first is not None
    assert (first.point, len(all_steps), status(all_steps)) == (point, len(Point), Status.NO)


def test_a_sidecar_that_decides_without_a_part_differs() -> None:
    """It has acknowledged its configuration, which is less than policy says."""
    without = "u1.store.shop is served without TrafficTarget shop/buyers, which the proxy rejects: no"
    found, text, do = verdict(replace(FACTS, servers=(replace(STORE, lacks=(without,)),)), Point.CALLED)
    assert (found, text) == (Verdict.FAILED, without)
    assert "proxy retry" in do


def test_of_many_sidecars_those_in_trouble_are_named() -> None:
    """So many of them, the rest counted; those in step stand on one line."""
    ill = [replace(STORE, proxy=f"u{each}.s.n", stands=SidecarState.HELD) for each in range(NAMED + 2)]
    facts = replace(FACTS, servers=(STORE, *ill, replace(STORE, proxy="v.s.n")))
    called = [each.judged for each in steps(facts, AGENT, YES) if each.point is Point.CALLED]
    assert [each.verdict for each in called] == [Verdict.FAILED] * (NAMED + 1) + [Verdict.OK]
    assert called[NAMED].text.startswith("2 more")
    assert called[-1].text == "2 sidecars have acknowledged their configuration: u1.store.shop, v.s.n"


def test_what_decides_is_said_to_be_acknowledged() -> None:
    """Where the push that brought it is remembered, and was accepted."""
    brought = DecisivePush("route", "2026-01-02T03:04:05.000Z", "ack")
    facts = replace(FACTS, servers=(replace(STORE, brought=brought),))
    _, text, _ = verdict(facts, Point.CALLED)
    assert text.endswith(
        "acknowledged its configuration, the last change of TrafficTarget shop/buyers "
        "as route of 2026-01-02T03:04:05.000Z"
    )


def test_nobody_runs_as_the_caller() -> None:
    """There is nothing to look at."""
    found, text, _ = verdict(replace(FACTS, callers=()), Point.CALLER)
    assert (found, text) == (Verdict.UNKNOWN, "the control plane knows no sidecar of shop/buyer")


def test_endpoints() -> None:
    """All withheld or none there differs, whatever the request; some withheld are said; denied has none."""
    held = Endpoint("10.0.0.2:8080", given=False, withheld="its sidecar is late")
    seen = {"all": (held,), "none": (), "some": (THERE, held), "untold": (replace(THERE, given=False),)}
    of = {name: verdict(replace(FACTS, endpoints=each), Point.ENDPOINTS) for name, each in seen.items()}
    assert {name: each[0].value for name, each in of.items()} == {
        "all": "failed",
        "none": "failed",
        "some": "ok",
        "untold": "failed",
    }
    assert of["all"][1] == "10.0.0.2:8080 gets no traffic: its sidecar is late"
    assert of["none"][1] == "shop/store:80 has no endpoints"
    assert "10.0.0.2:8080 gets no traffic" in of["some"][1]
    unreachable = replace(UNREACHABLE, endpoints=seen["untold"])
    assert verdict(unreachable, Point.ENDPOINTS)[0] is Verdict.OK
    by_itself = replace(REFUSED, turned_down=400, endpoints=())
    assert verdict(by_itself, Point.ENDPOINTS)[0] is Verdict.OK


def test_the_agent_s_words_come_first() -> None:
    """It knows best why its proxy has no control plane; while it does not know yet, nobody does."""
    said = {
        "proxy": "u2.buyer.shop",
        "ready": True,
        "control_plane": {"reached": False, "said": "port closed"},
    }
    ill = read_agent(
        "here", said | {"control_plane": {"reached": False, "said": "port closed", "do": "open it"}}
    )
    assert verdict(FACTS, Point.AGENT, ill) == (
        Verdict.FAILED,
        "the agent of u2.buyer.shop at here: port closed",
        "open it",
    )
    early = read_agent("here", said | {"control_plane": {"reached": False, "said": ""}})
    assert verdict(FACTS, Point.AGENT, early)[0] is Verdict.UNKNOWN
    unready = {"ready": False, "not_ready": ["Envoy is gone"], "control_plane": {"reached": True}}
    assert verdict(FACTS, Point.AGENT, read_agent("here", said | unready))[0] is Verdict.FAILED
    assert verdict(FACTS, Point.AGENT, read_agent("here", said | {"control_plane": {"reached": True}}))[
        0
    ] is (Verdict.OK)


@pytest.mark.parametrize(
    ("facts", "seen", "wanted", "said"),
    [
        (FACTS, YES, "ok", "GET /books at 127.0.0.3:7001: 200 in 3 ms"),
        (FACTS, replace(YES, status=503), "ok", "503"),
        (FACTS, replace(YES, status=403), "ok", "403"),
        (FACTS, FORBIDDEN, "failed", "403 in 0 ms (no-rule-fits shop/buyers)"),
        (FACTS, DOWN, "failed", "503 UF in 0 ms (upstream connect error"),
        (FACTS, NOBODY, "failed", "503 UH"),
        (FACTS, CLOSED, "failed", "without an answer"),
        (FACTS, NO_LISTENER, "failed", "not connected"),
        (FACTS, SILENT, "failed", ""),
        (replace(FACTS, protocol=Protocol.TCP), OPEN, "ok", "a connection to 127.0.0.3:7001: stays open"),
        (replace(FACTS, protocol=Protocol.TCP), CLOSED, "failed", "closed"),
        (REFUSED, YES, "failed", "although policy refuses it"),
        (REFUSED, replace(YES, status=403), "failed", "although policy refuses it"),
        (REFUSED, DOWN, "unknown", "does not show whether policy refused it"),
        (REFUSED, CLOSED, "unknown", "does not show whether policy refused it"),
        (REFUSED, SILENT, "unknown", ""),
        (replace(REFUSED, turned_down=400), replace(YES, status=400), "ok", "400"),
        (replace(REFUSED, turned_down=0), CLOSED, "ok", "closed"),
        (replace(REFUSED, protocol=Protocol.TCP), CLOSED, "ok", "closed"),
        (replace(REFUSED, protocol=Protocol.TCP), OPEN, "failed", "although policy refuses it"),
        (UNREACHABLE, NOBODY, "ok", "503 UH"),
        (UNREACHABLE, CLOSED, "ok", "closed"),
        (UNREACHABLE, FORBIDDEN, "ok", "403"),
        (UNREACHABLE, YES, "failed", "by policy no workload is reachable"),
        (UNREACHABLE, SILENT, "unknown", ""),
        (replace(FACTS, policy=Answer.DEPENDS), YES, "unknown", "200"),
        (FACTS, not_tried("no agent"), "unknown", "not tried: no agent"),
    ],
)
def test_the_request_is_held_against_policy(
    facts: Facts, seen: RequestOutcome, wanted: str, said: str
) -> None:
    """A denial where policy denies is as it should be; whatever else differs has a next step."""
    found, text, do = verdict(facts, Point.REQUEST, seen=seen)
    assert found.value == wanted, text
    assert said in text
    assert bool(do) is (found is not Verdict.OK)


def test_an_application_that_is_down_is_named() -> None:
    """By where it should listen: both sidecars have all they need."""
    assert (
        verdict(FACTS, Point.REQUEST, seen=DOWN)[2] == "check that the application listens at 127.0.0.1:8080"
    )


def test_how_the_request_is_made() -> None:
    """As the workload of this agent calls it, or not at all, and why."""
    where = HostPort("127.0.0.3", 7001)
    assert planned(FACTS, AGENT, 2) == Call(where, "GET", "/books", (("host", "store.shop"),), False, 2)
    assert planned(replace(FACTS, protocol=Protocol.TCP), AGENT, 2) == Call(where, "", "", (), False, 2)
    led = planned(replace(FACTS, callers=(replace(BUYER, led=True),)), AGENT, 2)
    assert isinstance(led, Call)
    assert led.led
    grpc = replace(FACTS, protocol=Protocol.GRPC)
    plan = planned(grpc, AGENT, 2)
    assert isinstance(plan, RequestOutcome)
    assert plan.words.startswith("the port speaks gRPC")
    found, _, do = verdict(grpc, Point.REQUEST, seen=plan)
    assert (found, "a gRPC client" in do) == (Verdict.UNKNOWN, True)
    stranger, nowhere = (
        planned(FACTS, replace(AGENT, proxy="x.y.z"), 2),
        planned(replace(FACTS, callers=(replace(BUYER, called_at=()),)), AGENT, 2),
    )
    assert isinstance(stranger, RequestOutcome)
    assert isinstance(nowhere, RequestOutcome)
    assert stranger.words == (
        "the agent at 127.0.0.1:15020 belongs to x.y.z, not to u2.buyer.shop (shop/buyer-1)"
    )
    assert nowhere.words == (
        "shop/buyer-1 has no address for calls to shop/store:80: "
        "neither an upstream nor an address of the Service"
    )


def test_without_a_request_nobody_is_asked() -> None:
    """The rest is enough for a yes."""
    found = steps(FACTS, None, None)
    assert Point.REQUEST not in {each.point for each in found}
    assert status(found) is Status.YES


@pytest.mark.parametrize("found", [{}, {"explained": []}, {"explained": {"from": "a/b"}}])
def test_what_is_no_answer_is_said(found: dict[str, object]) -> None:
    """What is missing is named."""
    with pytest.raises(ValueError, match=r"missing|no object"):
        read_facts(found)


@pytest.mark.parametrize(
    ("status", "words", "named"),
    [
        (503, DOWN.words, "TLS between them failed, so the request did not reach the application"),
        (
            503,
            "upstream connect error or disconnect/reset before headers. reset reason: overflow",
            "a limit of an Upstream",
        ),
        (504, "upstream request timeout", "the timeout of a RoutePolicy or a Retry"),
        (429, "local_rate_limited", "a rate limit of an UpstreamTrafficSetting"),
        (
            431,
            "Request Header Fields Too Large",
            "the headers exceed the setting header_kibibytes (size) or headers_per_message (number)",
        ),
        (
            502,
            "upstream connect error or disconnect/reset before headers. reset reason: protocol error",
            "another protocol",
        ),
    ],
)
def test_what_envoy_answers_by_itself_is_not_blamed_on_the_application(
    status: int, words: str, named: str
) -> None:
    """The remedy names whose answer it is."""
    seen = RequestOutcome(Outcome.ANSWERED, "127.0.0.3:7001", status, words=words)
    found, _, do = verdict(FACTS, Point.REQUEST, seen=seen)
    assert (found, "see that the application" in do) == (Verdict.FAILED, False)
    assert named in do


@pytest.mark.parametrize(
    ("status", "own", "wanted", "said", "remedy"),
    [
        (404, OwnAnswer(Side.CALLER, ("NR",), "route_not_found"), "failed", "404 NR in", "has no route"),
        (403, OwnAnswer(Side.CALLER, (), "upgrade_failed"), "failed", "403 in", "several protocols"),
        (400, OwnAnswer(Side.CALLED, (), "path_normalization_failed"), "failed", "400 in", "escaped slash"),
        (503, OwnAnswer(Side.CALLER, ("UF", "URX")), "failed", "503 UF in", "TLS between them failed"),
        (503, OwnAnswer(Side.CALLED, ("UC",)), "failed", "503 UC in", "ended the connection"),
        (418, OwnAnswer(Side.CALLED, (), "new_in_envoy"), "failed", "418 in", "called sidecar answered"),
        (503, OwnAnswer(Side.CALLER, ("FI",), "fault_filter_abort"), "ok", "503 FI in", ""),
    ],
    ids=lambda each: each.details or ",".join(each.flags) if isinstance(each, OwnAnswer) else "",
)
def test_an_answer_without_words_is_known_as_the_sidecar_s(
    status: int, own: OwnAnswer, wanted: str, said: str, remedy: str
) -> None:
    """Side, flag and details are named with what to do; a RoutePolicy's fault is as policy says."""
    found, text, do = verdict(
        FACTS, Point.REQUEST, seen=RequestOutcome(Outcome.ANSWERED, "here", status, own=own)
    )
    assert (found.value, said in text, own.details in text) == (wanted, True, True)
    assert f"answered by the {own.side.sidecar} itself" in text
    assert (remedy in do, bool(do)) == (True, bool(remedy))


def test_a_sidecar_s_own_answer_has_not_come_through() -> None:
    """Where policy refuses, or nobody is to be reached, an own 404 is no application's."""
    seen = RequestOutcome(
        Outcome.ANSWERED, "here", 404, own=OwnAnswer(Side.CALLER, ("NR",), "route_not_found")
    )
    assert verdict(REFUSED, Point.REQUEST, seen=seen)[0] is Verdict.UNKNOWN
    assert verdict(UNREACHABLE, Point.REQUEST, seen=seen)[0] is Verdict.OK
