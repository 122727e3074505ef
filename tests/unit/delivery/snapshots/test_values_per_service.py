"""Tests of memory: a fixed number of values for each service, however large the mesh is."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from benchmarks.meshes import generator as meshes
from catalog.lint.problems import Linter
from catalog.relations.groups import ProxyGroup, members
from catalog.store.settings import MeshSettings
from catalog.store.view import View
from meshwright.delivery.snapshots.rendering import RenderedResources, RenderInputs, resources
from meshwright.delivery.snapshots.translation import translation
from meshwright.engine.derived import ObservedValues
from meshwright.engine.node import Node
from meshwright.sidecars.envoy.driver import EnvoyDriver

pytestmark = pytest.mark.timeout(60)  # large meshes

LINTED = 26
"""Values for a service that nobody is served: five TrafficTargets, two workloads, and itself."""

SIZES = (40, 50, 70)
SERVED = 60
"""Values for a service whose two sidecars, one group, are served: it calls five others, and five it."""

WIDELY_READ = {
    *("settings", "trust bundle"),
    *(f"catalog.store.mesh_wide._{each}()" for each in ("authorization", "egress", "sidecar", "tracing")),
    *("catalog.lint.smi.reach.crowd()", "catalog.relations.backends.addresses.moved()"),
    *("catalog.policy.reachable._open", "catalog.policy.reachable.open_to_all"),
    *(
        "namespaces",
        "catalog.relations.permissive.is_permissive",
        "services by label",
        "MutualTLSes by namespace",
        "catalog.relations.telemetry.of_namespace",
        "ExternalAuthorizations by namespace",
        "catalog.relations.backends.localities._has_locality_policy()",
        "catalog.relations.route_reach.consumed_services",
        "catalog.relations.route_reach.mixed_services()",
    ),
    *("catalog.lint.lint._fine()", "further problems"),
}
"""What more read in a larger mesh: it holds for all of it, for a namespace, or for a label that all have."""


class Server:
    """A linted mesh, of which either all groups are served or none."""

    def __init__(self, services: int, *, served: bool) -> None:
        self.view = View.build(meshes.mesh(services).objects, MeshSettings())
        self.linter = Linter(self.view)
        self.rendering = RenderInputs(self.view, translation(EnvoyDriver(), secrets=False))
        self.wanted: ObservedValues[ProxyGroup, RenderedResources] = ObservedValues(resources, self.rendering)
        for _ in self.linter.looks():
            pass
        for group in members(self.view) if served else ():
            self.wanted.add(group)
            assert self.wanted.value(group).resources
        self.view.graph.apply(())


@dataclass(frozen=True, slots=True)
class HeldValues:
    """The number of values that a server holds, and the most readers that a value of each family has."""

    values: int
    readers: Mapping[str, int]


@functools.cache
def remembered(services: int, *, served: bool) -> HeldValues:
    """Build a server and count; both tests of served meshes share the servers."""
    result: dict[str, int] = {}
    read_by = Node.read_by

    def counting(self: Node, reader: object) -> None:
        read_by(self, reader)  # type: ignore[arg-type]
        result[self.family.name] = max(result.get(self.family.name, 0), len(self.readers))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Node, "read_by", counting)
        server = Server(services, served=served)
    return HeldValues(server.view.graph.size(), result)


@pytest.mark.parametrize(("served", "most"), [(False, LINTED), (True, SERVED)])
def test_each_service_adds_a_fixed_number_of_values(served: bool, most: int) -> None:
    """The number is the same in small and large meshes; each value is a node with its reads."""
    small, middle, large = (remembered(services, served=served).values for services in SIZES)
    assert (large - middle) / 20 == pytest.approx((middle - small) / 10, abs=0.3)
    assert (large - small) / 30 <= most


def test_number_of_readers_of_a_value_does_not_grow_with_the_mesh() -> None:
    """A change therefore touches no more in a large mesh, except for values in WIDELY_READ."""
    small, large = (remembered(services, served=True).readers for services in (SIZES[0], SIZES[-1]))
    assert {name for name in large if large[name] > small[name]} <= WIDELY_READ
