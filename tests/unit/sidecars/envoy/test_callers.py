"""Tests of callers from outside the mesh in Envoy's configuration and in the document."""

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

PORTAL = ObjectKey(Kind("Portal", "example.org"), DEFAULT, BY.name)
NETWORK, NAME = IpRange("10.0.0.0/8"), AuthenticatedName("gateway.example.org")
BOOKS, TOYS = HTTPMatch("books", "/books"), HTTPMatch("toys", "/toys")
FROM_OUTSIDE = AccessRule(PORTAL, (NETWORK, NAME), (BOOKS, TOYS))
FROM_INSIDE = AccessRule(BY, (BUYER,))
RULES = (FROM_INSIDE, FROM_OUTSIDE)


def chains(access: Access, protocol: Protocol = Protocol.HTTP) -> dict[str, dict[str, Any]]:
    """Return the match of each filter chain of a port, by name."""
    listener = only(policy(inbound=(inbound(access, protocol),)), LISTENER)
    return {
        filter_chain["name"]: filter_chain["filterChainMatch"] for filter_chain in listener["filterChains"]
    }


def test_two_objects_with_one_name_are_two_rbac_policies() -> None:
    """A TrafficTarget's policy has the object's name alone. Those of other objects have their kind, too."""
    result = only(policy(inbound=(inbound(OnlyRules(RULES)),)), ROUTE)
    rules = result["typedPerFilterConfig"]["envoy.filters.http.rbac"]["rbac"]["rules"]["policies"]
    assert set(rules) == {"default/target", "Portal default/target"}
    assert [policy_name(key) for key in (BY, PORTAL)] == ["default/target", "Portal default/target"]


@pytest.mark.parametrize("access", [OnlyRules(RULES), EveryoneInTheMesh(RULES[1:])])
@pytest.mark.parametrize("protocol", [Protocol.HTTP, Protocol.TCP])
def test_network_has_its_own_chain_without_tls(access: Access, protocol: Protocol) -> None:
    """The chain accepts only addresses of the network, and a port without networks has no such chain."""
    plain = f"inbound_default/shop_8080_{protocol}_plain"
    assert chains(access, protocol)[plain] == {
        "destinationPort": 8080,
        "transportProtocol": "raw_buffer",
        "sourcePrefixRanges": [{"addressPrefix": "10.0.0.0", "prefixLen": 8}],
    }
    inside = OnlyRules(RULES[:1]) if isinstance(access, OnlyRules) else EveryoneInTheMesh()
    assert plain not in chains(inside, protocol)


@pytest.mark.parametrize("by_name", [False, True], ids=["addresses", "certificates"])
def test_outside_callers_get_no_details_of_the_sidecars_own_answers(by_name: bool) -> None:
    """Details of an answer by the sidecar are sent only if all callers of a chain are identities of the mesh.

    Plain-text callers and gateways with a named certificate are not.
    """
    outsiders = replace(FROM_OUTSIDE, callers=(NETWORK, NAME) if by_name else (NETWORK,))
    listener = only(policy(inbound=(inbound(OnlyRules((FROM_INSIDE, outsiders))),)), LISTENER)
    fields = {
        filter_chain["name"]: [
            header["header"]
            for mapper in filter_chain["filters"][-1]["typedConfig"]["localReplyConfig"]["mappers"]
            for header in mapper["headersToAdd"]
            if header["header"]["key"] == OWN_ANSWER_HEADER
        ]
        for filter_chain in listener["filterChains"]
    }
    flags, details = "called %RESPONSE_FLAGS%", "called %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%"
    wanted = [{"key": OWN_ANSWER_HEADER, "value": item} for item in (flags, details)]
    assert fields == {
        "inbound_default/shop_8080_http": [] if by_name else wanted,
        "inbound_default/shop_8080_http_plain": [],
    }


def test_tcp_port_for_outside_callers_only_is_open() -> None:
    """Outside callers share chains, because only an identity has a chain of its own."""
    result = chains(OnlyRules((replace(FROM_OUTSIDE, matches=None),)), Protocol.TCP)
    assert list(result) == ["inbound_default/shop_8080_tcp", "inbound_default/shop_8080_tcp_plain"]


