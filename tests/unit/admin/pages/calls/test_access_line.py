"""Tests of questions made from a line of the access log of a caller's own sidecar."""

import json

import pytest

from meshwright.admin.pages.calls.access_line import LineError, question
from meshwright.mesh.gateway.rules import Rule
from tests.meshes import gateway as g
from tests.meshes import values as a

SHOP = a.service("shop", a.port(80), a.port(8080))
RULES = (Rule((g.prefix("/a"),), backends=(g.to("v1"),)), Rule(backends=(g.to("v1"),), name="rest"))
MESH = g.view(
    SHOP,
    a.service("v1"),
    g.http_route("web.v1", *RULES, parents=(g.parent("shop", port=8080),)),
    g.grpc_route("calls", *RULES, parents=(g.parent("v1"),)),
)


def called(route: str, cluster: str = "default/v1|8080") -> str:
    """Return the called Service of a line with the name of a route."""
    line = {
        "start_time": "2026-01-01T00:00:00Z",
        "local_address": "10.0.0.8:41234",
        "upstream_cluster": cluster,
        "route_name": route,
        "method": "GET",
        "path": "/a",
    }
    return question(MESH, {"line": json.dumps(line), "from": "default/buyer"}, ()).query["to"]


@pytest.mark.parametrize(
    ("route", "to"),
    [
        ("HTTPRoute:default/web.v1/rule-1", "default/shop:8080"),
        ("HTTPRoute:default/web.v1/rest", "default/shop:8080"),
        ("GRPCRoute:default/calls/rule-1", "default/v1:80"),
        ("service:default/v1", "default/v1:80"),
    ],
)
def test_called_service_of_a_routed_request_is_the_parent_of_the_route(route: str, to: str) -> None:
    """The cluster names the backend, but the client has called the parent."""
    assert called(route) == to


def test_called_service_of_a_redirect_needs_no_cluster() -> None:
    """The sidecar has answered itself."""
    assert called("HTTPRoute:default/web.v1/rule-1", "") == "default/shop:8080"


@pytest.mark.parametrize("route", ["HTTPRoute:default/gone/rule-1", "HTTPRoute:", "HTTPRoute:a/b", "x:y"])
def test_line_of_a_missing_route_asks_for_the_called_service(route: str) -> None:
    """A route that was deleted since has no parent."""
    with pytest.raises(LineError, match="give --to"):
        called(route, "")
