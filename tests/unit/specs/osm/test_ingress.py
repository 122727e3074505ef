"""Tests of OSM's IngressBackend: values that are read, and problems of invalid ones."""

from ipaddress import ip_network

import pytest

from meshwright.mesh.names import Namespace, Port, ServiceName
from meshwright.mesh.policies.callers import IpRange
from meshwright.mesh.policies.ingress import IngressBackend, IngressPort, Proof
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey
from meshwright.specs.values.references import parse_network
from tests.meshes.reading import complaints, value

BACKEND = "{name: httpbin, port: {number: 14001, protocol: http}}"
TLS = "{name: httpbin, port: {number: 14001, protocol: https}}"
SKIPPED = "{name: httpbin, port: {number: 14001, protocol: https}, tls: {skipClientCertValidation: true}}"
SERVICE = "{kind: Service, name: gateway, namespace: ingress}"
RANGE = "{kind: IPRange, name: 10.0.0.0/8}"
NAME = "{kind: AuthenticatedPrincipal, name: gateway.ingress.cluster.local}"
HTTPBIN = ServiceKey(Namespace("httpbin"), ServiceName("httpbin"))


def _ingress(backends: str, sources: str, more: str = "") -> str:
    return (
        "apiVersion: policy.openservicemesh.io/v1alpha1\nkind: IngressBackend\n"
        "metadata: {name: httpbin, namespace: httpbin}\n"
        f"spec:\n  backends: [{backends}]\n  sources: [{sources}]\n  {more}"
    )


def test_ingress_backend_of_the_osm_guide_is_read() -> None:
    """The manifest is the guide's example of a gateway with a certificate."""
    text = """
apiVersion: policy.openservicemesh.io/v1alpha1
kind: IngressBackend
metadata: {name: httpbin, namespace: httpbin, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  backends:
  - name: httpbin
    port:
      number: 14001 # the target port
      protocol: https
    tls:
      skipClientCertValidation: false
  sources:
  - kind: Service
    name: ingress-nginx-controller
    namespace: ingress-nginx
  - kind: AuthenticatedPrincipal
    name: ingress-nginx.ingress-nginx.cluster.local
status: {currentStatus: committed, reason: "successfully committed by the system"}
"""
    assert value(text) == IngressBackend(
        PolicyKey(Namespace("httpbin"), "httpbin"),
        (IngressPort(HTTPBIN, Port(14001), Proof.CERTIFICATE),),
        services=(ServiceKey(Namespace("ingress-nginx"), ServiceName("ingress-nginx-controller")),),
        principals=("ingress-nginx.ingress-nginx.cluster.local",),
        created="2026-01-01T00:00:00Z",
    )


def test_ingress_backend_with_all_fields_is_read() -> None:
    """Backends and sources are grouped and sorted, without duplicates."""
    backends = (
        f"{BACKEND}, {{name: httpbin.httpbin, port: {{number: 80, protocol: HTTPS}}, "
        "tls: {skipClientCertValidation: true, sniHosts: ['*.Example.org', a.example.org, A.example.org]}}"
    )
    sources = f"{RANGE}, {{kind: IPRange, name: '2001:db8::1/32'}}, {RANGE}, {SERVICE}, {NAME}"
    group = "apiGroup: specs.smi-spec.io/v1alpha4, kind: HTTPRouteGroup"
    more = f"matches: [{{kind: HTTPRouteGroup, name: b}}, {{{group}, name: a}}]"
    assert value(_ingress(backends, sources, more)) == IngressBackend(
        PolicyKey(Namespace("httpbin"), "httpbin"),
        (
            IngressPort(HTTPBIN, Port(80), Proof.ENCRYPTION, ("*.example.org", "a.example.org")),
            IngressPort(HTTPBIN, Port(14001), Proof.NOTHING),
        ),
        (ServiceKey(Namespace("ingress"), ServiceName("gateway")),),
        (IpRange("10.0.0.0/8"), IpRange("2001:db8::/32")),
        ("gateway.ingress.cluster.local",),
        ("a", "b"),
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.1.2.3/8", "10.0.0.0/8"),  # Go cuts the host's bits off, and so does Envoy
        ("192.0.2.7/32", "192.0.2.7/32"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("FD00::7/128", "fd00::7/128"),
        ("::/0", "::/0"),
        ("::ffff:10.1.2.3/104", "10.0.0.0/8"),
        ("192.0.2.7", None),
        ("10.0.0.0/255.0.0.0", None),
        ("10.0.0.0/33", None),
        ("10.0.0/8", None),
        ("010.0.0.0/8", None),
        ("fe80::1%eth0/64", None),
        ("/8", None),
        ("10.0.0.0/", None),
        ("shop/8", None),
    ],
)
def test_ip_range_is_read_like_in_kubernetes(text: str, found: str | None) -> None:
    """Host bits are cut off, as in Go; addresses without a length and netmasks are refused."""
    assert parse_network(text) == (None if found is None else ip_network(found))


