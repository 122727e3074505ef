"""Tests of the objects behind an answer, as manifests that can be copied."""

from typing import Any

from meshwright.admin.pages.calls.explain import answer
from meshwright.admin.pages.calls.relevant_objects import MOST
from meshwright.mesh.config import MeshConfig
from tests.meshes import values as a

ASKED = {"from": "default/buyer", "to": "default/store:80", "path": "/buy"}
SHOP = (
    a.service("store"),
    a.workload("store-1", "10.0.0.1", account="store", app="store"),
    a.workload("buyer-1", "10.0.0.2", account="buyer"),
    a.route_group("routes", a.match("buy", "/buy"), a.match("sell", "/sell")),
    a.target("buyers", "buyer", "store", a.http("routes", "buy")),
    a.target("others", "bank", "store", a.http("routes")),
    a.split("canary", "store", ("store", 1)),
)


def _object_line(*things: object, **asked: str) -> list[dict[str, Any]]:
    result = answer(a.view(*things), ASKED | asked, ())["objects"]
    assert isinstance(result, list)
    return result  # type: ignore[return-value]


def test_deciding_objects_come_first() -> None:
    """The deciding objects come first, then the others that were consulted.

    Targets of other callers are left out.
    """
    messages = _object_line(*SHOP)
    assert [(item["object"], item["decides"]) for item in messages] == [
        ("TrafficSplit default/canary", True),
        ("TrafficTarget default/buyers", True),
        ("HTTPRouteGroup default/routes", False),
    ]
    assert messages[1]["manifest"]["spec"]["rules"] == [
        {"kind": "HTTPRouteGroup", "name": "routes", "matches": ["buy"]}
    ]
    assert [match["name"] for match in messages[2]["manifest"]["spec"]["matches"]] == ["buy", "sell"]
    assert {item["value"] for item in messages} == {None}


def test_objects_of_a_denial_are_listed() -> None:
    """For a denied request the consulted TrafficTarget and route group are listed.

    Their rules do not match.
    """
    messages = _object_line(*SHOP, path="/steal")
    assert [(item["object"], item["decides"]) for item in messages] == [
        ("TrafficSplit default/canary", True),
        ("TrafficTarget default/buyers", False),
        ("HTTPRouteGroup default/routes", False),
    ]


def test_object_without_a_manifest_shows_its_value() -> None:
    """A MeshConfig is shown by its values in force, without a made-up manifest."""
    (result,) = _object_line(*SHOP[:3], MeshConfig(permissive=True))
    assert (result["object"], result["manifest"], result["value"]["permissive"]) == (
        "MeshConfig osm-system/osm-mesh-config",
        None,
        True,
    )


def test_number_of_listed_objects_is_bounded() -> None:
    """At most `MOST` objects are listed, with the deciding ones first."""
    many = (a.target(f"t{number:02}", "buyer", "store", a.http("routes", "sell")) for number in range(MOST))
    messages = _object_line(*SHOP, *many)
    assert len(messages) == MOST
    assert messages[1]["object"] == "TrafficTarget default/buyers"
