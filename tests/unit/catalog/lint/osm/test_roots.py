"""Roots that are declared: for another mesh, one too many, none that is to sign."""

import pytest

from catalog.lint.problems import problems
from meshwright.mesh.names import Namespace, SecretName, TrustDomain
from meshwright.mesh.policies.roots import MeshRootCertificate, Role
from meshwright.mesh.policies.smi import PolicyKey
from tests.meshes import values as a

OSM = Namespace("osm-system")
ACTIVE, PASSIVE, INACTIVE = Role.ACTIVE, Role.PASSIVE, Role.INACTIVE


def root(name: str, role: Role = ACTIVE, domain: str = "", created: str = "") -> MeshRootCertificate:
    """Return one whose Secret has its name."""
    return MeshRootCertificate(
        PolicyKey(OSM, name), SecretName(OSM, name), TrustDomain(domain), role, created
    )


@pytest.mark.parametrize(
    ("roots", "expected"),
    [
        ((root("one"),), []),
        ((root("one"), root("two", PASSIVE)), []),
        ((root("one", domain="cluster.local"), root("two")), []),
        ((root("one", domain="example.org"),), [("MW2095", "one", "example.org")]),
        ((root("one"), root("three"), root("two")), [("MW2096", "two", "two")]),
        # The oldest are used, whatever they are called; one that is inactive, or another mesh's, is not.
        (
            (root("one"), root("three", created="2026-11-02"), root("two", created="2026-11-01")),
            [("MW2096", "one", "one")],
        ),
        ((root("one"), root("three", INACTIVE), root("two"), root("a", INACTIVE)), []),
        ((root("one", PASSIVE),), [("MW2097", "one", "passive")]),
        (
            (root("one", PASSIVE), root("two", PASSIVE), root("zero")),
            [("MW2097", "one", "passive"), ("MW2097", "two", "passive"), ("MW2096", "zero", "zero")],
        ),
    ],
)
def test_what_is_said(roots: tuple[MeshRootCertificate, ...], expected: list[tuple[str, str, str]]) -> None:
    """With code, the object's name, and the value that is wrong."""
    found = [(each.code, each.key.name, each.value) for each in problems(a.view(*roots)) if each.key]
    assert sorted(found, key=lambda each: each[1]) == expected
