"""Tests of blame: the resources that a rejection without names is likely to be about."""

from catalog.policy.values.inbound import InboundPort, OnlyRules
from meshwright.delivery.quarantine.blame import likeliest
from meshwright.mesh.service import Protocol
from tests.unit.delivery.quarantine.refusing_proxy import policy, port, rule, snapshot
from xds.protocol.resources.resource import ROUTE, Resource


def _port(number: int, *matches: str) -> InboundPort:
    return port(number, Protocol.HTTP, OnlyRules((rule("a", *matches),)))


def test_resource_without_a_unit_is_suspected_like_an_own_one() -> None:
    """Both are new to the proxy, although one of them is the group's own resource."""
    own = snapshot(policy(_port(80, "one", "two"), _port(81, "three")))
    less = snapshot(policy(_port(80, "one"), _port(81, "three")))
    sent = [*less.ordered(ROUTE)]
    assert [resource.name for resource in sent] == ["rds-inbound.80", "rds-inbound.81"]
    assert likeliest(sent, own, lambda _: False, ()) == sent


def test_accepted_resource_is_suspected_only_if_it_is_alone() -> None:
    """A resource that the proxy accepted before is not suspected beside a new one."""
    own = snapshot(policy(_port(80, "one"), _port(81, "two")))
    accepted, new = own.ordered(ROUTE)

    def accepts(resource: Resource) -> bool:
        return resource is accepted

    assert likeliest([accepted, new], own, accepts, ()) == [new]
    assert likeliest([accepted], own, accepts, ()) == [accepted]
