"""Callers from outside the mesh in Envoy's words, and in no others' policies."""

from dataclasses import replace
from typing import Any

import pytest

from catalog.policy.exclusions import narrowed, without
from catalog.policy.units import units
from catalog.policy.values.inbound import Access, AccessRule, EveryoneInTheMesh, InboundPort, OnlyRules
from meshwright.admin.pages.proxies import description as describe
from meshwright.mesh.kinds import Kind
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.callers import AuthenticatedName, IpRange
from meshwright.mesh.policies.smi import HTTPMatch
from meshwright.mesh.service import Protocol
from meshwright.sidecars.contract.driver import Capability
from meshwright.sidecars.document.driver import DocumentDriver
from meshwright.sidecars.envoy.rules.rbac import policy_name
from meshwright.sidecars.layout import OWN_ANSWER_HEADER
from meshwright.sidecars.requirements import Requirement, requirements
from tests.meshes.resources import resources
from tests.unit.sidecars.envoy.test_translate import BUYER, BY, DEFAULT, decoded, inbound, only, policy
from xds.protocol.resources.resource import LISTENER, ROUTE, Resource

GATEWAY = ObjectKey(Kind("Gateway", "example.org"), DEFAULT, BY.name)
NETWORK, NAME = IpRange("10.0.0.0/8"), AuthenticatedName("gateway.example.org")
BOOKS, TOYS = HTTPMatch("books", "/books"), HTTPMatch("toys", "/toys")
FROM_OUTSIDE = AccessRule(GATEWAY, (NETWORK, NAME), (BOOKS, TOYS))
FROM_INSIDE = AccessRule(BY, (BUYER,))
RULES = (FROM_INSIDE, FROM_OUTSIDE)


def chains(access: Access, protocol: Protocol = Protocol.HTTP) -> dict[str, dict[str, Any]]:
    """Return the match of each filter chain of a port, by name."""
    listener = only(policy(inbound=(inbound(access, protocol),)), LISTENER)
    return {each["name"]: each["filterChainMatch"] for each in listener["filterChains"]}


def test_two_objects_of_one_name_are_two_policies() -> None:
    """A TrafficTarget's has its name alone, as ever; any other's says the kind, too."""
    found = only(policy(inbound=(inbound(OnlyRules(RULES)),)), ROUTE)
    rules = found["typedPerFilterConfig"]["envoy.filters.http.rbac"]["rbac"]["rules"]["policies"]
    assert set(rules) == {"default/target", "Gateway default/target"}
    assert [policy_name(each) for each in (BY, GATEWAY)] == ["default/target", "Gateway default/target"]


@pytest.mark.parametrize("access", [OnlyRules(RULES), EveryoneInTheMesh(RULES[1:])])
@pytest.mark.parametrize("protocol", [Protocol.HTTP, Protocol.TCP])
def test_a_network_has_a_chain_of_its_own_without_tls(access: Access, protocol: Protocol) -> None:
    """For its addresses alone; a port without networks has none."""
    plain = f"inbound_default/shop_8080_{protocol}_plain"
    assert chains(access, protocol)[plain] == {
        "destinationPort": 8080,
        "transportProtocol": "raw_buffer",
        "sourcePrefixRanges": [{"addressPrefix": "10.0.0.0", "prefixLen": 8}],
    }
    inside = OnlyRules(RULES[:1]) if isinstance(access, OnlyRules) else EveryoneInTheMesh()
    assert plain not in chains(inside, protocol)


@pytest.mark.parametrize("by_name", [False, True], ids=["addresses", "certificates"])
def test_callers_from_outside_are_told_no_more_than_ever(by_name: bool) -> None:
    """An own answer to a diagnosis says flags and details where all callers are identities of the mesh.

    Callers in plain text are not, nor is a gateway that shows a certificate for a name.
    """
    outsiders = replace(FROM_OUTSIDE, callers=(NETWORK, NAME) if by_name else (NETWORK,))
    listener = only(policy(inbound=(inbound(OnlyRules((FROM_INSIDE, outsiders))),)), LISTENER)
    told = {
        each["name"]: [
            header["header"]
            for mapper in each["filters"][-1]["typedConfig"]["localReplyConfig"]["mappers"]
            for header in mapper["headersToAdd"]
            if header["header"]["key"] == OWN_ANSWER_HEADER
        ]
        for each in listener["filterChains"]
    }
    flags, details = "called %RESPONSE_FLAGS%", "called %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%"
    wanted = [{"key": OWN_ANSWER_HEADER, "value": each} for each in (flags, details)]
    assert told == {
        "inbound_default/shop_8080_http": [] if by_name else wanted,
        "inbound_default/shop_8080_http_plain": [],
    }