def _listener(rules: tuple[AccessRule, ...]) -> Resource:
    made = resources(policy(inbound=(inbound(OnlyRules(rules)),)))
    return next(resource for resource in made if resource.type_url == LISTENER)


def test_listener_is_independent_of_matches_and_callers_of_the_mesh() -> None:
    """A change of these rules drains no connections. Outside callers change the listener."""
    other = (replace(FROM_OUTSIDE, matches=(BOOKS,)),)
    assert _listener(other).body == _listener(RULES).body
    assert decoded(_listener(other)) != decoded(_listener(RULES[:1]))


def test_unit_left_out_of_a_port_is_left_out_of_all_its_rules() -> None:
    """Listener and route configuration are both made from the port, so both lack the unit."""
    port = inbound(EveryoneInTheMesh((FROM_OUTSIDE, replace(FROM_INSIDE, by=BY))))
    assert set(units(port)) == {EveryoneInTheMesh(), BOOKS, TOYS, FROM_INSIDE}
    assert without(port, frozenset({EveryoneInTheMesh(), BOOKS})).access == OnlyRules(
        (replace(FROM_OUTSIDE, matches=(TOYS,)), FROM_INSIDE)
    )
    assert without(port, frozenset({BOOKS, TOYS, FROM_INSIDE})).access == EveryoneInTheMesh()


def _both(before: Access, now: Access) -> Access:
    port: InboundPort = narrowed(inbound(before), inbound(now))
    return port.access


def test_narrowed_access_admits_what_both_policies_admit() -> None:
    """Permissive mode admits every identity.

    An outside caller needs rules of the same object in both policies.
    """
    everyone, fewer = EveryoneInTheMesh((FROM_OUTSIDE,)), replace(FROM_OUTSIDE, callers=(NAME,))
    assert _both(everyone, EveryoneInTheMesh((fewer,))) == EveryoneInTheMesh((fewer,))
    assert _both(everyone, EveryoneInTheMesh()) == EveryoneInTheMesh()
    assert _both(OnlyRules(RULES), EveryoneInTheMesh((fewer,))) == OnlyRules((FROM_INSIDE, fewer))
    assert _both(EveryoneInTheMesh(), OnlyRules(RULES)) == OnlyRules((FROM_INSIDE,))
    assert _both(OnlyRules(RULES), OnlyRules((fewer,))) == OnlyRules((fewer,))


def test_outside_callers_need_a_driver_with_the_capability() -> None:
    """The requirement names the object.

    The document driver lacks the capability and admits only identities.
    """
    rules = (FROM_INSIDE, replace(FROM_OUTSIDE, matches=None))
    wanted = policy(inbound=(inbound(OnlyRules(rules)),))
    assert Requirement(Capability.CALLERS_FROM_OUTSIDE, PORTAL) in requirements(wanted)
    assert Capability.CALLERS_FROM_OUTSIDE not in DocumentDriver().capabilities
    (made,) = (resource for piece in DocumentDriver().pieces(wanted) for resource in piece.resources())
    assert b'"admitted":["spiffe://cluster.local/ns/default/sa/buyer"]' in made.body


def test_outside_callers_are_described_with_their_object() -> None:
    """The text has the object's kind, also beside permissive mode."""
    messages = [
        route["text"] for route in describe.routes(policy(inbound=(inbound(EveryoneInTheMesh(RULES)),)))
    ]
    assert messages == [
        "inbound 8080: every workload with a certificate of the mesh may send everything",
        "inbound 8080: default/buyer may send everything (TrafficTarget default/target)",
        "inbound 8080: 10.0.0.0/8, gateway.example.org may send * /books, * /toys (Portal default/target)",
    ]
    targets = [route["target"] for route in describe.routes(policy(inbound=(inbound(OnlyRules(RULES)),)))]
    assert targets == ["default/target", "Portal default/target"]
