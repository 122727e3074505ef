"""Tests of the description of a gateway's ports, in terms of the mesh."""

from dataclasses import replace

from catalog.policy.edge import edge_ports
from catalog.policy.values.edge import EdgePort
from catalog.relations.groups import group_of
from meshwright.admin.pages.proxies import edge_description as describe
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.workload import Edge
from tests.meshes import gateway as g
from tests.meshes import values as a

EDGE = replace(a.workload("edge", "10.0.0.9"), interception=Edge("edge"))
MESH = (
    *(a.service("v1", address="10.1.0.2"), a.workload("v1", "10.0.0.2"), EDGE),
    *(g.CLASS, g.tls_secret("cert"), MeshConfig(permissive=True)),
)
LISTENERS = (
    g.listener("http", 80, "shop.example"),
    g.https("https", "shop.example"),
    g.passthrough("tls", 8443, "db.example"),
    g.listener("tcp", 9000, protocol="TCP"),
    g.listener("closed", 9001, protocol="TCP"),
)


def ports(*things: object) -> tuple[EdgePort, ...]:
    """Return the ports of the gateway's proxy in a mesh with these objects."""
    view = g.view(*MESH, *things)
    return edge_ports(view, group_of(view, EDGE))


def test_listeners_are_shown_by_port_and_server_name() -> None:
    """TLS is ended or passed on, and only HTTP has hosts."""
    assert [line["text"] for line in describe.listeners(ports(g.gateway("edge", *LISTENERS)))] == [
        "edge port 80 of Gateway default/edge: connections, with requests for shop.example",
        (
            "edge port 443 of Gateway default/edge: TLS for shop.example ended with Secret default/cert, "
            "with requests for shop.example"
        ),
        "edge port 8443 of Gateway default/edge: TLS for db.example passed on",
        "edge port 9000 of Gateway default/edge: connections",
        "edge port 9001 of Gateway default/edge: connections",
    ]


def test_validation_of_clients_is_shown() -> None:
    """The mode tells whether clients without a valid certificate are admitted."""
    gateway = g.with_validation(g.gateway("edge", g.https("https", "shop.example")), g.validation())
    (line,) = describe.listeners(ports(gateway, g.ca_bundle()))
    assert line["text"] == (
        "edge port 443 of Gateway default/edge: TLS for shop.example ended with Secret default/cert, "
        "client certificates validated (AllowValidOnly), with requests for shop.example"
    )


def test_routes_are_shown_by_host_with_their_objects() -> None:
    """A host without a route is answered with 404, and connections without one are closed."""
    rule = Rule((g.exact("/a"),), backends=(g.to("v1"),))
    web = g.http_route("web", rule, parents=(g.at("edge", "http"),))
    tcp = g.tcp_route("tcp", Rule(backends=(g.to("v1"),)), parents=(g.at("edge", "tcp"),))
    lines = describe.routes(ports(g.gateway("edge", *LISTENERS), web, tcp))
    assert [line["text"] for line in lines] == [
        (
            "edge port 80 of Gateway default/edge, host shop.example: * /a -> default/v1 port 8080 "
            "(HTTPRoute default/web)"
        ),
        (
            "edge port 443 of Gateway default/edge, TLS for shop.example ended with Secret default/cert, "
            "host shop.example: everything -> answer 404"
        ),
        "edge port 8443 of Gateway default/edge, TLS for db.example passed on: connections are closed",
        (
            "edge port 9000 of Gateway default/edge: everything -> default/v1 port 8080 "
            "(TCPRoute.gateway.networking.k8s.io default/tcp)"
        ),
        "edge port 9001 of Gateway default/edge: connections are closed",
    ]
    assert lines[0]["backends"] == [{"service": "default/v1", "target_port": "8080", "weight": 1}]
