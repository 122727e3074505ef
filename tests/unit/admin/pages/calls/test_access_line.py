"""Tests of questions made from a line of the access log of a caller's own sidecar."""

import json
from dataclasses import replace

import pytest

from meshwright.admin.pages.calls.access_line import LineError, Question, question
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.workload import Edge
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


EDGE = replace(a.workload("edge", "10.0.0.9"), interception=Edge("front"))
OTHER_EDGE = replace(a.workload("other", "10.0.0.9"), interception=Edge("other"))
AT_GATEWAYS = g.view(
    g.CLASS,
    EDGE,
    OTHER_EDGE,
    a.workload("echo", "10.0.0.7"),
    g.gateway("front", g.listener(), g.https()),
    g.gateway("other", g.listener(port=81)),
)


def line_at(local_address: str, **fields: str) -> dict[str, str]:
    """Return a query with a line of the proxy at an address; a client outside the mesh has no identity."""
    line = {"start_time": "2026-01-01T00:00:00Z", "local_address": local_address, "caller": None, **fields}
    return {"from": "", "to": "", "line": json.dumps(line)}


def test_line_of_a_gateway_is_a_question_about_the_gateway() -> None:
    """The local address has the gateway and the port, and the server name differs from the host."""
    fields = {"requested_server_name": "a.test", "authority": "b.test", "method": "GET", "path": "/a?b"}
    found = question(AT_GATEWAYS, line_at("10.0.0.9:443", response_code="404", **fields), ("x: y",))
    assert found == Question(
        {"gateway": "default/front:443", "host": "a.test", "method": "GET", "path": "/a?b"},
        ("host: b.test", "x: y"),
        {"start_time": "2026-01-01T00:00:00Z", "response_code": "404"},
    )


def test_line_of_a_gateway_with_plain_text_or_connections_has_fewer_fields() -> None:
    """Several gateways at one address have different ports; an unknown port is of the first gateway."""
    assert question(AT_GATEWAYS, line_at("10.0.0.9:81"), ()).query == {"gateway": "default/other:81"}
    assert question(AT_GATEWAYS, line_at("10.0.0.9:99"), ()).query == {"gateway": "default/front:99"}
    named = question(AT_GATEWAYS, line_at("10.0.0.9:81") | {"gateway": "default/old"}, ())
    assert named.query == {"gateway": "default/old"}


def test_line_with_a_given_caller_is_of_the_callers_sidecar() -> None:
    """A client of the mesh may call a gateway too, and then its own sidecar has the gateway's address."""
    line = line_at("10.0.0.9:80", upstream_cluster="default/echo|80") | {"from": "a/b", "to": "a/c:80"}
    assert question(AT_GATEWAYS, line, ()).query == {"from": "a/b", "to": "a/c:80"}


def test_line_without_caller_and_gateway_asks_for_one_of_them() -> None:
    """A proxy of a former gateway has an address that the mesh does not know."""
    with pytest.raises(LineError) as raised:
        question(AT_GATEWAYS, line_at("10.0.0.77:80"), ())
    assert str(raised.value) == (
        "the log line does not name the caller: give --from if it is from the caller's own sidecar, or "
        "--gateway if it is from a gateway that does not have the address 10.0.0.77:80 any more"
    )
