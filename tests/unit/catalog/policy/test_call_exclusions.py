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


def _made(result: View, left_out: UnionType | None = None) -> tuple[dict[str, Made], int]:
    """Return each proxy's resources except endpoints, and the number of units left out."""
    made: dict[str, Made] = {}
    count = 0
    for key, workload in result.workloads.items():
        made[str(key)] = {}
        for piece in each_piece(EnvoyDriver().pieces(proxy_policy(result, group_of(result, workload)))):
            out = {unit for unit in piece.units if left_out is not None and isinstance(unit, left_out)}
            count += len(out)
            for resource in piece.without(out).resources():
                if resource.type_url != ENDPOINT:  # has localities and priorities of policy, too
                    made[str(key)][resource.type_url, resource.name] = resource.body
    return made, count


def _silent(sourced_object: SourcedObject) -> SourcedObject:
    """Return an object without the parts for calls that can be left out."""
    match sourced_object.value:
        case UpstreamTrafficSetting() as setting:
            value: MeshObject = UpstreamTrafficSetting(setting.key, setting.host, created=setting.created)
        case UpstreamPolicy(load=load) as policy:
            value = replace(policy, ejecting=None, checking=None, load=LoadBalancing(load.balancing))
        case value:
            pass
    return replace(sourced_object, value=value)


@pytest.mark.parametrize(
    ("case", "units"), [("limits", Limiting), ("upstreams", Reaching), ("health_checks", Reaching)]
)
def test_resources_without_units_equal_those_without_the_objects_parts(case: str, units: UnionType) -> None:
    """Each resource is compared, so that the units are removed completely, and nothing else."""
    given = view(case)
    silent = View.build(
        {key: _silent(sourced_object) for key, sourced_object in given.sourced.values_unrecorded().items()},
        given.settings,
    )
    result, count = _made(given, units)
    assert count > 0
    assert result == _made(silent)[0]
    assert _made(given)[0] != result, "negative control: they say something"
