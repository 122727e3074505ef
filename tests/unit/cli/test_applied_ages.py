"""Objects keep their age when manifests are applied over them, and one MeshConfig counts everywhere."""

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
    """Return an older Service for HTTP, and one for TCP that is first by name, at one port."""
    shop = replace(a.service("shop"), created=OLD)
    return shop, replace(a.service("front", a.port(443, 8080, Protocol.TCP), app="shop"), created=NEW)


def test_a_service_that_is_applied_again_is_as_old_as_before() -> None:
    """Its manifest has no age: as the youngest it would lose its port, and lint would say what is not so."""
    shop, front = _services()
    pod = a.workload("shop-1", "10.0.0.1", app="shop")
    cluster = _held(shop, front, pod)
    applied = cluster.below(_held(replace(shop, created="")))
    assert applied.objects == cluster.objects
    assert seen(applied).problems == seen(cluster).problems


def test_a_service_that_is_new_is_the_youngest() -> None:
    """As it will be; and a manifest that says an age is taken at its word."""
    shop, front = _services()
    assert _held(shop).below(_held(replace(front, created=""))).objects[a.object_key(front)].value == replace(
        front, created=""
    )
    again = replace(shop, created=NEW)
    assert _held(shop).below(_held(again)).objects[a.object_key(shop)].value == again


@pytest.mark.parametrize("backwards", [False, True])
def test_the_injector_s_mesh_config_is_the_server_s(backwards: bool) -> None:
    """`check` and `explain injection` take the one that counts, in whatever order they are listed."""
    resource = Resource("config.openservicemesh.io", "v1alpha2", "meshconfigs", "MeshConfig")

    def level(*items: dict[str, object]) -> str:
        found = config_of_all(items[::-1] if backwards else items, resource)
        return found.sidecar.log_level

    assert level(_raw("aaa", OLD, "debug"), _raw("osm-mesh-config", NEW, "trace")) == "trace"
    assert level(_raw("aaa", NEW, "debug"), _raw("bbb", OLD, "trace")) == "trace"
    assert level() == "error"
