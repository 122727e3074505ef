"""What all groups' messages have in common is made once for a mesh, and nobody changes it."""

from functools import cache

from benchmarks.meshes import generator as meshes
from catalog.policy.group_policy import proxy_policy
from catalog.policy.values.proxy import ProxyPolicy
from catalog.relations.groups import groups
from catalog.store.view import MeshSettings, View
from meshwright.mesh.config import TlsVersion
from meshwright.sidecars.envoy.clusters import cluster as clusters
from meshwright.sidecars.envoy.listeners import connection_manager
from meshwright.sidecars.envoy.listeners import outbound as outbound_listeners
from meshwright.sidecars.envoy.security import tls
from tests.meshes.resources import resources

ALIKE = (
    connection_manager._nameless,
    tls._of_nobody,
    clusters._destination,
    clusters._limited,
)


@cache
def policies(services: int, version: TlsVersion) -> tuple[ProxyPolicy, ...]:
    """Return the policies of all groups of a mesh of so many services."""
    objects = dict(meshes.mesh(services).objects)
    objects[meshes.CONFIG] = meshes.sourced(meshes.CONFIG, meshes.config(version))
    view = View.build(objects, MeshSettings())
    return tuple(proxy_policy(view, group) for group in groups(view))


def begin() -> None:
    """Forget what is alike, and the chains of services, which are remembered as bytes."""
    for each in (*ALIKE, outbound_listeners._service_chain):
        each.cache_clear()


def made() -> int:
    """Return how many messages were made to be copied."""
    return sum(each.cache_info().misses for each in ALIKE)


def test_however_many_groups_there_are_as_much_is_made_once() -> None:
    """Six messages, and four more for a mesh-wide setting: of a group's own are names and callers."""
    counts = []
    for services in (8, 24):
        begin()
        for version in (TlsVersion.V1_2, TlsVersion.V1_3):
            for policy in policies(services, version):
                resources(policy)
            counts.append(made())
    assert counts == [6, 10, 6, 10]


def test_what_is_alike_is_copied_and_never_changed() -> None:
    """Each group's bytes are the same made first, and after all others."""
    every = policies(24, TlsVersion.V1_2)
    first = []
    for policy in every:
        begin()
        first.append([each.body for each in resources(policy)])
    begin()
    for policy in (*every, *reversed(every)):
        resources(policy)
    assert [[each.body for each in resources(policy)] for policy in every] == first
