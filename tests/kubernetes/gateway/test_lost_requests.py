"""Requests through a gateway of three proxies while each of its parts changes: none is lost.

The table that the test prints has the requests and the failed ones of each change.
"""

import functools
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml

from tests.kubernetes.gateway.edge_load import EdgeLoad, edge_load
from tests.kubernetes.gateway.installation import namespace
from tests.kubernetes.gateway.test_gateways_on_node import (
    EDGE,
    GATEWAY_API,
    SHOP,
    edge_gateway,
    is_programmed,
    shop_behind_edge,
)
from tests.kubernetes.install.test_chart_on_node import HOME
from tests.kubernetes.tools.kubectl import Kubectl
from tests.kubernetes.tools.objects import Document
from tests.tools.tls_secrets import self_signed
from tools.real_parts.node import Node

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.timeout(3000),
    pytest.mark.usefixtures("helm_part"),
]

CERTIFICATES, LISTENERS, ROUTES = 100, 10, 1000
GATEWAY = "gateway.gateway.networking.k8s.io"
HOST = "shop.example"
_SECONDS = 300


@dataclass(frozen=True)
class Edge:
    """The namespace of the gateway, that of the control plane, and the load."""

    kubectl: Kubectl
    home: Kubectl
    load: EdgeLoad

    def rolled(self) -> None:
        """Replace the gateway's Pods one after the other."""
        self._restarted(self.kubectl, "public-meshwright")

    def upgraded(self) -> None:
        """Replace the control plane's Pod, as an upgrade does."""
        self._restarted(self.home, "meshwright")

    def killed(self) -> None:
        """Kill the control plane without notice, and wait for the next one."""
        self.home(
            "delete", "pod", "-l", "app.kubernetes.io/component=control-plane", "--force", "--grace-period=0"
        )
        self.home("rollout", "status", "deployment/meshwright", f"--timeout={_SECONDS}s")

    def certificates(self) -> None:
        """Replace the listener's certificate many times."""
        for _ in range(CERTIFICATES):
            self.kubectl.apply(yaml.safe_load(self_signed(HOST).manifest("shop-example", EDGE)))
            self.load.until_more(4)

    def listeners(self) -> None:
        """Add a listener, and remove it, several times."""
        *_, gateway = edge_gateway(replicas=3)
        added = {"name": "other", "port": 8081, "protocol": "HTTP"}
        spec = gateway["spec"]
        more = {**gateway, "spec": {**spec, "listeners": [*spec["listeners"], added]}}
        for _ in range(LISTENERS):
            for form in (more, gateway):
                self.kubectl.apply(form)
                served = functools.partial(_serves, len(form["spec"]["listeners"]))
                self.kubectl.until(served, GATEWAY, "public", seconds=_SECONDS)

    def routes(self) -> None:
        """Apply many routes at once, wait until the last one is accepted, and delete them."""
        for first in range(0, ROUTES, 100):  # kubectl takes seconds for each hundred on a busy machine
            text = yaml.safe_dump_all(map(_route, range(first, first + 100)), sort_keys=False)
            self.kubectl("apply", "--server-side", "-f", "-", given=text)
        last = f"route-{ROUTES - 1}"
        self.kubectl.until(_is_accepted, "httproute", last, seconds=_SECONDS)
        self.kubectl("delete", "httproute", "-l", "many=yes")
        self.load.until_more(100)

    def _restarted(self, kubectl: Kubectl, deployment: str) -> None:
        kubectl("rollout", "restart", f"deployment/{deployment}")
        kubectl("rollout", "status", f"deployment/{deployment}", f"--timeout={_SECONDS}s")


def _serves(listeners: int, gateway: Document) -> bool:
    return is_programmed(gateway) and len(gateway["status"]["listeners"]) == listeners


def _route(number: int) -> Document:
    return {
        "apiVersion": GATEWAY_API,
        "kind": "HTTPRoute",
        "metadata": {"name": f"route-{number}", "namespace": EDGE, "labels": {"many": "yes"}},
        "spec": {
            "parentRefs": [{"name": "public"}],
            "hostnames": [f"host-{number}.example"],
            "rules": [{"backendRefs": [{"name": "shop", "namespace": SHOP, "port": 80}]}],
        },
    }


def _is_accepted(route: Document) -> bool:
    parents = route.get("status", {}).get("parents", ())
    conditions = {item["type"]: item["status"] for parent in parents for item in parent["conditions"]}
    return conditions.get("Accepted") == "True"


@pytest.fixture
def edge(home: Node, node_administrator: Kubectl, tmp_path: Path) -> Iterator[Edge]:
    """A gateway with three proxies and a shop behind it, under load."""
    for name in (EDGE, SHOP):
        node_administrator.apply(namespace(name))
    own, shop = (replace(node_administrator, namespace=name) for name in (EDGE, SHOP))
    shop.apply(*shop_behind_edge())
    shop.until_pod("shop")
    own.apply(yaml.safe_load(self_signed(HOST).manifest("shop-example", EDGE)))
    own(
        "create",
        "role",
        "certificates",
        "--verb=list,watch",
        "--resource=secrets",
        "--resource-name=shop-example",
    )
    account = f"--serviceaccount={HOME}:meshwright"
    own("create", "rolebinding", "certificates", "--role=certificates", account)
    own.apply(*edge_gateway(replicas=3))
    gateway = own.until(is_programmed, GATEWAY, "public", seconds=_SECONDS)
    own("rollout", "status", "deployment/public-meshwright", f"--timeout={_SECONDS}s")
    address = gateway["status"]["addresses"][0]["value"]
    with edge_load(home.cluster.enter, address, HOST, tmp_path / "counts.json") as load:
        load.until_more(200)
        yield Edge(own, replace(node_administrator, namespace=HOME), load)
    for name in (EDGE, SHOP):
        node_administrator("delete", "namespace", name, "--wait=false")


def test_no_change_of_a_gateway_loses_a_request(edge: Edge) -> None:
    """Gateway, control plane, certificate, listeners and routes change under load, one after the other."""
    scenes: dict[str, Callable[[], None]] = {
        "gateway rolled": edge.rolled,
        "control plane killed": edge.killed,
        "control plane upgraded": edge.upgraded,
        f"certificate replaced {CERTIFICATES} times": edge.certificates,
        f"listener added and removed {LISTENERS} times": edge.listeners,
        f"{ROUTES} routes applied at once": edge.routes,
    }
    lost: dict[str, list[str]] = {}
    sys.stdout.write("\nrequests  failed  seconds  change\n")
    for name, change in scenes.items():
        before, began = edge.load.counts(), time.monotonic()
        change()
        edge.load.until_more(100)
        counts = edge.load.counts()
        lost[name] = counts.failed[len(before.failed) :]
        requests = counts.answered - before.answered + len(lost[name])
        sys.stdout.write(f"{requests:8}  {len(lost[name]):6}  {time.monotonic() - began:7.0f}  {name}\n")
    assert {name: failed for name, failed in lost.items() if failed} == {}
