"""Tests of the identifiers of units: saved verdicts have them, so other releases must make the same."""

from datetime import timedelta

import pytest

from catalog.policy.units import Unit, unit_id
from catalog.policy.values.route_actions import WeightedBackend
from catalog.policy.values.route_table import AppliedRule, AppliedSplit
from meshwright.mesh.names import ServiceName
from meshwright.mesh.policies.routing import Abort, Delay, HeaderChanges, Mirror, RouteActions
from meshwright.mesh.policies.smi import HeaderMatch, HTTPMatch
from tests.meshes import values as a

KEY = a.policy_key("s")
SHOP = WeightedBackend(a.service_key("shop"), "8080", 9)
BETA = WeightedBackend(a.service_key("beta"), "web", 1, as_called=True)
MATCH = HTTPMatch("m", "/x.*", ("GET",), (HeaderMatch("x-user", "a|b"),))
ACTIONS = RouteActions(
    timedelta(seconds=5),
    HeaderChanges(put=(("x", "1"),), add=(("y", "2"),), remove=("z",)),
    HeaderChanges(),
    Delay(50.0, timedelta(seconds=1)),
    Abort(1.5, 503),
    Mirror(ServiceName("beta"), 10.0),
)


@pytest.mark.parametrize(
    ("unit", "identifier"),
    [
        (AppliedSplit(KEY, (SHOP, BETA)), "232f3e0c111d04ed23d2bf19fad320ad"),
        (AppliedSplit(KEY, (SHOP,)), "8e09f91cec4ac25d2953a3636179a59b"),
        (AppliedSplit(KEY, ()), "81498265f5515e0a8403ef8cc8133784"),
        (AppliedRule(KEY, (MATCH,), ACTIONS, SHOP), "ed34074f3c5be71a3c24be3437adeb1b"),
        (AppliedRule(KEY, None, RouteActions()), "3718999a54330b1f6211dbd5828c99ab"),
    ],
)
def test_split_and_rule_have_the_identifiers_of_the_release_before(unit: Unit, identifier: str) -> None:
    """The release before had other types for them, whose text it hashed; these figures are its own."""
    assert unit_id(unit) == identifier
