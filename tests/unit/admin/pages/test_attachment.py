"""Tests of the page of a Gateway API route: its state beside its value."""

from dataclasses import replace
from typing import Any

from meshwright.admin.html.frame import PageRequest
from meshwright.admin.html.looks import policies
from meshwright.admin.html.renderer import drawn
from meshwright.admin.pages import debug
from meshwright.mesh.gateway.rules import Rule
from tests.meshes import gateway as g
from tests.meshes import values as a

MESH = g.view(
    a.service("echo", a.port(80), a.port(8080)),
    a.service("v1"),
    g.http_route(
        "web",
        Rule(backends=(g.to("v1"), g.to("gone"))),
        Rule(dropped="RE2 refuses `(`"),
        parents=(g.parent("echo"), g.parent("echo", port=81)),
    ),
    g.tcp_route("db", Rule(backends=(g.to("v1"),)), parents=(g.parent("echo", port=80),)),
)


async def shown(reading: Any, named: str) -> Any:
    """Return the document of one object."""
    read = replace(reading, the_view=MESH, the_objects=dict(MESH.sourced.values_unrecorded()))
    return await debug.policies(read, named)


async def test_page_of_a_route_has_the_verdicts_about_its_parents_and_references(reading: Any) -> None:
    """They are those of its status; another kind of object has none."""
    (route,) = (await shown(reading, "HTTPRoute default/web"))["objects"]
    attached = "attached to ports 80, 8080 of Service default/echo"
    assert route["attachment"] == {
        "parents": [
            {
                "service": "default/echo",
                "ports": [80, 8080],
                "accepted": True,
                "reason": "Accepted",
                "message": attached,
            },
            {
                "service": "default/echo",
                "ports": [],
                "accepted": False,
                "reason": "NoMatchingParent",
                "message": "Service default/echo has no port 81",
            },
        ],
        "references": {
            "resolved": False,
            "reason": "BackendNotFound",
            "message": "spec.rules[0].backendRefs[1]: Service default/gone does not exist",
        },
        "dropped": "Dropped Rule spec.rules[1]: RE2 refuses `(`",
    }
    (service,) = (await shown(reading, "Service default/echo"))["objects"]
    assert "attachment" not in service


async def test_page_of_a_route_names_state_and_reason(reading: Any) -> None:
    """The kind with its group is one name, and a refused route shows why."""
    named = "TCPRoute.gateway.networking.k8s.io default/db"
    request = PageRequest("/debug/policies", (("object", named),), "")
    text = drawn(policies.POLICIES, await shown(reading, named), request, ())
    assert "Conflicted" in text
    assert "port 80 has HTTPRoutes, which precede TCPRoutes" in text
    assert "object=Service+default%2Fecho" in text
