"""Tests of resources without a part of policy for calls: equal to those of a mesh without the part."""

from dataclasses import replace
from types import UnionType

import pytest

from catalog.policy.group_policy import proxy_policy
from catalog.policy.units import Limiting, Reaching
from catalog.relations.groups import group_of
from catalog.store.view import View
from meshwright.mesh.objects import MeshObject, SourcedObject
from meshwright.mesh.policies.limits import UpstreamTrafficSetting
from meshwright.mesh.policies.upstreams import LoadBalancing, UpstreamPolicy
from meshwright.sidecars.contract.driver import each_piece
from meshwright.sidecars.envoy.driver import EnvoyDriver
from tests.golden.cases import view
from xds.protocol.resources.resource import ENDPOINT, ResourceName, TypeUrl

Made = dict[tuple[TypeUrl, ResourceName], bytes]


def _made(found: View, left_out: UnionType | None = None) -> tuple[dict[str, Made], int]:
    """Return each proxy's resources except endpoints, and the number of units left out."""
    made: dict[str, Made] = {}
    count = 0
    for key, workload in found.workloads.items():
        made[str(key)] = {}
        for piece in each_piece(EnvoyDriver().pieces(proxy_policy(found, group_of(found, workload)))):
            out = {each for each in piece.units if left_out is not None and isinstance(each, left_out)}
            count += len(out)
            for each in piece.without(out).resources():
                if each.type_url != ENDPOINT:  # has localities and priorities of policy, too
                    made[str(key)][each.type_url, each.name] = each.body
    return made, count


def _silent(found: SourcedObject) -> SourcedObject:
    """Return an object without the parts for calls that can be left out."""
    match found.value:
        case UpstreamTrafficSetting() as setting:
            value: MeshObject = UpstreamTrafficSetting(setting.key, setting.host, created=setting.created)
        case UpstreamPolicy(load=load) as policy:
            value = replace(policy, ejecting=None, checking=None, load=LoadBalancing(load.balancing))
        case value:
            pass
    return replace(found, value=value)


@pytest.mark.parametrize(
    ("case", "units"), [("limits", Limiting), ("upstreams", Reaching), ("health_checks", Reaching)]
)
def test_resources_without_units_equal_those_without_the_objects_parts(case: str, units: UnionType) -> None:
    """Each resource is compared, so that the units are removed completely, and nothing else."""
    given = view(case)
    silent = View.build({key: _silent(each) for key, each in given.sourced.held().items()}, given.settings)
    found, count = _made(given, units)
    assert count > 0
    assert found == _made(silent)[0]
    assert _made(given)[0] != found, "negative control: they say something"
