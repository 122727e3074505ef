"""Tests of verdicts that other servers have found: no sockets, no clock."""

from dataclasses import dataclass, field

import pytest

from catalog.policy.units import unit_id
from catalog.policy.values.inbound import OnlyRules
from catalog.policy.values.proxy import ProxyPolicy
from meshwright.delivery.quarantine.quarantine import Quarantine
from meshwright.delivery.quarantine.record import FIRST_PAUSE_SECONDS
from meshwright.delivery.quarantine.records import BEHIND_SECONDS
from meshwright.delivery.quarantine.verdicts import Verdict
from meshwright.mesh.service import Protocol
from meshwright.sidecars.envoy.empty_resources import empty
from tests.unit.delivery.quarantine.refusing_proxy import (
    EPOCH,
    NODE,
    RefusingProxyPlane,
    match,
    policy,
    port,
    rule,
)
from xds.protocol.resources.resource import ROUTE, ResourceName

POISON = match("poison")
UNIT = unit_id(POISON)
VERDICT = Verdict(NODE, UNIT, ROUTE, ResourceName("r"), "match poison", "no", 3, EPOCH)


def _policy(*matches: str) -> ProxyPolicy:
    """Return a policy that admits one caller to these paths."""
    return policy(port(80, Protocol.HTTP, OnlyRules((rule("buyer", *matches),))))


BOTH, GOOD = _policy("fine", "poison"), _policy("fine")


@dataclass
class Plane(RefusingProxyPlane):
    """One of several servers; the proxy is connected to it, or to another one."""

    is_here: bool = field(default=True)

    def __post_init__(self) -> None:
        """Start with nothing published, among several servers."""
        super().__post_init__()
        self.quarantine = Quarantine(
            empty,
            verdicts=self.verdicts,
            now=lambda: self.now,
            jitter=lambda: 0.0,
            connected=lambda _: self.is_here,
        )

    def hear(self, *found: Verdict, ended: bool = False) -> None:
        """Hear of verdicts, and of the end of the one on the poison."""
        self._serve(self.quarantine.heard(NODE, found, frozenset({UNIT} if ended else ())))

    def known(self) -> list[str]:
        """Return the units with a verdict, as they are written for other servers."""
        return [verdict.unit for verdict in self.quarantine.findings.verdicts()]


def _settled(plane: Plane) -> Plane:
    for _ in plane.settle():
        pass
    return plane


@pytest.fixture
def plane() -> Plane:
    """A server with a proxy that refuses the poison."""
    return Plane(guilty=frozenset({POISON}))


def test_proxy_that_comes_is_never_sent_what_it_rejects(plane: Plane) -> None:
    """The verdict was heard before the proxy was connected."""
    plane.hear(VERDICT)
    plane.publish(BOTH)
    assert _settled(plane).nacks == 0
    assert plane.out() == {UNIT}


def test_connected_proxy_loses_what_it_rejects_at_once(plane: Plane) -> None:
    """Another Envoy with the same identity has rejected it at another server."""
    plane.guilty = frozenset()
    plane.publish(BOTH)
    _settled(plane)
    assert plane.out() == frozenset()
    plane.hear(VERDICT)
    assert plane.out() == {UNIT}
    assert plane.known() == [UNIT]
    plane.hear(ended=True)
    assert (plane.out(), plane.known()) == (frozenset(), [])


def test_search_ends_with_the_verdict_of_another_server(plane: Plane) -> None:
    """The proxy has moved before the verdict was written, so both servers search."""
    plane.publish(BOTH)
    next(plane.settle())
    before = plane.nacks
    plane.hear(VERDICT)
    assert UNIT in plane.out()
    assert _settled(plane).nacks == before
    assert plane.out() == {UNIT}
    assert plane.known() == [UNIT]


def test_verdict_on_policy_that_is_not_read_yet_waits(plane: Plane) -> None:
    """The other server has read the change of policy a moment earlier."""
    plane.publish(GOOD)
    _settled(plane)
    plane.hear(VERDICT)
    assert (plane.out(), plane.known()) == (frozenset(), [UNIT])
    plane.publish(BOTH)
    assert _settled(plane).nacks == 0
    assert plane.out() == {UNIT}


def test_verdict_on_policy_that_does_not_come_ends(plane: Plane) -> None:
    """The policy was changed back before this server read it."""
    plane.publish(GOOD)
    _settled(plane)
    plane.hear(VERDICT)
    plane.now += BEHIND_SECONDS
    plane.publish(GOOD)
    assert plane.known() == []


def test_verdict_ends_with_the_policy(plane: Plane) -> None:
    """As with one server: the same policy is offered again when it comes back."""
    plane.hear(VERDICT)
    plane.publish(BOTH)
    _settled(plane)
    plane.publish(GOOD)
    assert (plane.out(), plane.known()) == (frozenset(), [])
    plane.publish(BOTH)
    assert _settled(plane).nacks > 0


def test_proxy_at_another_server_is_offered_nothing_here(plane: Plane) -> None:
    """Without a stream there is no answer, and none must be taken for a good one."""
    plane.hear(VERDICT)
    plane.publish(BOTH)
    _settled(plane)
    plane.is_here = False
    plane.later(100 * FIRST_PAUSE_SECONDS)
    assert plane.out() == {UNIT}
    assert plane.quarantine.due() is None
    assert not plane.quarantine.findings.counts(), "its server counts it"
    plane.is_here = True
    assert plane.quarantine.due() is not None


def test_offer_of_before_is_forgotten_when_the_proxy_comes_back(plane: Plane) -> None:
    """The proxy left for another server while the poison was offered again here."""
    plane.hear(VERDICT)
    plane.publish(BOTH)
    _settled(plane)
    plane.later(100 * FIRST_PAUSE_SECONDS)
    assert (plane.out(), plane.known()) == (frozenset(), [UNIT]), "offered, and not answered"
    plane.reconnect()
    assert _settled(plane).nacks == 0


def test_verdict_outlives_the_workload(plane: Plane) -> None:
    """The leader removes it with the proxy's record, so a source that is away for a moment does no harm."""
    plane.hear(VERDICT)
    plane.publish(BOTH)
    _settled(plane)
    plane.leave(known=False)
    plane.quarantine.forget([NODE])
    plane.publish(BOTH)
    assert _settled(plane).nacks == 0
    assert plane.out() == {UNIT}
