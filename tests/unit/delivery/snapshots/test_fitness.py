"""What proxies would refuse is not sent, and nothing else goes with it."""

from collections.abc import Iterable

import pytest

from catalog.policy.units import Unit, unit_id, units
from catalog.policy.values.inbound import OnlyRules
from catalog.policy.values.proxy import ProxyPolicy
from meshwright.delivery.quarantine.exclusions import parts_left_out
from meshwright.delivery.quarantine.problems import Rejections
from meshwright.delivery.snapshots.fitness import RefusedResource, fitting
from meshwright.delivery.snapshots.group_snapshots import GroupSnapshots
from meshwright.delivery.snapshots.published_snapshots import PublishedSnapshots
from meshwright.delivery.snapshots.translation import translation
from meshwright.mesh.policies.smi import HTTPMatch
from meshwright.mesh.service import Protocol
from meshwright.sidecars.contract.driver import Piece
from meshwright.sidecars.envoy.driver import EnvoyDriver
from tests.meshes import values as a
from tests.meshes.resources import pieces
from tests.unit.delivery.quarantine.guilty import admitted, match, policy, port, rule
from xds.protocol.resources.resource import ROUTE, Resource, ResourceName


def _judged_by(*bad: Unit, frame: bool = False) -> Piece:
    """Return the piece of an inbound route, whose judge finds these units bad, or everything."""
    names = ("x", "y", "z", "w")
    of = policy(port(80, Protocol.HTTP, OnlyRules(tuple(rule(each, each) for each in names))))
    (made,) = [each for each in pieces(of) if {one.type_url for one in each.resources()} == {ROUTE}]
    there = {unit_id(each) for each in bad}

    def faults(resource: Resource) -> tuple[str, ...]:
        recipe = resource.recipe
        found: Iterable[Unit] = recipe.units if isinstance(recipe, Piece) else ()
        words = tuple(
            sorted(
                f"bad {each.name}" for each in found if unit_id(each) in there and isinstance(each, HTTPMatch)
            )
        )
        return ("bad frame",) if frame else words

    return Piece(made.make, made.arguments, faults=faults)


def test_the_units_at_fault_are_left_out_and_each_is_said_in_its_own_words() -> None:
    """Two of four."""
    found = fitting(_judged_by(match("x"), match("z")))
    key = (ROUTE, ResourceName("rds-inbound.80"))
    assert found.refused == (
        RefusedResource(key, match("x"), "bad x"),
        RefusedResource(key, match("z"), "bad z"),
    )
    (resource,) = found.resources
    assert admitted({key: resource}) == {(80, "default/w", "w"), (80, "default/y", "y")}


def test_what_is_right_is_made_once_and_judged_once() -> None:
    """What a push must not notice."""
    piece = _judged_by()
    asked: list[Resource] = []

    def faults(resource: Resource) -> tuple[str, ...]:
        asked.append(resource)
        return ()

    found = fitting(Piece(piece.make, piece.arguments, faults=faults))
    assert (found.refused, len(asked)) == ((), 1)


def test_what_no_unit_explains_is_left_to_the_proxies() -> None:
    """They keep what they have, as of anything that they reject."""
    found = fitting(_judged_by(match("x"), frame=True))
    assert [(each.unit, each.said) for each in found.refused] == [(None, "bad frame")]
    assert len(admitted({(ROUTE, ResourceName("r")): found.resources[0]})) == 4


@pytest.mark.parametrize("regex", ["", "/caf\\é", "/[\\b]x", "(?=x)", "a{1001}"])
def test_an_expression_that_envoy_refuses_is_left_out_before_it_is_sent(regex: str) -> None:
    """As if the readers had let it pass: the object is named once, the good match beside it is in force."""
    group = a.route_group("all", HTTPMatch("bad", regex), a.match("good", "/good"))
    view = a.view(
        a.service("shop"),
        a.workload("buyer", "10.0.0.1"),
        a.workload("shop", "10.0.0.2"),
        a.target("t", "buyer", "shop", a.http("all")),
        group,
    )
    serving = GroupSnapshots(view, translation(EnvoyDriver()))
    serving.rendering.certify(
        {e.identity: a.certificate(e.identity, "1") for e in view.workloads.values()}, b"R"
    )
    (step,) = [each for each in serving.steps(PublishedSnapshots(), serving.touched()) if each is not None]
    shop = next(each for name, each in step.snapshots.items() if name.startswith("default/shop") and each)
    assert {what for _, _, what in admitted(shop)} == {"good"}
    (problem,) = Rejections().problems(serving, ())
    assert (problem.code, str(problem.key), problem.field) == (
        "policy-left-out",
        "HTTPRouteGroup default/all",
        "spec.matches[0]",
    )
    (left,) = parts_left_out(serving, ())
    assert (left.match, [str(each) for each in left.proxies], left.certain) == (
        HTTPMatch("bad", regex),
        ["shop-uuid.shop.default"],
        True,
    )


def test_the_document_driver_and_unknown_things_are_not_judged() -> None:
    """Its proxies read what they can."""
    of: ProxyPolicy = policy(port(90, Protocol.TCP, OnlyRules((rule("a"),))))
    assert [*units(of)] == [rule("a")]
    assert fitting(Piece(lambda: ())).refused == ()
