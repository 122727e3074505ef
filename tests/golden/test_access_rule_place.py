"""Tests of the place of HTTP access rules: one RBAC filter for a port, one policy for a TrafficTarget."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from catalog.oracle.decide import Place, Request, Verdict, accepts_everyone, judge
from catalog.oracle.ingress import IngressVerdict, ingress_verdicts
from catalog.oracle.mutual_tls import PlainVerdict, plain_verdict
from catalog.policy.values.inbound import InboundPort, OnlyRules
from catalog.store.smi import targets_by_destination
from catalog.store.view import View
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import IpAddress
from meshwright.mesh.policies.callers import Outsider
from meshwright.mesh.service import ServiceKey
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.rules.rbac import HTTP_FILTER, LOOKING_FILTER, PERMISSIVE
from tests.golden.cases import CASES, EVERY, Group, case_groups, decoded, view
from xds.protocol.resources.resource import LISTENER, ROUTE

OF_A_ROUTE = "typedPerFilterConfig"


def managers(group: Group) -> Iterator[dict[str, Any]]:
    """Yield the HTTP connection managers of all chains of a group's listeners."""
    for resource in group.resources:
        if resource.type_url == LISTENER:
            listener = decoded(resource)
            chains = [*listener.get("filterChains", ()), *filter(None, [listener.get("defaultFilterChain")])]
            for chain in chains:
                for result in chain["filters"]:
                    if result["name"].endswith("http_connection_manager"):
                        yield result["typedConfig"]


def routes(group: Group) -> dict[str, dict[str, Any]]:
    """Return the route configurations of a group by name."""
    return {resource.name: decoded(resource) for resource in group.resources if resource.type_url == ROUTE}


def admitting_somebody(mesh: View, identity: ServiceIdentity, port: InboundPort) -> set[str]:
    """Return, by the oracle, the targets that admit a request at a port to one of their sources.

    The objects that admit callers from outside the mesh are included.
    """
    if accepts_everyone(mesh, identity.namespace):
        return {PERMISSIVE}
    place = Place(identity, port.port)
    outsider = Request(Outsider(IpAddress("192.0.2.7")), port.services[0], port.port)
    answer = (ingress_verdicts(mesh, outsider, service, port.port, is_http=True) for service in port.services)
    from_outside = {
        f"IngressBackend {ingress_backend.key}"
        for item in answer
        for ingress_backend, _, verdict in item
        if verdict is not IngressVerdict.OVERRULED
    }
    said_of_plain = plain_verdict(mesh, outsider, (place, True))
    silent = (PlainVerdict.STRICT, PlainVerdict.NOBODY, PlainVerdict.DANGLING)
    if said_of_plain is not None and said_of_plain[1] not in silent:
        from_outside.add(f"MutualTLS {said_of_plain[0].key}")
    return from_outside | {
        str(target.key)
        for target in targets_by_destination(mesh).lookup(identity)
        for client in target.sources
        if judge(mesh, _asked(client, port.services[0], place), target, place.port, is_http=True)
        in (Verdict.ADMITS, Verdict.OTHER_REQUESTS)
    }


def _asked(client: ServiceIdentity, service: ServiceKey, place: Place) -> Request:
    return Request(client, service, place.port)


@pytest.mark.parametrize("case", EVERY)
def test_inbound_http_ports_have_one_access_filter_and_outbound_ports_none(case: str) -> None:
    """The filter itself denies everything, so a request without a policy in the routes is denied."""
    for group in case_groups(case):
        inbound = {names.inbound_routes(port.port) for port in group.policy.inbound}
        for manager in managers(group):
            guards = [
                http_filter for http_filter in manager["httpFilters"] if http_filter["name"] == HTTP_FILTER
            ]
            if manager["rds"]["routeConfigName"] in inbound:
                assert [guard["typedConfig"]["rules"] for guard in guards] == [{}]
                assert manager["httpFilters"][-1]["name"] == "envoy.filters.http.router"
            else:
                assert guards == []


@pytest.mark.parametrize("case", CASES)
def test_each_admitting_target_has_one_policy_in_the_route_configuration(case: str) -> None:
    """There is no policy on a virtual host or a route, or in an outbound route configuration."""
    for group in case_groups(case):
        result = routes(group)
        for port in (inbound_port for inbound_port in group.policy.inbound if inbound_port.protocol.is_http):
            made = result.pop(names.inbound_routes(port.port))
            own = made.pop(OF_A_ROUTE)
            looking = [LOOKING_FILTER] if isinstance(port.access, OnlyRules) else []
            assert sorted(own) == [HTTP_FILTER, *looking]
            policies = own[HTTP_FILTER]["rbac"]["rules"].get("policies", {})
            # An IngressBackend's is named with the server names for which it is.
            assert {" ".join(policy.split()[:2]) for policy in policies} == admitting_somebody(
                view(case), group.policy.identity, port
            )
            assert HTTP_FILTER not in json.dumps(made)
        assert not any(item in json.dumps(result) for item in (HTTP_FILTER, LOOKING_FILTER))


def test_golden_cases_have_ports_with_none_one_and_two_policies() -> None:
    """This is the control of the test above, which would also hold without policies."""
    ports = [
        len(rules["rbac"]["rules"].get("policies", {}))
        for case in CASES
        for group in case_groups(case)
        for made in routes(group).values()
        for name, rules in made.get(OF_A_ROUTE, {}).items()
        if name == HTTP_FILTER
    ]
    assert {0, 1, 2} <= set(ports)
