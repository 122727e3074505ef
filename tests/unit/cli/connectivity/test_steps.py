"""Tests of the verdict of each step of a connectivity check, from facts alone."""

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
THERE = Endpoint("10.0.0.1:8080", is_known_to_caller=True, application="127.0.0.1:8080")
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
    RequestOutcome(item, "127.0.0.3:7001")
    for item in (Outcome.CLOSED, Outcome.OPEN, Outcome.SILENT, Outcome.REFUSED)
)


def verdict(
    facts: Facts, point: Point, agent: Agent = AGENT, seen: RequestOutcome = YES
) -> tuple[Verdict, str, str]:
    """Return the verdict, text and next step of the only step about a point."""
    (step_result,) = (step.judged for step in steps(facts, agent, seen) if step.point is point)
    return step_result.verdict, step_result.text, step_result.do


def test_all_steps_are_ok_if_the_result_is_as_policy_says() -> None:
    """An allowed and answered request and a denied one both have the status "yes"."""
    for facts, seen in ((FACTS, YES), (REFUSED, FORBIDDEN), (UNREACHABLE, NO_LISTENER)):
        result = steps(facts, AGENT, seen)
        assert [step.point for step in result] == list(Point)
        assert {step.judged.verdict for step in result} == {Verdict.OK}
        assert (status(result), first_difference(result)) == (Status.YES, None)


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
def test_sidecar_that_is_not_in_sync_fails_its_step(
    stands: SidecarState, next_step: str, point: Point
) -> None:
    """The step has the sidecar's reason and the next step; the steps after it are judged too."""
    ill = replace(STORE, state=stands, cause="is so", rejected=("route r: no such regex: it",))
    side = replace(FACTS, callers=(ill,)), replace(FACTS, servers=(ill,))
    facts = side[point is Point.CALLED]
    result, text, do = verdict(facts, point)
    message = "u1.store.shop (shop/store-1) is so; route r: no such regex: it"
    assert (result, text) == (Verdict.FAILED, message)
    assert next_step in do
    all_steps = steps(facts, AGENT, YES)
    first = first_difference(all_steps)
    assert first is not None
    assert (first.point, len(all_steps), status(all_steps)) == (point, len(Point), Status.NO)


def test_sidecar_without_a_part_of_policy_fails_its_step() -> None:
    """The sidecar has acknowledged its configuration, which lacks a part of the policy."""
    without = "u1.store.shop is served without TrafficTarget shop/buyers, which the proxy rejects: no"
    result, text, do = verdict(replace(FACTS, servers=(replace(STORE, lacks=(without,)),)), Point.CALLED)
    assert (result, text) == (Verdict.FAILED, without)
    assert "proxy retry" in do


def test_failing_sidecars_are_named_up_to_a_limit() -> None:
    """At most `NAMED` failing sidecars are named and the others counted; those in sync share one line."""
    ill = [replace(STORE, proxy=f"u{item}.s.n", state=SidecarState.HELD) for item in range(NAMED + 2)]
    facts = replace(FACTS, servers=(STORE, *ill, replace(STORE, proxy="v.s.n")))
    called = [step.judged for step in steps(facts, AGENT, YES) if step.point is Point.CALLED]
    assert [step_result.verdict for step_result in called] == [Verdict.FAILED] * (NAMED + 1) + [Verdict.OK]
    assert called[NAMED].text.startswith("2 more")
    assert called[-1].text == "2 sidecars have acknowledged their configuration: u1.store.shop, v.s.n"


def test_acknowledged_push_of_the_deciding_object_is_shown() -> None:
    """The push is shown if the control plane remembers it and the sidecar accepted it."""
    brought = DecisivePush("route", "2026-01-02T03:04:05.000Z", "ack")
    facts = replace(FACTS, servers=(replace(STORE, brought=brought),))
    _, text, _ = verdict(facts, Point.CALLED)
    assert text.endswith(
        "acknowledged its configuration, the last change of TrafficTarget shop/buyers "
        "as route of 2026-01-02T03:04:05.000Z"
    )


def test_caller_without_a_sidecar_is_unknown() -> None:
    """Without a sidecar of the caller the step cannot be judged."""
    result, text, _ = verdict(replace(FACTS, callers=()), Point.CALLER)
    assert (result, text) == (Verdict.UNKNOWN, "the control plane does not know a sidecar of shop/buyer")


