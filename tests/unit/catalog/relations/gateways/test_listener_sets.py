"""ListenerSets of gateways: which are allowed, in which order, and the listeners of both."""

from dataclasses import replace

import pytest

from catalog.relations.gateways.listener_sets import allowed_sets
from meshwright.mesh.gateway.gateways import AllowedSets, Gateway, RoutesFrom
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject
from meshwright.mesh.values.label_selector import LabelRequirement, LabelSelector, SelectorOperator
from tests.meshes import gateway as g

SHOP = LabelSelector((LabelRequirement("team", SelectorOperator.IN, ("shop",)),))


def names(gateway: Gateway, *others: object) -> list[str]:
    """Return the paths of the sets that a gateway allows, in their order."""
    return [str(found.key) for found in allowed_sets(g.view(g.CLASS, gateway, *others), gateway.key)]


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        (AllowedSets(), []),
        (AllowedSets(RoutesFrom.NONE), []),
        (AllowedSets(RoutesFrom.SAME), ["default/near"]),
        (AllowedSets(RoutesFrom.ALL), ["default/near", "far/far", "other/other"]),
        (AllowedSets(RoutesFrom.SELECTOR, SHOP), ["far/far"]),
        (AllowedSets(RoutesFrom.SELECTOR), []),
    ],
)
def test_gateway_allows_sets_by_their_namespaces(allowed: AllowedSets, expected: list[str]) -> None:
    """ListenerSetDefaultNotAllowed, and ListenerSetAllowedNamespaceNone, Same and Selector."""
    gateway = replace(g.gateway("edge"), allowed_sets=allowed)
    sets = (
        g.listener_set("near"),
        g.listener_set("far", at="default", namespace="far"),
        g.listener_set("other", at="default", namespace="other"),
        g.listener_set("lost", gateway="missing"),
    )
    labelled = NamespaceObject(Namespace("far"), (("team", "shop"),))
    assert names(gateway, labelled, *sets) == expected


def test_older_sets_precede_younger_ones_and_then_their_names_decide() -> None:
    """The name includes the namespace, and a set without an age comes last."""
    sets = (
        g.listener_set("a", namespace="b", at="default", created="2026-11-30T10:00:00Z"),
        g.listener_set("b", namespace="a", at="default", created="2026-11-30T10:00:00Z"),
        g.listener_set("c", created="2026-11-30T09:00:00Z"),
        g.listener_set("0"),
    )
    assert names(g.open_gateway("edge"), *sets) == ["default/c", "a/b", "b/a", "default/0"]


def test_gateway_of_another_controller_allows_nothing_here() -> None:
    """Its sets are the other controller's."""
    gateway = replace(g.open_gateway("edge"), class_name="other")
    assert names(gateway, g.FOREIGN_CLASS, g.listener_set("set")) == []
