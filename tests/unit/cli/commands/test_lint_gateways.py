"""Tests of `meshwright lint` with the manifests of docs/policy/gateways.md, and with mistakes in them."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.tools.forked_cli import Done
from tests.tools.tls_secrets import self_signed

Run = Callable[..., Done]
Lint = Callable[[str], list[tuple[str, str, str, str]]]

GATEWAY = """
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: meshwright}
spec: {controllerName: meshwright.dev/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public, namespace: bookstore}
spec:
  gatewayClassName: meshwright
  listeners:
  - {name: http, port: 80, protocol: HTTP, hostname: books.example}
"""
MACHINE = """
---
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {name: public-1, namespace: bookstore}
spec: {address: 192.0.2.10, serviceAccount: public, uuid: public-1, gateway: public}
"""
BOOKS = """
---
apiVersion: v1
kind: Service
metadata: {name: bookstore, namespace: bookstore}
spec: {clusterIP: 10.96.0.10, ports: [{port: 14001, appProtocol: http}], selector: {app: bookstore}}
---
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {name: bookstore-1, namespace: bookstore, labels: {app: bookstore}}
spec: {address: 192.0.2.20, serviceAccount: bookstore, uuid: bookstore-1}
"""
ROUTE = """
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: books, namespace: bookstore}
spec:
  parentRefs: [{name: public}]
  rules:
  - {backendRefs: [{name: bookstore, port: 14001}]}
---
apiVersion: config.openservicemesh.io/v1alpha2
kind: MeshConfig
metadata: {name: osm-mesh-config, namespace: osm-system}
spec: {traffic: {enablePermissiveTrafficPolicyMode: true}}
"""
MESH = GATEWAY + MACHINE + BOOKS + ROUTE


@pytest.fixture
def lint(run: Run, tmp_path: Path) -> Lint:
    """Return a function that lints a manifest: code, object, field and value of each problem."""

    def lint(text: str) -> list[tuple[str, str, str, str]]:
        (tmp_path / "mesh.yaml").write_text(text)
        done = run("lint", str(tmp_path / "mesh.yaml"), "--json")
        assert done.stderr == ""
        problems: list[dict[str, Any]] = json.loads(done.stdout)
        return [(item["code"], str(item["object"]), item["field"], item["value"]) for item in problems]

    return lint


def test_documented_gateway_has_no_problem(lint: Lint) -> None:
    """Negative control."""
    assert lint(MESH) == []


@pytest.mark.parametrize(
    ("reference", "gateway"),
    [
        ("{name: publik}", "bookstore/publik"),
        ("{name: public, namespace: default}", "default/public"),
        ("{name: bookstore, port: 14001}", "bookstore/bookstore"),
    ],
)
def test_route_to_a_missing_gateway_is_reported(lint: Lint, reference: str, gateway: str) -> None:
    """A misspelt name, another namespace, and a Service without `kind: Service`."""
    mistaken = MESH.replace("parentRefs: [{name: public}]", f"parentRefs: [{reference}]")
    assert lint(mistaken) == [("MW2186", "HTTPRoute bookstore/books", "spec.parentRefs[0]", gateway)]


HTTPS = "port: 443, protocol: HTTPS, hostname: books.example, tls: {certificateRefs: [{name: cert}]}}"


def test_expired_certificate_for_another_name_is_reported_without_content(lint: Lint) -> None:
    """A gateway shows such a certificate."""
    pair = self_signed(
        "other.example", valid=(datetime(2020, 1, 1, tzinfo=UTC), datetime(2021, 1, 1, tzinfo=UTC))
    )
    text = MESH.replace("port: 80, protocol: HTTP, hostname: books.example}", HTTPS)
    where = ("Gateway bookstore/public", "spec.listeners[0].tls.certificateRefs", "bookstore/cert")
    assert lint(f"{text}---\n{pair.manifest('cert', 'bookstore')}") == [
        ("MW2187", *where),
        ("MW2188", *where),
    ]


@pytest.mark.parametrize("name", ["meshwright.dev/gateway-controler", "meshwrihgt.dev/gateway-controller"])
def test_misspelt_controller_is_reported_at_the_class_and_the_machine(lint: Lint, name: str) -> None:
    """Both name the value; the Gateway itself is of another controller."""
    mistaken = MESH.replace("meshwright.dev/gateway-controller", name)
    assert lint(mistaken) == [
        ("MW2189", "GatewayClass meshwright", "spec.controllerName", name),
        ("MW2180", "Workload bookstore/public-1", "spec.gateway", "public"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "problems"),
    [
        (
            "  listeners:",
            "  addresses: [{type: Hostname, value: a.example}, {value: 192.0.2.11}]\n  listeners:",
            [
                ("MW2190", "spec.addresses[0].type", "Hostname"),
                ("MW2191", "spec.addresses[1].value", "192.0.2.11"),
            ],
        ),
        ("port: 80,", "port: 15020,", [("MW2193", "spec.listeners[0].port", "15020")]),
        (", gateway: public}", "}", [("MW2192", "metadata.name", "public")]),
    ],
)
def test_gateway_that_is_not_served_as_written_is_reported(
    lint: Lint, old: str, new: str, problems: list[tuple[str, str, str]]
) -> None:
    """Addresses, the port of the agent, and a missing workload."""
    found = [
        (code, field, value)
        for code, about, field, value in lint(MESH.replace(old, new, 1))
        if about == "Gateway bookstore/public"
    ]
    assert found == problems