def test_withheld_or_missing_endpoints_fail_unless_policy_denies() -> None:
    """Some withheld endpoints are only mentioned.

    With none left the step fails, unless policy denies the call.
    """
    held = Endpoint("10.0.0.2:8080", is_known_to_caller=False, withheld="its sidecar is late")
    seen = {
        "all": (held,),
        "none": (),
        "some": (THERE, held),
        "untold": (replace(THERE, is_known_to_caller=False),),
    }
    of = {
        name: verdict(replace(FACTS, endpoints=endpoints), Point.ENDPOINTS)
        for name, endpoints in seen.items()
    }
    assert {name: item[0].value for name, item in of.items()} == {
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


def test_agent_s_reason_is_shown_first() -> None:
    """The agent knows best why its proxy has no control plane. Without a reason yet the step is unknown."""
    answer = {
        "proxy": "u2.buyer.shop",
        "ready": True,
        "control_plane": {"reached": False, "said": "port closed"},
    }
    ill = read_agent(
        "here", answer | {"control_plane": {"reached": False, "said": "port closed", "do": "open it"}}
    )
    assert verdict(FACTS, Point.AGENT, ill) == (
        Verdict.FAILED,
        "the agent of u2.buyer.shop at here: port closed",
        "open it",
    )
    early = read_agent("here", answer | {"control_plane": {"reached": False, "said": ""}})
    assert verdict(FACTS, Point.AGENT, early)[0] is Verdict.UNKNOWN
    unready = {"ready": False, "not_ready": ["Envoy is gone"], "control_plane": {"reached": True}}
    assert verdict(FACTS, Point.AGENT, read_agent("here", answer | unready))[0] is Verdict.FAILED
    assert verdict(FACTS, Point.AGENT, read_agent("here", answer | {"control_plane": {"reached": True}}))[
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
        (UNREACHABLE, YES, "failed", "although policy denies all workloads"),
        (UNREACHABLE, SILENT, "unknown", ""),
        (replace(FACTS, policy=Answer.DEPENDS), YES, "unknown", "200"),
        (FACTS, not_tried("no agent"), "unknown", "not tried: no agent"),
    ],
)
def test_request_is_compared_with_policy(facts: Facts, seen: RequestOutcome, wanted: str, said: str) -> None:
    """A denial by policy is as expected; any other difference has a next step."""
    result, text, do = verdict(facts, Point.REQUEST, seen=seen)
    assert result.value == wanted, text
    assert said in text
    assert bool(do) is (result is not Verdict.OK)


def test_unreachable_application_is_named_by_its_address() -> None:
    """The next step is to check the application's address, because both sidecars have their configuration."""
    assert (
        verdict(FACTS, Point.REQUEST, seen=DOWN)[2] == "check that the application listens at 127.0.0.1:8080"
    )


def test_request_is_planned_like_the_workload_s_own_calls() -> None:
    """The request uses the workload's address and redirection.

    A gRPC port, another proxy's agent or a missing address gives a reason.
    """
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
    result, _, do = verdict(grpc, Point.REQUEST, seen=plan)
    assert (result, "a gRPC client" in do) == (Verdict.UNKNOWN, True)
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


def test_steps_without_a_request_can_be_a_yes() -> None:
    """Without a request its step is missing, and the other steps decide."""
    result = steps(FACTS, None, None)
    assert Point.REQUEST not in {step.point for step in result}
    assert status(result) is Status.YES


@pytest.mark.parametrize("found", [{}, {"explained": []}, {"explained": {"from": "a/b"}}])
def test_incomplete_answer_raises_an_error_with_the_missing_field(found: dict[str, object]) -> None:
    """The error names the missing field or object."""
    with pytest.raises(ValueError, match=r"missing|not an object"):
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
def test_errors_of_envoy_are_not_blamed_on_the_application(status: int, words: str, named: str) -> None:
    """The next step names the cause of Envoy's own answer."""
    seen = RequestOutcome(Outcome.ANSWERED, "127.0.0.3:7001", status, words=words)
    result, _, do = verdict(FACTS, Point.REQUEST, seen=seen)
    assert (result, "see that the application" in do) == (Verdict.FAILED, False)
    assert named in do


@pytest.mark.parametrize(
    ("status", "own", "wanted", "said", "remedy"),
    [
        (404, OwnAnswer(Side.CALLER, ("NR",), "route_not_found"), "failed", "404 NR in", "lacks a route"),
        (403, OwnAnswer(Side.CALLER, (), "upgrade_failed"), "failed", "403 in", "several protocols"),
        (400, OwnAnswer(Side.CALLED, (), "path_normalization_failed"), "failed", "400 in", "escaped slash"),
        (503, OwnAnswer(Side.CALLER, ("UF", "URX")), "failed", "503 UF in", "TLS between them failed"),
        (503, OwnAnswer(Side.CALLED, ("UC",)), "failed", "503 UC in", "ended the connection"),
        (418, OwnAnswer(Side.CALLED, (), "new_in_envoy"), "failed", "418 in", "called sidecar answered"),
        (503, OwnAnswer(Side.CALLER, ("FI",), "fault_filter_abort"), "ok", "503 FI in", ""),
    ],
    ids=lambda item: item.details or ",".join(item.flags) if isinstance(item, OwnAnswer) else "",
)
def test_own_answer_of_a_sidecar_is_named_with_its_side(
    status: int, own: OwnAnswer, wanted: str, said: str, remedy: str
) -> None:
    """The side, flags and details are shown with a next step.

    An injected fault of a RoutePolicy is as policy says.
    """
    result, text, do = verdict(
        FACTS, Point.REQUEST, seen=RequestOutcome(Outcome.ANSWERED, "here", status, own=own)
    )
    assert (result.value, said in text, own.details in text) == (wanted, True, True)
    assert f"answered by the {own.side.sidecar} itself" in text
    assert (remedy in do, bool(do)) == (True, bool(remedy))


def test_own_answer_of_a_sidecar_does_not_count_as_reached() -> None:
    """A sidecar's own 404 does not show that an application was reached.

    The case matters if policy refuses the call or no workload is reachable.
    """
    seen = RequestOutcome(
        Outcome.ANSWERED, "here", 404, own=OwnAnswer(Side.CALLER, ("NR",), "route_not_found")
    )
    assert verdict(REFUSED, Point.REQUEST, seen=seen)[0] is Verdict.UNKNOWN
    assert verdict(UNREACHABLE, Point.REQUEST, seen=seen)[0] is Verdict.OK
