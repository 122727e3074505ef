"""Tests of the messages that groups have in common: made once for a mesh, and never changed."""

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
    tls._without_identities,
    clusters._destination,
    clusters._limited,
)


@cache
def policies(services: int, version: TlsVersion) -> tuple[ProxyPolicy, ...]:
    """Return the policies of all groups of a mesh with this number of services."""
    objects = dict(meshes.mesh(services).objects)
    objects[meshes.CONFIG] = meshes.sourced(meshes.CONFIG, meshes.config(version))
    view = View.build(objects, MeshSettings())
    return tuple(proxy_policy(view, group) for group in groups(view))


def begin() -> None:
    """Clear the caches of common messages, and of the chains of services."""
    for item in (*ALIKE, outbound_listeners._service_chain):
        item.cache_clear()


def made() -> int:
    """Return the number of common messages that were made."""
    return sum(item.cache_info().misses for item in ALIKE)


def test_number_of_common_messages_is_independent_of_the_number_of_groups() -> None:
    """A mesh has six, and four more after a mesh-wide setting changes.

    Only names and callers belong to a group.
    """
    counts = []
    for services in (8, 24):
        begin()
        for version in (TlsVersion.V1_2, TlsVersion.V1_3):
            for policy in policies(services, version):
                resources(policy)
            counts.append(made())
    assert counts == [6, 10, 6, 10]


def test_common_messages_are_copied_and_never_changed() -> None:
    """The bytes of each group are the same whether it is translated first or after all others."""
    every = policies(24, TlsVersion.V1_2)
    first = []
    for policy in every:
        begin()
        first.append([resource.body for resource in resources(policy)])
    begin()
    for policy in (*every, *reversed(every)):
        resources(policy)
    assert [[resource.body for resource in resources(policy)] for policy in every] == first
