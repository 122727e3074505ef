"""Tests of ages of applied manifests, and of the one MeshConfig that counts."""

from dataclasses import replace

import pytest

from meshwright.cli.checking.cluster.injection import config_of_all
from meshwright.cli.offline.mesh import LoadedManifests, seen
from meshwright.kube.resource import Resource
from meshwright.mesh.service import Protocol, Service
from meshwright.mesh.values.picture import Picture
from tests.meshes import values as a

OLD, NEW = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


def _held(*things: object) -> LoadedManifests:
    return LoadedManifests(Picture(a.objects(*things)))


def _raw(name: str, created: str, level: str) -> dict[str, object]:
    metadata = {"name": name, "namespace": "home", "creationTimestamp": created}
    return {"metadata": metadata, "spec": {"sidecar": {"logLevel": level}}}


def _services() -> tuple[Service, Service]:
    """Return an older Service for HTTP, and one for TCP that is first by name, with the same port."""
    shop = replace(a.service("shop"), created=OLD)
    return shop, replace(a.service("front", a.port(443, 8080, Protocol.TCP), app="shop"), created=NEW)


def test_service_that_is_applied_again_keeps_its_age() -> None:
    """A manifest has no age.

    As the youngest Service it would lose its port, and lint would report a false problem.
    """
    shop, front = _services()
    pod = a.workload("shop-1", "10.0.0.1", app="shop")
    cluster = _held(shop, front, pod)
    applied = cluster.below(_held(replace(shop, created="")))
    assert applied.objects == cluster.objects
    assert seen(applied).problems == seen(cluster).problems


def test_new_service_has_no_age_and_a_given_age_is_kept() -> None:
    """A new Service counts as the youngest, and an age in a manifest replaces that of the cluster."""
    shop, front = _services()
    assert _held(shop).below(_held(replace(front, created=""))).objects[a.object_key(front)].value == replace(
        front, created=""
    )
    again = replace(shop, created=NEW)
    assert _held(shop).below(_held(again)).objects[a.object_key(shop)].value == again


@pytest.mark.parametrize("backwards", [False, True])
def test_injector_uses_the_mesh_config_of_the_server(backwards: bool) -> None:
    """`check` and `explain-injection` use the MeshConfig that counts, in any order of the list."""
    resource = Resource("config.openservicemesh.io", "v1alpha2", "meshconfigs", "MeshConfig")

    def level(*items: dict[str, object]) -> str:
        mesh_config = config_of_all(items[::-1] if backwards else items, resource)
        return mesh_config.sidecar.log_level

    assert level(_raw("aaa", OLD, "debug"), _raw("osm-mesh-config", NEW, "trace")) == "trace"
    assert level(_raw("aaa", NEW, "debug"), _raw("bbb", OLD, "trace")) == "trace"
    assert level() == "error"