@pytest.mark.parametrize(
    ("manifest", "complaint"),
    [
        (_ingress("", RANGE), ("error", "MW1017", "spec.backends")),
        (_ingress(f"{BACKEND}, {TLS}", NAME), ("error", "MW1015", "spec.backends[1].port")),
        (_ingress(TLS, SERVICE), ("error", "MW1017", "spec.sources")),
        (_ingress(f"{SKIPPED}, {TLS.replace('14001', '80')}", RANGE), ("error", "MW1017", "spec.sources")),
        (_ingress(BACKEND.replace("httpbin", "a.shop"), RANGE), ("error", "MW1016", "spec.backends[0].name")),
        (
            _ingress(BACKEND.replace("http}", "tcp}"), RANGE),
            ("error", "MW1013", "spec.backends[0].port.protocol", '"tcp"'),
        ),
        (
            _ingress(BACKEND.replace("http}", "grpc}"), RANGE),
            ("error", "MW1013", "spec.backends[0].port.protocol", '"grpc"'),
        ),
        (_ingress(BACKEND.replace("14001", "0"), RANGE), ("error", "MW1013", "spec.backends[0].port.number")),
        (_ingress(BACKEND.replace("number: 14001, ", ""), RANGE), ("error", "MW1011")),
        (_ingress(BACKEND, "{kind: Pod, name: a}"), ("error", "MW1013", "spec.sources[0].kind", '"Pod"')),
        (_ingress(BACKEND, "{name: a}"), ("error", "MW1011", "spec.sources[0].kind")),
        (_ingress(BACKEND, "{kind: Service, name: a}"), ("error", "MW1013", "spec.sources[0].namespace")),
        (_ingress(BACKEND, "{kind: Service, name: A, namespace: b}"), ("error", "MW1013")),
        (_ingress(BACKEND, "{kind: IPRange, name: 10.0.0.1}"), ("error", "MW1013", "spec.sources[0].name")),
        (_ingress(BACKEND, "{kind: IPRange}"), ("error", "MW1011", "spec.sources[0].name")),
        (
            _ingress(TLS, "{kind: AuthenticatedPrincipal, name: '*'}"),
            ("error", "MW1013", "spec.sources[0].name", '"*"'),
        ),
        (_ingress(TLS, "{kind: AuthenticatedPrincipal, name: 'a b'}"), ("error", "MW1013")),
        (
            _ingress(TLS.replace("}}", "}, tls: {sniHosts: ['*']}}"), NAME),
            ("error", "MW1013", "spec.backends[0].tls.sniHosts[0]", '"*"'),
        ),
        (
            _ingress(TLS.replace("}}", "}, tls: {sniHosts: [a.*.org]}}"), NAME),
            ("error", "MW1013", "spec.backends[0].tls.sniHosts[0]"),
        ),
        (_ingress(BACKEND, RANGE, "matches: [{kind: TCPRoute, name: a}]"), ("error", "MW1013")),
        (
            _ingress(BACKEND, RANGE, "matches: [{apiGroup: other.io, kind: HTTPRouteGroup, name: a}]"),
            ("error", "MW1013", "spec.matches[0].apiGroup"),
        ),
        (_ingress(BACKEND, RANGE, "source: []"), ("error", "MW1012", "spec.source")),
        (_ingress(BACKEND, NAME), ("warning", "MW1017", "spec.sources")),
        (_ingress(SKIPPED, NAME), ("warning", "MW1017", "spec.sources")),
        (_ingress(SKIPPED.replace("https", "http"), RANGE), ("warning", "MW1021", "spec.backends[0].tls")),
    ],
)
def test_invalid_ingress_backend_is_reported_with_its_field(
    manifest: str, complaint: tuple[str, ...]
) -> None:
    """Where OSM's own check is inverted by mistake, the intended rule applies."""
    (result,) = complaints(manifest)
    assert result[: len(complaint)] == complaint
