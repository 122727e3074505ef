"""Tests of SMI objects written as manifests, which can be applied to restore the objects in force."""

from random import Random

import pytest

from meshwright.mesh.objects import MeshObject
from meshwright.providers.text.yaml_documents import printed
from meshwright.specs.smi.manifests import written
from tests.meshes import values as a
from tests.meshes.random_meshes import random_mesh
from tests.meshes.reading import value

_HEADERS = (("x-kind", "b.*"), ("user-agent", "on"))


@pytest.mark.parametrize(
    "found",
    [
        a.target("t", "a", "b", a.http("g", "m"), a.tcp("r")),
        a.target("t", "a", "b", a.http("yes"), only=8080),
        a.route_group(
            "g", a.match("m", "/x: #", "GET", "PUT", headers=tuple(sorted(_HEADERS))), a.match("n")
        ),
        a.tcp_route("r"),
        a.tcp_route("r", 80, 5432),
        a.split("s", "a", ("b", 90), ("c", 0), matches=("g",), created="2026-01-02T03:04:05Z"),
    ],
)
def test_written_smi_object_is_read_back_unchanged(found: MeshObject) -> None:
    """The manifest is printed as text and read without problems."""
    manifest = written(found)
    assert manifest is not None
    assert value(printed([manifest])) == found


def test_every_smi_policy_of_a_random_mesh_is_written() -> None:
    """Objects of other kinds have no manifest, because it could be wrong."""
    dice, seen = Random(7), dict[str, int]()  # noqa: S311 - policies, no secrets
    for _ in range(20):
        for sourced in random_mesh(dice).objects.values():
            if (manifest := written(sourced.value)) is not None:
                name = type(sourced.value).__name__
                seen[name] = seen.get(name, 0) + 1
                assert manifest["kind"] == name == sourced.key.kind.name
    assert set(seen) == {"TrafficTarget", "HTTPRouteGroup", "TCPRoute", "TrafficSplit"}
    assert written(a.namespace("b")) is None
