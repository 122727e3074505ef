"""What a rejection is about, where the proxy does not say."""

from catalog.policy.values.inbound import InboundPort, OnlyRules
from meshwright.delivery.quarantine.blame import likeliest
from meshwright.mesh.service import Protocol
from tests.unit.delivery.quarantine.guilty import policy, port, rule, snapshot
from xds.protocol.resources.resource import ROUTE, Resource


def _port(number: int, *matches: str) -> InboundPort:
    return port(number, Protocol.HTTP, OnlyRules((rule("a", *matches),)))


def test_what_is_made_with_less_may_be_it_as_well() -> None:
    """Of two resources that are new to a proxy, one is the group's own, of the other a part is left out."""
    own = snapshot(policy(_port(80, "one", "two"), _port(81, "three")))
    less = snapshot(policy(_port(80, "one"), _port(81, "three")))
    sent = [*less.ordered(ROUTE)]
    assert [each.name for each in sent] == ["rds-inbound.80", "rds-inbound.81"]
    assert likeliest(sent, own, lambda _: False, ()) == sent


def test_what_it_had_accepted_is_not_it() -> None:
    """Where anything else is in the response."""
    own = snapshot(policy(_port(80, "one"), _port(81, "two")))
    accepted, new = own.ordered(ROUTE)

    def accepts(resource: Resource) -> bool:
        return resource is accepted

    assert likeliest([accepted, new], own, accepts, ()) == [new]
    assert likeliest([accepted], own, accepts, ()) == [accepted]
