"""Tests of OSM's MeshRootCertificate: values that are read, and problems of invalid ones."""

import pytest

from meshwright.mesh.names import Namespace, SecretName, TrustDomain
from meshwright.mesh.policies.roots import MeshRootCertificate, Role
from meshwright.mesh.policies.smi import PolicyKey
from tests.meshes.reading import reading, value

OSM = Namespace("osm-system")
TRESOR = "provider: {tresor: {ca: {secretRef: {name: osm-ca-bundle, namespace: osm-system}}}}"


def _root(spec: str) -> str:
    return (
        "apiVersion: config.openservicemesh.io/v1alpha2\nkind: MeshRootCertificate\n"
        "metadata: {name: osm-mesh-root-certificate, namespace: osm-system, "
        "creationTimestamp: '2026-11-01T00:00:00Z'}\n"
        f"spec: {{{spec}}}\n"
    )


def _read(role: Role = Role.ACTIVE, domain: str = "", namespace: str = "osm-system") -> MeshRootCertificate:
    secret = SecretName(Namespace(namespace), "osm-ca-bundle")
    key = PolicyKey(OSM, "osm-mesh-root-certificate")
    return MeshRootCertificate(key, secret, TrustDomain(domain), role, "2026-11-01T00:00:00Z")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (TRESOR, _read()),
        (f"trustDomain: cluster.local, {TRESOR}", _read(domain="cluster.local")),
        (f"trustDomain: cluster.local, intent: passive, {TRESOR}", _read(Role.PASSIVE, "cluster.local")),
        (f"role: inactive, spiffeEnabled: true, {TRESOR}", _read(Role.INACTIVE)),
        (f"role: passive, intent: passive, {TRESOR}", _read(Role.PASSIVE)),
        ("provider: {tresor: {ca: {secretRef: {name: osm-ca-bundle}}}}", _read()),
        (TRESOR.replace("namespace: osm-system", "namespace: vaults"), _read(namespace="vaults")),
    ],
)
def test_mesh_root_certificate_is_read_with_its_defaults(spec: str, expected: MeshRootCertificate) -> None:
    """Without a role it is active, because OSM's releases had no roles."""
    manifest_reading = reading(_root(spec))
    assert (manifest_reading.problems, value(_root(spec))) == ((), expected)


@pytest.mark.parametrize(
    ("spec", "field", "said"),
    [
        ("", "spec.provider", "must be"),
        ("provider: {}", "spec.provider.tresor", "must be"),
        ("provider: {tresor: {}}", "spec.provider.tresor.ca", "must be"),
        ("provider: {tresor: {ca: {}}}", "spec.provider.tresor.ca.secretRef", "must be"),
        ("provider: {tresor: {ca: {secretRef: {}}}}", "spec.provider.tresor.ca.secretRef.name", "must be"),
        (
            "provider: {tresor: {ca: {secretRef: {name: ../etc}}}}",
            "spec.provider.tresor.ca.secretRef.name",
            "must be",
        ),
        (
            "provider: {vault: {host: vault.test, role: mesh, token: s.3cret}}",
            "spec.provider.vault",
            "the settings issuer: vault, vault_address and vault_role",
        ),
        (
            "provider: {certManager: {issuerName: mesh}}",
            "spec.provider.certManager",
            "the settings issuer: cert-manager and cert_manager_issuer",
        ),
        (f"role: Active, {TRESOR}", "spec.role", "active, inactive, passive"),
        (
            f"role: active, intent: passive, {TRESOR}",
            "spec.intent",
            "the value of role: intent is the older name of the same field",
        ),
        (f"trustDomain: Cluster Local, {TRESOR}", "spec.trustDomain", "must be a trust domain"),
        (f"rolle: active, {TRESOR}", "spec.rolle", "role"),
    ],
)
def test_invalid_mesh_root_certificate_is_refused_with_its_field(spec: str, field: str, said: str) -> None:
    """The message has the right value, and never a token of a provider."""
    manifest_reading = reading(_root(spec))
    (problem,) = manifest_reading.problems
    assert (problem.severity.value, problem.field, manifest_reading.objects) == ("error", field, ())
    assert said in problem.expected
    assert "s.3cret" not in f"{problem}"


def test_disabled_spiffe_ids_are_reported_and_have_no_effect() -> None:
    """The rest of the object is in force."""
    manifest_reading = reading(_root(f"spiffeEnabled: false, {TRESOR}"))
    (problem,) = manifest_reading.problems
    assert (problem.severity.value, problem.field) == ("info", "spec.spiffeEnabled")
    assert [pair[1] for pair in manifest_reading.objects] == [_read()]
