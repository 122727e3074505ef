"""Tests that Envoy accepts whatever the readers accept, with random manifests.

`make acceptance` tries more, with fresh seeds.
"""

from dataclasses import replace
from typing import Final

import pytest

from catalog.store.view import View
from meshwright.mesh.kinds import HTTP_ROUTE_GROUP
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.policies.smi import HTTPMatch, HTTPRouteGroup
from meshwright.providers.directory.manifests import Manifests
from tests.acceptance.manifest_pushes import Counts, settings, try_case, try_view
from tests.golden.running_mesh import LiveMesh
from tests.meshes import texts
from tests.tools.deadline import until

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="module"),
]
CASES: Final = 300
LEAST_ACCEPTED: Final = 0.4
"""The share of documents of each kind that must be accepted; about as many are wrong on purpose."""
LEAST: Final = {
    "rules on HTTP": 80,
    "rules on TCP": 60,
    "a header": 80,
    "shares": 15,
    "a split for some requests": 5,
    "routes of the Gateway API": 30,
    "redirects": 5,
    "answers": 5,
    "endpoints": 200,
    "IPv6 endpoints": 40,
    "localities": 6,
    "as called": 40,
    "explicit": 80,
    "egress": 40,
    "TLS parameters": 10,
    "permissive": 20,
    "long names": 50,
    "ports of gateways": 30,
    "hosts of gateways": 8,
    "connections of gateways": 6,
    "server names of gateways": 10,
    "settings of gateways' clients": 5,
}
"""What must have been pushed, in so many cases: else they try less than they are here for."""
LEAST_EXPRESSIONS: Final = 80


async def test_envoy_accepts_all_random_manifests_that_the_readers_accept(envoy: LiveMesh) -> None:
    """There is no rejection, our own validation withholds nothing, and enough of each kind was tried."""
    counts = Counts()
    for seed in range(CASES):
        await try_case(envoy, seed, counts)
    assert counts.faults == []
    assert [kind for kind in counts.written if counts.share(kind) < LEAST_ACCEPTED] == []
    assert {name: counts.held[name] for name, least in LEAST.items() if counts.held[name] < least} == {}
    assert len(counts.expressions) >= LEAST_EXPRESSIONS


SMUGGLED: Final = texts.joined(
    texts.service("shop"),
    texts.workload("shop", "10.0.0.1"),
    texts.workload("buyer", "10.0.0.2", uuid=None),
    texts.route_group("routes", texts.match("all", "/.*")),
    texts.target("buyers", "buyer", "shop", texts.http("routes")),
)


def smuggled(regex: str) -> View:
    """Return a mesh with an expression that no reader has checked."""
    read = Manifests().apply("mesh.yaml", SMUGGLED)
    assert read.problems() == ()
    objects: dict[ObjectKey, SourcedObject] = dict(read.objects())
    key = next(object_key for object_key in objects if object_key.kind == HTTP_ROUTE_GROUP)
    group = objects[key].value
    assert isinstance(group, HTTPRouteGroup)
    objects[key] = replace(objects[key], value=replace(group, matches=(HTTPMatch("all", regex),)))
    return View.build(objects, settings())


@pytest.mark.parametrize("regex", [r"/caf\é", r"/[\b]x", "", "a**"])
async def test_expression_that_bypassed_the_readers_is_rejected_by_both(envoy: LiveMesh, regex: str) -> None:
    """This is the control of the test above: Envoy rejects it, and our own validation names the policy."""
    counts = Counts()
    await try_view(envoy, smuggled(regex), "smuggled", counts)
    own, envoys = counts.faults
    assert "rds-inbound.8080" in own
    assert "policies[shop/buyers].permissions[0]" in own
    assert ": RouteConfiguration: " in envoys

    async def right_one_is_taken() -> bool:
        right = Counts()
        await try_view(envoy, smuggled("/.*"), "right", right)
        return right.faults == []

    await until(right_one_is_taken)
