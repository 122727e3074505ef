"""Gateways on a real node: their Pods under Pod Security `restricted`, status, and requests from outside."""

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from meshwright.mesh.gateway.gateways import CONTROLLER_NAME
from tests.kubernetes.gateway.installation import namespace
from tests.kubernetes.install.test_chart_on_node import HOME
from tests.kubernetes.tools.containers import PORT, application, pod
from tests.kubernetes.tools.kubectl import Kubectl
from tests.kubernetes.tools.objects import Document
from tests.tools.deadline import wait_until
from tests.tools.tls_secrets import self_signed
from tools.real_parts.node import Node

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("helm_part"),
]

GATEWAY_API = "gateway.networking.k8s.io/v1"
EDGE, SHOP = "edge", "shop-behind-edge"
_RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
_SECONDS = 120


def shop_behind_edge() -> tuple[Document, ...]:
    """Return a shop without a sidecar, and the grant for routes of the gateway's namespace."""
    return (
        pod("shop", application("shop"), terminationGracePeriodSeconds=1),
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "shop"},
            "spec": {"selector": {"app": "shop"}, "ports": [{"port": 80, "targetPort": PORT}]},
        },
        {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "ReferenceGrant",
            "metadata": {"name": "edge"},
            "spec": {
                "from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": EDGE}],
                "to": [{"group": "", "kind": "Service"}],
            },
        },
    )


def edge_gateway(replicas: int = 1) -> tuple[Document, ...]:
    """Return a class, a route, and a gateway with proxies and a Service without a load balancer."""
    parameters = {"group": "", "kind": "ConfigMap", "name": "proxies"}
    return (
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "proxies"},
            "data": {"replicas": str(replicas), "serviceType": "ClusterIP"},
        },
        {
            "apiVersion": GATEWAY_API,
            "kind": "GatewayClass",
            "metadata": {"name": "meshwright"},
            "spec": {"controllerName": CONTROLLER_NAME},
        },
        {
            "apiVersion": GATEWAY_API,
            "kind": "HTTPRoute",
            "metadata": {"name": "shop"},
            "spec": {
                "parentRefs": [{"name": "public"}],
                "hostnames": ["shop.example"],
                "rules": [{"backendRefs": [{"name": "shop", "namespace": SHOP, "port": 80}]}],
            },
        },
        {
            "apiVersion": GATEWAY_API,
            "kind": "Gateway",
            "metadata": {"name": "public"},
            "spec": {
                "gatewayClassName": "meshwright",
                "infrastructure": {"parametersRef": parameters, "labels": {"team": "edge"}},
                "listeners": [
                    {"name": "http", "port": 80, "protocol": "HTTP"},
                    {
                        "name": "https",
                        "port": 443,
                        "protocol": "HTTPS",
                        "tls": {"certificateRefs": [{"name": "shop-example"}]},
                    },
                ],
            },
        },
    )


def is_programmed(gateway: Document) -> bool:
    """Return whether a Gateway is programmed and has an address."""
    status = gateway.get("status", {})
    conditions = {item["type"]: item["status"] for item in status.get("conditions", ())}
    return conditions.get("Programmed") == "True" and bool(status.get("addresses"))


def _answer(node: Node, url: str, *flags: str) -> str:
    """Return status and server of curl's answer on the node, or nothing without an answer."""
    command = ("curl", "-s", "-m", "5", "-o", "/dev/null", "-w", "%{http_code} %header{x-served-by}")
    done = subprocess.run(
        [*node.cluster.enter, *command, *flags, url], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def test_gateway_gets_proxies_that_answer_requests(
    home: Node, node_administrator: Kubectl, tmp_path: Path
) -> None:
    """From the manifests of a user to the answer of a Pod without a sidecar, and back to nothing."""
    for name, labels in ((EDGE, _RESTRICTED), (SHOP, {})):
        node_administrator.apply(namespace(name, labels))
    edge, shop = (replace(node_administrator, namespace=name) for name in (EDGE, SHOP))
    shop.apply(*shop_behind_edge())
    shop.until_pod("shop")
    pair, roots = self_signed("shop.example"), tmp_path / "roots.pem"
    roots.write_bytes(pair.chain)
    edge.apply(yaml.safe_load(pair.manifest("shop-example", EDGE)))
    role = ("--verb=list,watch", "--resource=secrets", "--resource-name=shop-example")
    edge("create", "role", "certificates", *role)
    account = f"--serviceaccount={HOME}:meshwright"
    edge("create", "rolebinding", "certificates", "--role=certificates", account)
    began = time.monotonic()
    edge.apply(*edge_gateway())
    gateway = edge.until(is_programmed, "gateway.gateway.networking.k8s.io", "public", seconds=_SECONDS)
    address = gateway["status"]["addresses"][0]["value"]
    plain = f"http://{address}/"
    wait_until(lambda: _answer(home, plain, "-H", "Host: shop.example") == "200 shop", _SECONDS)
    sys.stdout.write(f"first answer after {time.monotonic() - began:.1f} s\n")
    assert _answer(home, plain, "-H", "Host: other.example").split() == ["404"]
    service = edge.get("service", "public-meshwright")
    assert (service["spec"]["clusterIP"], service["spec"]["type"]) == (address, "ClusterIP")
    assert service["metadata"]["labels"]["team"] == "edge"
    assert [(item["name"], item["attachedRoutes"]) for item in gateway["status"]["listeners"]] == [
        ("http", 1),
        ("https", 1),
    ]
    trusting = ("--cacert", str(roots), "--resolve", f"shop.example:443:{address}")
    wait_until(lambda: _answer(home, "https://shop.example/", *trusting) == "200 shop", _SECONDS)
    edge("delete", "gateway.gateway.networking.k8s.io", "public")
    wait_until(lambda: edge.found("deployment", "public-meshwright") is None, _SECONDS)
    for name in (EDGE, SHOP):
        node_administrator("delete", "namespace", name, "--wait=false")
