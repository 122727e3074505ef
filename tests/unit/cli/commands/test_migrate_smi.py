"""Tests of `meshwright migrate smi`: routes of the Gateway API for TrafficSplits, and the report."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.tools import libyaml
from tests.tools.forked_cli import ROOT, Done

Run = Callable[..., Done]
Document = dict[str, Any]

SERVICES: Final = """
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec: {selector: {app: cart}, clusterIP: 10.0.0.1, ports: [{port: 80, name: http, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: cart-v2, namespace: shop}
spec: {selector: {app: cart2}, clusterIP: 10.0.0.2, ports: [{port: 80, name: http, targetPort: 8080}]}
---
"""
GROUP: Final = """
apiVersion: specs.smi-spec.io/v1alpha4
kind: HTTPRouteGroup
metadata: {name: beta, namespace: shop}
spec:
  matches:
    - {name: testers, headers: [{x-beta: "yes"}]}
    - {name: writes, pathRegex: "/items/.*", methods: [POST, PUT]}
---
"""
SPLIT: Final = """
apiVersion: split.smi-spec.io/v1alpha4
kind: TrafficSplit
metadata: {name: cart, namespace: shop}
spec: {service: cart, backends: [{service: cart, weight: 90}, {service: cart-v2, weight: 10}]}
---
"""
HEADERS: Final = ", ".join(f'{{x-{number}: "yes"}}' for number in range(17))
BETA: Final = """
apiVersion: split.smi-spec.io/v1alpha4
kind: TrafficSplit
metadata: {name: beta, namespace: shop}
spec:
  service: cart
  matches: [{kind: HTTPRouteGroup, name: beta}]
  backends: [{service: cart-v2, weight: 1}]
---
"""
POLICY: Final = """
apiVersion: policy.meshwright.dev/v1alpha1
kind: RoutePolicy
metadata: {name: cart, namespace: shop}
spec:
  service: cart
  rules: [%s]
---
"""


@pytest.fixture
def migrate(run: Run, tmp_path: Path) -> Callable[..., Document]:
    """Return a function that migrates manifests and returns the report; `lost` stands for exit status 1."""

    def typed(*texts: str, lost: bool = False) -> Document:
        (tmp_path / "mesh.yaml").write_text("---".join(texts))
        done = run("migrate", "smi", "-f", "mesh.yaml", "--json")
        assert done.returncode == int(lost), done
        return dict(json.loads(done.stdout))

    return typed


def route(rules: list[Document], **more: object) -> Document:
    """Return an HTTPRoute for port 80 of Service cart."""
    parent = {"group": "", "kind": "Service", "name": "cart", "port": 80}
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "cart", "namespace": "shop"},
        "spec": {"parentRefs": [parent], "rules": rules, **more},
    }


def to(**weights: int) -> list[Document]:
    """Return backends at port 80; `_` in a name stands for a hyphen."""
    return [
        {"name": name.replace("_", "-"), "port": 80, "weight": weight} for name, weight in weights.items()
    ]


def test_split_becomes_a_route_with_its_weights(migrate: Callable[..., Document]) -> None:
    """A split for all requests is one rule without matches."""
    assert migrate(SERVICES, SPLIT)["manifests"] == [route([{"backendRefs": to(cart=90, cart_v2=10)}])]


def test_matches_become_rules_before_the_rest(migrate: Callable[..., Document]) -> None:
    """Each method is a match; a literal value is an exact one; other requests stay with the Service."""
    path = {"type": "RegularExpression", "value": "/items/.*"}
    matches = [
        {"path": path, "method": "POST"},
        {"path": path, "method": "PUT"},
        {"headers": [{"name": "x-beta", "type": "Exact", "value": "yes"}]},
    ]
    assert migrate(SERVICES, GROUP, BETA)["manifests"] == [
        route([{"matches": matches, "backendRefs": to(cart_v2=1)}, {"backendRefs": to(cart=1)}])
    ]


def test_route_policy_becomes_filters_and_timeouts(migrate: Callable[..., Document]) -> None:
    """The route puts the RoutePolicy of the Service out of force, so its actions move to the route."""
    actions = (
        "{timeout: {request: 1500ms}, headers: {request: {add: [{name: x-a, value: b}]}}, "
        "mirror: {service: cart-v2, percent: 12.5}}"
    )
    mirror = {
        "backendRef": {"name": "cart-v2", "port": 80},
        "fraction": {"numerator": 125_000, "denominator": 1_000_000},
    }
    rule = {
        "filters": [
            {
                "type": "RequestHeaderModifier",
                "requestHeaderModifier": {"add": [{"name": "x-a", "value": "b"}]},
            },
            {"type": "RequestMirror", "requestMirror": mirror},
        ],
        "backendRefs": to(cart=90, cart_v2=10),
        "timeouts": {"request": "1s500ms"},
    }
    assert migrate(SERVICES, SPLIT, POLICY % actions)["manifests"] == [route([rule])]


def test_name_of_another_route_is_not_used(migrate: Callable[..., Document]) -> None:
    """To apply the manifest would replace the other route."""
    other = """
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: cart, namespace: shop}
spec: {parentRefs: [{group: "", kind: Service, name: cart-v2}], rules: [{}]}
---
"""
    report = migrate(SERVICES, SPLIT, other)
    assert [item["metadata"]["name"] for item in report["manifests"]] == ["cart-route-2"]


def test_routes_of_two_services_have_different_names(migrate: Callable[..., Document]) -> None:
    """A Service can have the name that a port of another Service gives its route."""
    several = SERVICES.replace("ports: [", "ports: [{port: 81, name: http-2, targetPort: 8080}, ")
    one = SERVICES.partition("---")[0].replace("cart", "cart-80")
    splits = (
        SPLIT,
        SPLIT.replace("name: cart,", "name: cart-80,").replace("service: cart,", "service: cart-80,", 1),
    )
    made = migrate(several, one, *splits)["manifests"]
    assert [item["metadata"]["name"] for item in made] == ["cart-80", "cart-81", "cart-80-route-2"]


def test_each_manifest_has_a_file_of_its_own(run: Run, tmp_path: Path) -> None:
    """A hyphen is also in names of namespaces."""
    mesh = SERVICES + SPLIT
    texts = (
        mesh.replace("cart,", f"{service},").replace("shop", namespace)
        for namespace, service in (("shop", "web-b"), ("shop-web", "b"))
    )
    (tmp_path / "mesh.yaml").write_text("".join(texts))
    assert run("migrate", "smi", "-f", "mesh.yaml", "--out", "routes").returncode == 0
    assert len([*(tmp_path / "routes").iterdir()]) == 2


@pytest.mark.parametrize(
    ("split", "group", "field"),
    [
        (SPLIT.replace("90", "1000001"), GROUP, "spec.rules[0].backendRefs[0].weight"),
        (BETA, GROUP.replace("/items/.*", "/" + "(a|b)" * 300), "spec.rules[0].matches[0].path.value"),
        (BETA, GROUP.replace('{x-beta: "yes"}', HEADERS), "spec.rules[0].matches[2].headers"),
    ],
)
def test_what_the_gateway_api_refuses_keeps_the_splits(
    split: str, group: str, field: str, migrate: Callable[..., Document]
) -> None:
    """SMI has other limits; no manifest is written that an API server would refuse."""
    report = migrate(SERVICES, group, split, lost=True)
    assert report["manifests"] == []
    assert f"there is no equivalent route: a route cannot have its {field}" in report["findings"][0]["said"]


@pytest.mark.parametrize("path", ["/100%", "/%41nn"])
def test_percent_sign_of_an_expression_stays_in_one(path: str, migrate: Callable[..., Document]) -> None:
    """As an exact path it would have to be an escape, and the escape of a letter would be the letter."""
    (made,) = migrate(SERVICES, GROUP.replace("/items/.*", path), BETA)["manifests"]
    assert made["spec"]["rules"][0]["matches"][0]["path"] == {"type": "RegularExpression", "value": path}


def test_faults_keep_the_splits(migrate: Callable[..., Document]) -> None:
    """The Gateway API has no faults, and the report says what stays."""
    report = migrate(SERVICES, SPLIT, POLICY % "{fault: {abort: {percent: 5, status: 503}}}", lost=True)
    assert report == {
        "findings": [
            {
                "what": "Service shop/cart",
                "standing": "to do",
                "said": "TrafficSplit shop/cart stays in force, because there is no equivalent route: a "
                "RoutePolicy injects faults into its requests",
                "field": "",
                "code": "",
                "do": "",
            }
        ],
        "manifests": [],
    }


def test_refused_object_is_in_the_report(migrate: Callable[..., Document]) -> None:
    """A route without the actions of a RoutePolicy that is refused would look complete."""
    report = migrate(SERVICES, SPLIT, POLICY % "{timeout: {request: soon}}", lost=True)
    refused, written = report["findings"]
    assert (refused["what"], refused["standing"], refused["field"]) == (
        "RoutePolicy shop/cart",
        "refused",
        "spec.rules[0].timeout.request",
    )
    assert (written["what"], written["standing"]) == ("Service shop/cart", "rewritten")


def test_route_is_written_for_each_port_with_its_number(run: Run, tmp_path: Path) -> None:
    """The files can be applied, and the report has the next steps."""
    (tmp_path / "mesh.yaml").write_text("---".join((SERVICES, SPLIT)).replace("80, name", "81, name"))
    done = run("migrate", "smi", "-f", "mesh.yaml", "--out", "routes")
    assert done.returncode == 0
    assert "after the route is accepted, delete TrafficSplit shop/cart" in " ".join(done.stdout.split())
    assert done.stdout.endswith("kubectl apply --server-side -f routes\n")
    (file,) = (tmp_path / "routes").iterdir()
    assert file.name == "httproute-shop-cart.yaml"
    parent = libyaml.load(file.read_text())["spec"]["parentRefs"][0]
    assert parent == {"group": "", "kind": "Service", "name": "cart", "port": 81}


def test_tcp_port_becomes_a_tcp_route(migrate: Callable[..., Document]) -> None:
    """Connections without requests have a route with weights alone."""
    (made,) = migrate(SERVICES.replace("name: http", "name: tcp"), SPLIT)["manifests"]
    assert made["apiVersion"], made["kind"] == ("gateway.networking.k8s.io/v1", "TCPRoute")
    assert made["spec"]["rules"] == [{"backendRefs": to(cart=90, cart_v2=10)}]


def test_service_with_a_route_gets_no_second_one(migrate: Callable[..., Document]) -> None:
    """The split is out of force there, so a further route would change what the first one does."""
    there = yaml.safe_dump(route([{"backendRefs": to(cart_v2=1)}]))
    report = migrate(SERVICES, SPLIT, f"\n{there}", lost=True)
    assert report["manifests"] == []
    (finding,) = report["findings"]
    assert finding["said"].endswith("port 80 has a route of the Gateway API already, which takes precedence")


def test_source_must_be_given_once(run: Run) -> None:
    """Neither source, or both, is an error of use."""
    for typed in ((), ("--kubernetes", "-f", "mesh.yaml")):
        done = run("migrate", "smi", *typed)
        assert (done.returncode, "exactly one source is required" in done.stderr) == (2, True)


def test_page_shows_the_route_of_its_split(migrate: Callable[..., Document]) -> None:
    """The route in docs/start/from-smi.md is that of the TrafficSplit on the page."""
    page = (ROOT / "docs" / "start" / "from-smi.md").read_text("utf-8")
    split, route = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert migrate(SERVICES, f"\n{split}")["manifests"] == [libyaml.load(route)]