def test_a_port_for_outsiders_alone_is_open() -> None:
    """And no caller has a chain of its own there: that is for identities."""
    found = chains(OnlyRules((replace(FROM_OUTSIDE, matches=None),)), Protocol.TCP)
    assert list(found) == ["inbound_default/shop_8080_tcp", "inbound_default/shop_8080_tcp_plain"]


def _listener(rules: tuple[AccessRule, ...]) -> Resource:
    made = resources(policy(inbound=(inbound(OnlyRules(rules)),)))
    return next(each for each in made if each.type_url == LISTENER)


def test_a_listener_does_not_change_with_what_callers_may_ask_for() -> None:
    """Nor with callers of the mesh: a change of rules drains nobody."""
    other = (replace(FROM_OUTSIDE, matches=(BOOKS,)),)
    assert _listener(other).body == _listener(RULES).body
    assert decoded(_listener(other)) != decoded(_listener(RULES[:1]))


def test_the_units_of_a_rule_are_the_same_in_every_part() -> None:
    """What is left out of a route configuration is left out of the listener, which has the rule as well."""
    port = inbound(EveryoneInTheMesh((FROM_OUTSIDE, replace(FROM_INSIDE, by=BY))))
    assert set(units(port)) == {EveryoneInTheMesh(), BOOKS, TOYS, FROM_INSIDE}
    assert without(port, frozenset({EveryoneInTheMesh(), BOOKS})).access == OnlyRules(
        (replace(FROM_OUTSIDE, matches=(TOYS,)), FROM_INSIDE)
    )
    assert without(port, frozenset({BOOKS, TOYS, FROM_INSIDE})).access == EveryoneInTheMesh()


def _both(before: Access, now: Access) -> Access:
    found: InboundPort = narrowed(inbound(before), inbound(now))
    return found.access


def test_what_two_policies_admit_both() -> None:
    """Permissive mode admits the mesh at will, and from outside nobody but by the same object's rule."""
    everyone, fewer = EveryoneInTheMesh((FROM_OUTSIDE,)), replace(FROM_OUTSIDE, callers=(NAME,))
    assert _both(everyone, EveryoneInTheMesh((fewer,))) == EveryoneInTheMesh((fewer,))
    assert _both(everyone, EveryoneInTheMesh()) == EveryoneInTheMesh()
    assert _both(OnlyRules(RULES), EveryoneInTheMesh((fewer,))) == OnlyRules((FROM_INSIDE, fewer))
    assert _both(EveryoneInTheMesh(), OnlyRules(RULES)) == OnlyRules((FROM_INSIDE,))
    assert _both(OnlyRules(RULES), OnlyRules((fewer,))) == OnlyRules((fewer,))


def test_it_takes_a_capability_and_is_left_out_without() -> None:
    """With the object that needs it; a driver that cannot do it admits those that it can."""
    rules = (FROM_INSIDE, replace(FROM_OUTSIDE, matches=None))
    wanted = policy(inbound=(inbound(OnlyRules(rules)),))
    assert Requirement(Capability.CALLERS_FROM_OUTSIDE, GATEWAY) in requirements(wanted)
    assert Capability.CALLERS_FROM_OUTSIDE not in DocumentDriver().capabilities
    (made,) = (each for piece in DocumentDriver().pieces(wanted) for each in piece.resources())
    assert b'"admitted":["spiffe://cluster.local/ns/default/sa/buyer"]' in made.body


def test_it_is_told_in_words() -> None:
    """With the object's kind; in permissive mode beside it."""
    told = [each["text"] for each in describe.routes(policy(inbound=(inbound(EveryoneInTheMesh(RULES)),)))]
    assert told == [
        "inbound 8080: every workload with a certificate of the mesh may send everything",
        "inbound 8080: default/buyer may send everything (TrafficTarget default/target)",
        "inbound 8080: 10.0.0.0/8, gateway.example.org may send * /books, * /toys (Gateway default/target)",
    ]
    targets = [each["target"] for each in describe.routes(policy(inbound=(inbound(OnlyRules(RULES)),)))]
    assert targets == ["default/target", "Gateway default/target"]
