"""Tests of fitness: units that proxies would refuse are excluded before they are sent."""

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
from tests.unit.delivery.quarantine.refusing_proxy import admitted, match, policy, port, rule
from xds.protocol.resources.resource import ROUTE, Resource, ResourceName


def _judged_by(*bad: Unit, frame: bool = False) -> Piece:
    """Return an inbound route's piece whose judge refuses these units, or with `frame` everything."""
    names = ("x", "y", "z", "w")
    of = policy(port(80, Protocol.HTTP, OnlyRules(tuple(rule(name, name) for name in names))))
    (made,) = [piece for piece in pieces(of) if {one.type_url for one in piece.resources()} == {ROUTE}]
    there = {unit_id(item) for item in bad}

    def faults(resource: Resource) -> tuple[str, ...]:
        recipe = resource.recipe
        result: Iterable[Unit] = recipe.units if isinstance(recipe, Piece) else ()
        words = tuple(
            sorted(
                f"bad {each.name}"
                for each in result
                if unit_id(each) in there and isinstance(each, HTTPMatch)
            )
        )
        return ("bad frame",) if frame else words

    return Piece(made.make, made.arguments, faults=faults)


def test_only_units_at_fault_are_excluded_each_with_its_own_message() -> None:
    """Two of four matches are refused, and the other two stay in force."""
    fitting_resources = fitting(_judged_by(match("x"), match("z")))
    key = (ROUTE, ResourceName("rds-inbound.80"))
    assert fitting_resources.refused == (
        RefusedResource(key, match("x"), "bad x"),
        RefusedResource(key, match("z"), "bad z"),
    )
    (resource,) = fitting_resources.resources
    assert admitted({key: resource}) == {(80, "default/w", "w"), (80, "default/y", "y")}


def test_valid_resource_is_made_and_judged_once() -> None:
    """The check must not slow down a push."""
    piece = _judged_by()
    asked: list[Resource] = []

    def faults(resource: Resource) -> tuple[str, ...]:
        asked.append(resource)
        return ()

    fitting_resources = fitting(Piece(piece.make, piece.arguments, faults=faults))
    assert (fitting_resources.refused, len(asked)) == ((), 1)


def test_fault_without_a_guilty_unit_is_left_to_the_proxies() -> None:
    """The resource is sent whole; proxies that reject it keep their last version."""
    fitting_resources = fitting(_judged_by(match("x"), frame=True))
    assert [
        (refused_resource.unit, refused_resource.message) for refused_resource in fitting_resources.refused
    ] == [(None, "bad frame")]
    assert len(admitted({(ROUTE, ResourceName("r")): fitting_resources.resources[0]})) == 4


@pytest.mark.parametrize("regex", ["", "/caf\\é", "/[\\b]x", "(?=x)", "a{1001}"])
def test_expression_that_envoy_refuses_is_excluded_before_it_is_sent(regex: str) -> None:
    """The readers of manifests may not notice it. The object has one problem, and a valid match stays."""
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
    (step,) = [item for item in serving.steps(PublishedSnapshots(), serving.touched()) if item is not None]
    shop = next(
        snapshot for name, snapshot in step.snapshots.items() if name.startswith("default/shop") and snapshot
    )
    assert {what for _, _, what in admitted(shop)} == {"good"}
    (problem,) = Rejections().problems(serving, ())
    assert (problem.code, str(problem.key), problem.field) == (
        "policy-left-out",
        "HTTPRouteGroup default/all",
        "spec.matches[0]",
    )
    (left,) = parts_left_out(serving, ())
    assert (left.match, [str(proxy) for proxy in left.proxies], left.certain) == (
        HTTPMatch("bad", regex),
        ["shop-uuid.shop.default"],
        True,
    )


def test_piece_without_a_judge_has_no_refused_units() -> None:
    """Pieces of the document driver, for example, are not judged."""
    of: ProxyPolicy = policy(port(90, Protocol.TCP, OnlyRules((rule("a"),))))
    assert [*units(of)] == [rule("a")]
    assert fitting(Piece(lambda: ())).refused == ()
