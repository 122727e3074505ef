"""Tests of lint for declared roots: of another mesh, one too many, or none that signs."""

import pytest

from catalog.lint.problems import problems
from meshwright.mesh.names import Namespace, SecretName, TrustDomain
from meshwright.mesh.policies.roots import MeshRootCertificate, Role
from meshwright.mesh.policies.smi import PolicyKey
from tests.meshes import values as a

OSM = Namespace("osm-system")
ACTIVE, PASSIVE, INACTIVE = Role.ACTIVE, Role.PASSIVE, Role.INACTIVE


def root(name: str, role: Role = ACTIVE, domain: str = "", created: str = "") -> MeshRootCertificate:
    """Return a MeshRootCertificate whose Secret has the same name."""
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
        # The oldest roots are used, whatever their names are; an inactive root does not count.
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
def test_problem_of_a_root_names_its_code_and_value(
    roots: tuple[MeshRootCertificate, ...], expected: list[tuple[str, str, str]]
) -> None:
    """Each problem of a set of roots has the expected code, object name and value."""
    result = [
        (problem.code, problem.key.name, problem.value) for problem in problems(a.view(*roots)) if problem.key
    ]
    assert sorted(result, key=lambda item: item[1]) == expected
