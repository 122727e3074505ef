"""Gateways on a real node: their Pods under Pod Security `restricted`, status, and requests from outside."""

import subprocess
import sys
import time
from dataclasses import replace

import pytest

from meshwright.mesh.gateway.gateways import CONTROLLER_NAME
from tests.kubernetes.gateway.installation import namespace
from tests.kubernetes.tools.containers import PORT, application, pod
from tests.kubernetes.tools.kubectl import Kubectl
from tests.kubernetes.tools.objects import Document
from tests.tools.deadline import wait_until
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


def _shop() -> tuple[Document, ...]:
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


def _gateway() -> tuple[Document, ...]:
    """Return a class, a gateway with one proxy and a Service without a load balancer, and a route."""
    parameters = {"group": "", "kind": "ConfigMap", "name": "one"}
    return (
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "one"},
            "data": {"replicas": "1", "serviceType": "ClusterIP"},
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
                "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}],
            },
        },
    )


def _is_programmed(gateway: Document) -> bool:
    status = gateway.get("status", {})
    conditions = {item["type"]: item["status"] for item in status.get("conditions", ())}
    return conditions.get("Programmed") == "True" and bool(status.get("addresses"))


def _answer(node: Node, address: str, host: str) -> str:
    """Return status and server of the answer to a request from the node, or why there is none."""
    command = ("curl", "-s", "-m", "5", "-o", "/dev/null", "-w", "%{http_code} %header{x-served-by}")
    done = subprocess.run(
        [*node.cluster.enter, *command, "-H", f"Host: {host}", f"http://{address}/"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip()


def test_gateway_gets_proxies_that_answer_requests(home: Node, node_administrator: Kubectl) -> None:
    """From the manifests of a user to the answer of a Pod without a sidecar, and back to nothing."""
    for name, labels in ((EDGE, _RESTRICTED), (SHOP, {})):
        node_administrator.apply(namespace(name, labels))
    edge, shop = (replace(node_administrator, namespace=name) for name in (EDGE, SHOP))
    shop.apply(*_shop())
    shop.until_pod("shop")
    began = time.monotonic()
    edge.apply(*_gateway())
    gateway = edge.until(_is_programmed, "gateway.gateway.networking.k8s.io", "public", seconds=_SECONDS)
    address = gateway["status"]["addresses"][0]["value"]
    wait_until(lambda: _answer(home, address, "shop.example") == "200 shop", _SECONDS)
    sys.stdout.write(f"first answer after {time.monotonic() - began:.1f} s\n")
    assert _answer(home, address, "other.example").split() == ["404"]
    service = edge.get("service", "public-meshwright")
    assert (service["spec"]["clusterIP"], service["spec"]["type"]) == (address, "ClusterIP")
    assert service["metadata"]["labels"]["team"] == "edge"
    (listener,) = gateway["status"]["listeners"]
    assert (listener["name"], listener["attachedRoutes"]) == ("http", 1)
    edge("delete", "gateway.gateway.networking.k8s.io", "public")
    wait_until(lambda: edge.found("deployment", "public-meshwright") is None, _SECONDS)
    for name in (EDGE, SHOP):
        node_administrator("delete", "namespace", name, "--wait=false")
