"""Tests of lint for TLS settings of a MeshConfig that fit no service certificate."""

from dataclasses import replace

import pytest

from catalog.lint.problems import problems
from catalog.policy.group_policy import tls_range
from meshwright.mesh.config import MeshConfig, SidecarSettings, TlsVersion
from meshwright.mesh.tls_keys import ServiceKeys
from tests.meshes import values as a

OLD = SidecarSettings(tls_max_version=TlsVersion.V1_2)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (replace(OLD, cipher_suites=("ECDHE-ECDSA-AES128-SHA",), ecdh_curves=("P-256",)), []),
        (
            replace(OLD, cipher_suites=("ECDHE-RSA-AES128-SHA",)),
            [("MW2042", "spec.sidecar.cipherSuites", "ECDHE-RSA-AES128-SHA", "ECDHE-ECDSA-AES128-SHA")],
        ),
        (
            replace(OLD, ecdh_curves=("P-384", "X25519")),
            [("MW2042", "spec.sidecar.ecdhCurves", "P-384, X25519", "P-256")],
        ),
        (SidecarSettings(ecdh_curves=("P-384",)), []),
    ],
)
def test_added_tls_values_are_reported_and_served(
    said: SidecarSettings, told: list[tuple[str, str, str, str]]
) -> None:
    """A warning names the field, its value, and the value that sidecars are served in addition."""
    view = a.view(a.service("web"), MeshConfig(sidecar=said))
    result = [item for item in problems(view) if item.code == "MW2042"]
    assert [(item.code, item.field, item.value) for item in result] == [item[:3] for item in told]
    for problem, (_, _, _, added) in zip(result, told, strict=True):
        assert f"Sidecars also use {added}, because" in problem.expected
        assert ServiceKeys.ECDSA_P256.value in problem.expected
    served = tls_range(view)
    more = [*served.cipher_suites[len(said.cipher_suites) :], *served.ecdh_curves[len(said.ecdh_curves) :]]
    assert more == [item[3] for item in told]
