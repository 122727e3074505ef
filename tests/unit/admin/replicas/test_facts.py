"""Tests of the facts that servers send each other: they arrive as they were, and reveal nothing more."""

import json

import pytest

from meshwright.admin.replicas.facts import (
    ProxyFacts,
    RejectedFact,
    ReplicaFacts,
    UnreadableAnswerError,
    decode_facts,
    encode_facts,
    facts_of,
)
from meshwright.admin.replicas.pulse import Pulse, decode_pulse, encode_pulse
from meshwright.admin.replicas.traffic import (
    MergedTraffic,
    decode_traffic,
    encode_traffic,
    traffic_facts,
)
from meshwright.delivery.proxies.held_certificates import HeldCertificate
from meshwright.delivery.proxies.status import ProxyState, ProxyStatus
from meshwright.delivery.quarantine.exclusions import LeftOut
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.kinds import TRAFFIC_TARGET, Kind
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import FromSource, InCluster, InFile
from meshwright.mesh.policies.smi import HTTPMatch
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.traffic.statistics import (
    CalledPort,
    Calls,
    Direction,
    Figures,
    Protocol,
    Report,
)
from meshwright.traffic.statistics import (
    Kind as CallKind,
)
from meshwright.traffic.traffic import HOUR, Caller, Traffic
from tests.unit.admin.conftest import NAME, NOW, FakeReading, stream, type_status
from xds.protocol.resources.resource import ROUTE, ResourceName
from xds.protocol.wire import Rejection
from xds.stream_status import SyncState

KEY = ObjectKey(TRAFFIC_TARGET, Namespace("shop"), "buyers")


def _problem(origin: InFile | InCluster | FromSource, key: ObjectKey | None = KEY) -> Problem:
    return Problem(code="resource-rejected", severity=Severity.ERROR, origin=origin, key=key, expected="x")


def test_facts_arrive_as_they_were() -> None:
    """Each kind of value survives the way, whatever the origin of a problem."""
    facts = ReplicaFacts(
        proxies=(
            ProxyFacts(
                ProxyStatus(NAME, ProxyState.CONNECTED, "ipv4:10.0.0.1:5", NOW, True, ("x", "y")),
                (stream(1, type_status(SyncState.REJECTED, Rejection(3, "bad"))),),
                (RejectedFact(ROUTE, ResourceName("r"), "bad: TrafficTarget shop/buyers"),),
                "a large response",
                "ValueError: x",
                HeldCertificate("1f", NOW),
            ),
        ),
        left_out=(LeftOut(KEY, HTTPMatch("m", "/a", ("GET",)), (NAME,), "bad", certain=True),),
        ejected={"10.0.0.1": (NAME,)},
        problems=(
            _problem(InFile("mesh.yaml", 2, 9)),
            _problem(FromSource("proxies", "detail"), None),
            _problem(InFile("mesh.yaml", 2, 9), ObjectKey(Kind("K", "g.example"), Namespace(""), "x")),
        ),
        failures=(("group", "ValueError", True),),
        last_seen={"1f": NOW},
        answers=7,
    )
    assert decode_facts(encode_facts(facts)) == facts
    assert decode_facts(encode_facts(ReplicaFacts())) == ReplicaFacts()
    pulse = Pulse(("a.b.c",), 7, 1.5, facts.problems)
    assert decode_pulse(encode_pulse(pulse)) == pulse


def test_unknown_fields_of_a_newer_version_are_ignored() -> None:
    """A mesh has servers of two versions during an upgrade."""
    document = json.loads(encode_facts(ReplicaFacts(answers=3)))
    assert decode_facts(json.dumps(document | {"newer": [1]}).encode()) == ReplicaFacts(answers=3)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "answer: Invalid JSON: EOF while parsing a value at line 1 column 0"),
        (
            b'{"answers": "x"}',
            "answers: Input should be a valid integer, unable to parse string as an integer",
        ),
    ],
)
def test_unreadable_answer_names_the_field(content: bytes, sentence: str) -> None:
    """The message never has the value."""
    with pytest.raises(UnreadableAnswerError) as error:
        decode_facts(content)
    assert str(error.value) == sentence


async def test_facts_of_a_server(reading: FakeReading) -> None:
    """Expected proxies are no facts, because every server expects the same ones."""
    other = ProxyName.parse("uuid-2.buyer.shop")
    reading.the_proxies = (
        *reading.the_proxies,
        ProxyStatus(other, ProxyState.EXPECTED, "", NOW, True),
    )
    reading.the_held = {NAME: HeldCertificate("1f", NOW)}
    reading.the_rejected = ((ROUTE, ResourceName("r")),)
    reading.the_refusals = {(NAME, ROUTE, ResourceName("r")): "bad"}
    reading.the_unreceived = "a large response"
    own = (_problem(FromSource("proxies")),)
    (kept,) = (stream_status for stream_status in reading.streams())
    facts = await facts_of(reading, own)
    assert facts == ReplicaFacts(
        proxies=(
            ProxyFacts(
                reading.the_proxies[0],
                facts.proxies[0].streams,
                (RejectedFact(ROUTE, ResourceName("r"), "bad"),),
                "a large response",
                "",
                HeldCertificate("1f", NOW),
            ),
        ),
        problems=own,
        failures=(("shop/store|store|00", "ValueError: x", True),),
    )
    assert [status.names for of in facts.proxies[0].streams for status in of.types] == [()]
    assert kept.number == facts.proxies[0].streams[0].number
    assert b"SECRET" not in encode_facts(facts)


def _traffic(requests: int, proxy: str) -> Traffic:
    called = CalledPort("shop", "store", 80)
    figures = Figures(by_class=(0, requests, 0, 0, 1), by_time=(requests, 1, *(0,) * 9))
    calls = Calls(CallKind.EDGE, Direction.OUTBOUND, Protocol.HTTP, called)
    traffic = Traffic()
    traffic.take(ProxyName.parse(f"{proxy}.buyer.shop"), Report("run", 1, 10.0, ((calls, figures),)), 1000.0)
    return traffic


def test_figures_are_sums_over_servers() -> None:
    """Each report counts once, at the server that took it; response times are added by class."""
    other = decode_traffic(encode_traffic(traffic_facts(_traffic(5, "two"), 60.0, 1000.0)()))
    merged = MergedTraffic(_traffic(2, "one"), (other,))
    called = Calls(CallKind.EDGE, Direction.OUTBOUND, Protocol.HTTP, CalledPort("shop", "store", 80))
    expected = Figures(by_class=(0, 7, 0, 0, 2), by_time=(7, 2, *(0,) * 9))
    for seconds in (60.0, HOUR):
        assert merged.by_source(seconds, 1000.0).summed() == {(Caller("shop", "buyer"), called): expected}
    assert {str(name) for name, _ in merged.by_proxy(60.0, 1000.0).summed()} == {
        "one.buyer.shop",
        "two.buyer.shop",
    }
    assert (merged.reporting(1000.0), merged.every_seconds) == (2, 10)


def test_statistics_with_other_numbers_are_unreadable() -> None:
    """A newer version may count something else, which must not be added to our numbers."""
    document = json.loads(encode_traffic(traffic_facts(_traffic(5, "two"), 60.0, 1000.0)()))
    document["window"]["sources"][0]["numbers"].append(1)
    with pytest.raises(UnreadableAnswerError, match="a row has 24 numbers in this version"):
        decode_traffic(json.dumps(document).encode())
