"""Headers by which an application would take another method than the one that policy has judged."""

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
    """Return which headers of requests each route configuration removes."""
    made = resources(replace(MADE, method_overrides=overrides))
    routes = [decoded(each) for each in made if each.type_url == ROUTE]
    return {each["name"]: each.get("requestHeadersToRemove", []) for each in routes}


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [(MethodOverrides.KEEP, []), (MethodOverrides.REMOVE, list(METHOD_OVERRIDE_HEADERS))],
)
def test_they_are_removed_on_the_way_to_the_application_alone(
    overrides: MethodOverrides, expected: list[str]
) -> None:
    """By the setting, at each inbound port of HTTP; what a caller's sidecar sends is as it was."""
    found = removed(overrides)
    inbound_routes = {name for name in found if name.startswith("rds-inbound")}
    assert inbound_routes
    assert found.keys() - inbound_routes
    assert found == {name: expected if name in inbound_routes else [] for name in found}


def test_the_setting_changes_no_listener() -> None:
    """So that no connection is drained where somebody changes it."""
    listeners = [
        [each for each in resources(replace(MADE, method_overrides=overrides)) if each.type_url == LISTENER]
        for overrides in MethodOverrides
    ]
    assert listeners[0] == listeners[1]
