"""Tests of certificate.ingressGateway of a MeshConfig: its value, and problems of invalid ones."""

from datetime import timedelta

import pytest

from meshwright.mesh.config import GatewayCertificate, MeshConfig
from meshwright.mesh.names import Namespace, SecretName
from tests.meshes.reading import reading
from tests.unit.specs.osm.test_mesh_config import _config

FIELD = "spec.certificate.ingressGateway"
SECRET = "secret: {name: tls, namespace: ingress}"


def _said(gateway: str) -> tuple[MeshConfig | None, list[tuple[str, str, str]]]:
    manifest_reading = reading(_config(f"{{certificate: {{ingressGateway: {gateway}}}}}"))
    config = next((item for _, item in manifest_reading.objects if isinstance(item, MeshConfig)), None)
    return config, [
        (problem.severity.value, problem.code, problem.field) for problem in manifest_reading.problems
    ]


@pytest.mark.parametrize(
    ("gateway", "expected"),
    [
        ("null", None),
        (
            f"{{subjectAltNames: [b.example.org, a, b.example.org], validityDuration: 90m, {SECRET}}}",
            (("a", "b.example.org"), timedelta(minutes=90), "ingress"),
        ),
        (f"{{subjectAltNames: [a], {SECRET}}}", (("a",), timedelta(hours=24), "ingress")),
        ("{subjectAltNames: [a], secret: {name: tls}}", (("a",), timedelta(hours=24), "osm-system")),
    ],
)
def test_ingress_gateway_certificate_is_read_with_its_defaults(
    gateway: str, expected: tuple[tuple[str, ...], timedelta, str] | None
) -> None:
    """Names are sorted without duplicates; the validity and the namespace have defaults."""
    wanted = None
    if expected is not None:
        names, validity, namespace = expected
        wanted = GatewayCertificate(SecretName(Namespace(namespace), "tls"), names, validity)
    assert _said(gateway) == (MeshConfig(ingress_gateway=wanted), [])


@pytest.mark.parametrize(
    ("gateway", "code", "field"),
    [
        (f"{{{SECRET}}}", "MW1017", "subjectAltNames"),
        (f"{{subjectAltNames: [], {SECRET}}}", "MW1017", "subjectAltNames"),
        (f"{{subjectAltNames: gateway, {SECRET}}}", "MW1010", "subjectAltNames"),
        (f"{{subjectAltNames: [a, 7], {SECRET}}}", "MW1010", "subjectAltNames[1]"),
        # A workload's identity, a wildcard and an invalid DNS name must not get a certificate.
        *(
            (f"{{subjectAltNames: ['{item}'], {SECRET}}}", "MW1013", "subjectAltNames[0]")
            for item in ("spiffe://cluster.local/ns/a/sa/b", "*.example.org", "a b", "Gateway", "-a", "a..b")
        ),
        (f"{{subjectAltNames: [a], validityDuration: 0s, {SECRET}}}", "MW1013", "validityDuration"),
        (f"{{subjectAltNames: [a], validityDuration: 1 day, {SECRET}}}", "MW1013", "validityDuration"),
        ("{subjectAltNames: [a]}", "MW1011", "secret.name"),
        ("{subjectAltNames: [a], secret: {namespace: b}}", "MW1011", "secret.name"),
        ("{subjectAltNames: [a], secret: {name: A/b}}", "MW1013", "secret.name"),
        ("{subjectAltNames: [a], secret: {name: a, namespace: a.b}}", "MW1013", "secret.namespace"),
    ],
)
def test_invalid_ingress_gateway_certificate_refuses_the_mesh_config(
    gateway: str, code: str, field: str
) -> None:
    """The problem names the field, so that the last good MeshConfig stays in force."""
    assert _said(gateway) == (None, [("error", code, f"{FIELD}.{field}")])


def test_unknown_field_of_the_gateway_certificate_is_a_warning() -> None:
    """The rest of the MeshConfig is in force, as with unknown fields elsewhere in it."""
    config, problems = _said(f"{{subjectAltNames: [a], issuer: b, {SECRET}}}")
    assert config is not None
    assert config.ingress_gateway is not None
    assert problems == [("warning", "MW1032", "")]


@pytest.mark.parametrize("gateway", ["{}", "[]", "gateway"])
def test_empty_or_mistyped_gateway_certificate_is_refused(gateway: str) -> None:
    """OSM's own definition requires all of its fields."""
    config, problems = _said(gateway)
    assert config is None
    assert problems
