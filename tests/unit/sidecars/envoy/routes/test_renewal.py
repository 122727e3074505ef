"""Tests of rule changes that admit less, and of the interim listener that they need."""

from dataclasses import replace

import pytest

from catalog.policy.values.inbound import Access, AccessRule, EveryoneInTheMesh, OnlyRules
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Port, ServiceAccountName
from meshwright.mesh.policies.callers import IpRange
from meshwright.mesh.policies.smi import HTTPMatch
from meshwright.sidecars.envoy.empty_resources import empty
from meshwright.sidecars.envoy.routes.renewal import interim, narrows
from tests.meshes.resources import resources
from tests.unit.sidecars.envoy.test_translate import BUYER, BY, DEFAULT, by, decoded, inbound, policy
from xds.protocol.resources.resource import EVERY_CONNECTION, LISTENER, ROUTE, Resource, ResourceName

CLERK = ServiceIdentity(DEFAULT, ServiceAccountName("clerk"))
OTHER = by("other")
READ, WRITE = HTTPMatch("r", "/books", ("GET",)), HTTPMatch("w", "/books", ("PUT",))
NEAR, FAR = IpRange("10.0.0.0/16"), IpRange("10.1.0.0/16")
PLAIN = AccessRule(OTHER, (NEAR, FAR), (READ, WRITE))
NOBODY, WITH_TLS, IN_PLAIN_TEXT = frozenset[str](), frozenset({"tls"}), frozenset({"raw_buffer"})
BOTH = OnlyRules((AccessRule(BY, (BUYER, CLERK), (READ, WRITE)),))


def routes(access: Access) -> Resource:
    """Return the route configuration of a port."""
    (resource,) = [item for item in resources(policy(inbound=(inbound(access),))) if item.type_url == ROUTE]
    return resource


@pytest.mark.parametrize(
    ("after", "less"),
    [
        (BOTH, False),
        (OnlyRules((AccessRule(OTHER, (CLERK, BUYER), (WRITE, READ)),)), False),
        (
            OnlyRules((AccessRule(BY, (BUYER,), (READ, WRITE)), AccessRule(OTHER, (CLERK,), (READ, WRITE)))),
            False,
        ),
        (OnlyRules((AccessRule(BY, (BUYER, CLERK)),)), False),
        (OnlyRules((*BOTH.rules, AccessRule(OTHER, (CLERK,)))), False),
        (EveryoneInTheMesh(), False),
        (OnlyRules((AccessRule(BY, (BUYER,), (READ, WRITE)),)), True),
        (OnlyRules((AccessRule(BY, (BUYER, CLERK), (READ,)),)), True),
        (OnlyRules((AccessRule(BY, (BUYER,)), AccessRule(OTHER, (CLERK,), (READ,)))), True),
        (
            OnlyRules((AccessRule(BY, (BUYER, CLERK), (READ, replace(WRITE, path_regex="/books.*"))),)),
            True,
        ),
        (OnlyRules(), True),
    ],
)
def test_rules_narrow_if_a_caller_or_match_is_removed(after: Access, less: bool) -> None:
    """Additions, the admitting object and the order of rules do not matter."""
    assert narrows(routes(BOTH), routes(after)) == (WITH_TLS if less else NOBODY)


def test_end_of_permissive_mode_narrows() -> None:
    """Any rules admit less than permissive mode, and a port without rules cannot be narrowed."""
    assert narrows(routes(EveryoneInTheMesh()), routes(BOTH)) == WITH_TLS
    assert not narrows(routes(OnlyRules()), routes(BOTH))


def test_placeholder_for_rejected_rules_admits_nothing() -> None:
    """The placeholder has no rules, so it narrows a port that has some."""
    nothing = empty((ROUTE, routes(BOTH).name))
    assert nothing is not None
    assert nothing.renewal == routes(BOTH).renewal
    assert narrows(routes(BOTH), nothing) == WITH_TLS
    assert not narrows(nothing, routes(BOTH))


@pytest.mark.parametrize("proven", [BOTH, EveryoneInTheMesh()], ids=["rules", "permissive"])
@pytest.mark.parametrize(
    ("after", "less"),
    [
        (PLAIN, NOBODY),
        (AccessRule(OTHER, (NEAR, FAR), (READ,)), IN_PLAIN_TEXT),
        (AccessRule(OTHER, (NEAR,), (READ, WRITE)), IN_PLAIN_TEXT),
        (None, NOBODY),
    ],
    ids=["the same", "fewer matches", "fewer networks", "no filter chain"],
)
def test_change_for_callers_in_plain_text_concerns_only_their_connections(
    proven: Access, after: AccessRule | None, less: frozenset[str]
) -> None:
    """Callers with a certificate keep their connections, also in permissive mode.

    Without callers in plain text their filter chain is gone, which drains it.
    """
    now = proven if after is None else replace(proven, rules=(*proven.rules, after))
    assert narrows(routes(replace(proven, rules=(*proven.rules, PLAIN))), routes(now)) == less


def test_change_for_callers_with_a_certificate_concerns_only_their_connections() -> None:
    """Callers in plain text are in the same route configuration and keep their connections."""
    before, after = OnlyRules((*BOTH.rules, PLAIN)), OnlyRules((PLAIN,))
    assert narrows(routes(before), routes(after)) == WITH_TLS


@pytest.mark.parametrize(
    ("kind", "renamed"), [("tls", {""}), ("raw_buffer", {"_plain"}), (EVERY_CONNECTION, {"", "_plain"})]
)
def test_interim_listener_renames_the_chains_of_the_concerned_callers(kind: str, renamed: set[str]) -> None:
    """After a reconnect of the proxy, the connections of all callers are concerned."""
    there = policy(inbound=(inbound(OnlyRules((*BOTH.rules, PLAIN))),))
    (listener,) = [resource for resource in resources(there) if resource.type_url == LISTENER]
    between = interim(listener, frozenset({(ResourceName("rds-inbound.8080"), kind)}))
    names = {filter_chain["name"] for filter_chain in decoded(between)["filterChains"]}
    chain = "inbound_default/shop_8080_http"
    assert names == {f"{chain}{end}{'_renewed' if end in renamed else ''}" for end in ("", "_plain")}


def test_interim_listener_differs_only_in_chain_names_of_changed_routes() -> None:
    """Envoy drains the connections of a renamed chain. Ports without changes keep their chains."""
    ports = tuple(replace(inbound(BOTH), port=Port(number)) for number in (8080, 8081))
    (listener,) = [resource for resource in resources(policy(inbound=ports)) if resource.type_url == LISTENER]
    between = interim(listener, frozenset({(ResourceName("rds-inbound.8081"), "tls")}))
    was, now = decoded(listener), decoded(between)
    assert [filter_chain.pop("name") for filter_chain in now["filterChains"]] == [
        "inbound_default/shop_8080_http",
        "inbound_default/shop_8081_http_renewed",
    ]
    for chain in was["filterChains"]:
        del chain["name"]
    assert now == was
    assert (between.name, between.references) == (listener.name, listener.references)
