"""Tests of headers by which an application would use another method than the one policy admitted."""

from dataclasses import replace

import pytest

from catalog.policy.values.inbound import OnlyRules
from catalog.store.settings import METHOD_OVERRIDE_HEADERS, MethodOverrides
from meshwright.mesh.service import Protocol
from tests.meshes.resources import resources
from tests.unit.sidecars.envoy.test_translate import decoded, inbound, outbound, policy
from xds.protocol.resources.resource import LISTENER, ROUTE

MADE = policy(inbound=(inbound(OnlyRules()),), outbound=(outbound(Protocol.HTTP),))


def removed(overrides: MethodOverrides) -> dict[str, list[str]]:
    """Return the request headers that each route configuration removes."""
    made = resources(replace(MADE, method_overrides=overrides))
    routes = [decoded(resource) for resource in made if resource.type_url == ROUTE]
    return {route["name"]: route.get("requestHeadersToRemove", []) for route in routes}


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [(MethodOverrides.KEEP, []), (MethodOverrides.REMOVE, list(METHOD_OVERRIDE_HEADERS))],
)
def test_method_override_headers_are_removed_at_inbound_ports_only(
    overrides: MethodOverrides, expected: list[str]
) -> None:
    """The setting decides at each inbound HTTP port.

    Requests that a client's sidecar sends stay unchanged.
    """
    result = removed(overrides)
    inbound_routes = {name for name in result if name.startswith("rds-inbound")}
    assert inbound_routes
    assert result.keys() - inbound_routes
    assert result == {name: expected if name in inbound_routes else [] for name in result}


def test_setting_of_method_overrides_changes_no_listener() -> None:
    """A change of the setting drains no connection."""
    listeners = [
        [
            resource
            for resource in resources(replace(MADE, method_overrides=overrides))
            if resource.type_url == LISTENER
        ]
        for overrides in MethodOverrides
    ]
    assert listeners[0] == listeners[1]
