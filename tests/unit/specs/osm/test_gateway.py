"""MeshConfig's certificate.ingressGateway: what it comes to, and what is wrong with it."""

from datetime import timedelta

import pytest

from meshwright.mesh.config import GatewayCertificate, MeshConfig
from meshwright.mesh.names import Namespace, SecretName
from tests.meshes.reading import reading
from tests.unit.specs.osm.test_mesh_config import _config

FIELD = "spec.certificate.ingressGateway"
SECRET = "secret: {name: tls, namespace: ingress}"


def _said(gateway: str) -> tuple[MeshConfig | None, list[tuple[str, str, str]]]:
    found = reading(_config(f"{{certificate: {{ingressGateway: {gateway}}}}}"))
    config = next((each for _, each in found.objects if isinstance(each, MeshConfig)), None)
    return config, [(each.severity.value, each.code, each.field) for each in found.problems]


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
def test_what_it_comes_to(gateway: str, expected: tuple[tuple[str, ...], timedelta, str] | None) -> None:
    """Names once and in order, and what is not said."""
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
        # A workload's identity, a wildcard, an address, and what no DNS name is: none is certified.
        *(
            (f"{{subjectAltNames: ['{each}'], {SECRET}}}", "MW1013", "subjectAltNames[0]")
            for each in ("spiffe://cluster.local/ns/a/sa/b", "*.example.org", "a b", "Gateway", "-a", "a..b")
        ),
        (f"{{subjectAltNames: [a], validityDuration: 0s, {SECRET}}}", "MW1013", "validityDuration"),
        (f"{{subjectAltNames: [a], validityDuration: 1 day, {SECRET}}}", "MW1013", "validityDuration"),
        ("{subjectAltNames: [a]}", "MW1011", "secret.name"),
        ("{subjectAltNames: [a], secret: {namespace: b}}", "MW1011", "secret.name"),
        ("{subjectAltNames: [a], secret: {name: A/b}}", "MW1013", "secret.name"),
        ("{subjectAltNames: [a], secret: {name: a, namespace: a.b}}", "MW1013", "secret.namespace"),
    ],
)
def test_what_is_wrong(gateway: str, code: str, field: str) -> None:
    """It is refused, and the last good one stays."""
    assert _said(gateway) == (None, [("error", code, f"{FIELD}.{field}")])


def test_what_no_gateway_has_is_said() -> None:
    """As everywhere in a MeshConfig the rest is in force."""
    config, problems = _said(f"{{subjectAltNames: [a], issuer: b, {SECRET}}}")
    assert config is not None
    assert config.ingress_gateway is not None
    assert problems == [("warning", "MW1032", "")]


@pytest.mark.parametrize("gateway", ["{}", "[]", "gateway"])
def test_what_says_nothing_is_none(gateway: str) -> None:
    """As by Open Service Mesh's own definition, in which all of it is required."""
    config, problems = _said(gateway)
    assert config is None
    assert problems
