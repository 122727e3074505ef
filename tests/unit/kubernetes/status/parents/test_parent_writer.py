"""Tests of the writer of `status.parents`: own entries alone, in one write, with an API server in memory."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from catalog.relations.attachment import attachment
from catalog.relations.gateways.listener_sets import served_parent
from catalog.relations.verdicts import Attachment
from catalog.store.edits import Edits
from catalog.store.view import View
from meshwright.kube.api import Api
from meshwright.kube.resource import Resource
from meshwright.kubernetes.status.attempts import Attempts, WritePostponed
from meshwright.kubernetes.status.cluster import Cluster
from meshwright.kubernetes.status.event import EventReporter
from meshwright.kubernetes.status.object_status import ObjectStatusTable
from meshwright.kubernetes.status.parents.writer import AT_ONCE, ParentWriter
from meshwright.kubernetes.status.served_objects import TRIES
from meshwright.mesh.gateway.references import ParentRef
from meshwright.mesh.gateway.routes import HTTPRoute
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.kinds import GATEWAY, GATEWAY_API, GRPC_ROUTE, HTTP_ROUTE, Kind
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.origins import InCluster
from meshwright.mesh.problems.problem import Problem, Severity
from tests.meshes import gateway as g
from tests.meshes import values as a
from tests.unit.kube.scripted_api import ScriptedServer, api_of
from tests.unit.kubernetes.status.object_server import ObjectServer, service_parent
from tests.unit.kubernetes.status.test_attempts import RecordingMeter

START = datetime(2026, 1, 2, tzinfo=UTC)
STAMP = "2026-01-02T00:00:00Z"
LATER = "2026-01-02T01:00:00Z"
ECHO = a.service("echo", a.port(80), a.port(8080), address="10.0.0.1")
V1 = a.service("v1", a.port(80), address="10.0.0.2")
TO_V1 = Rule(backends=(g.to("v1"),))
FOREIGN: dict[str, Any] = {
    "parentRef": {"name": "edge"},
    "controllerName": "example.org/gateway",
    "conditions": [{"type": "Accepted", "status": "True", "reason": "Accepted", "extra": 1}],
}


async def served(kind: Kind) -> Resource:
    """Return the resource of a kind."""
    return Resource(kind.group, "v1", f"{kind.name.lower()}s", kind.name)


def written(parent: ParentRef) -> dict[str, object]:
    """Return a parentRef as its owner writes it: a Gateway without group and kind."""
    return {
        **({} if parent.kind == GATEWAY else {"group": parent.kind.group, "kind": parent.kind.name}),
        "name": parent.name,
        **({"port": parent.port} if parent.port else {}),
        **({"sectionName": parent.section} if parent.section else {}),
    }


class Scene:
    """A mesh, its status table, and a writer of the routes at an API server in memory."""

    def __init__(self, api: Api, server: ObjectServer) -> None:
        self.server, self.now = server, START
        self.mesh: View = g.view(ECHO, V1)
        self.standing = ObjectStatusTable("east", set(), routes={HTTP_ROUTE})
        cluster = Cluster(api, served, self.standing, lambda: self.now, EventReporter("a", "home"))
        attempts = Attempts(RecordingMeter(), lambda: 0.5, lambda: 0.0)
        self.writer = ParentWriter(cluster, self, attempts)

    def decided(self, key: ObjectKey) -> Attachment | None:
        """Return the verdicts about a route."""
        return attachment(self.mesh, key) if key in self.mesh.sourced else None

    def serves(self, parent: ObjectKey) -> bool:
        """Return whether a Gateway, or the Gateway of a ListenerSet, is served here."""
        return served_parent(self.mesh, parent) is not None

    def edit(self, name: str, *parents: Any, generation: int = 1, rule: Rule = TO_V1) -> ObjectKey:
        """Change a route at the API server and in the mesh."""
        self.server.put(name, *map(written, parents), generation=generation)
        route = g.http_route(name, rule, parents=parents)
        return self.know(route, generation)

    def know(self, route: HTTPRoute, generation: int) -> ObjectKey:
        """Change a route in the mesh alone."""
        key = g.key_of(route)
        origin = InCluster("east", "1", generation, self.server.uid(key.name))
        edits = {key: SourcedObject(key, route, origin)}
        self.mesh.apply(Edits(objects=edits))
        self.standing.apply_edits(edits)
        return key

    def add(self, *things: Any) -> None:
        """Add gateways and classes to the mesh."""
        self.mesh.apply(Edits(objects=g.view(*things).known().objects))

    def refuse(self, key: ObjectKey, generation: int) -> None:
        """Put a route out of force, because its newest form cannot be read."""
        self.mesh.apply(Edits(objects={key: None}))
        self.standing.apply_edits({key: None})
        problem = Problem(
            code="bad-route",
            severity=Severity.ERROR,
            origin=InCluster("east", "2", generation, self.server.uid(key.name)),
            key=key,
            field="spec.rules[0]",
            expected="The rule is wrong. Correct the rule.",
        )
        self.standing.apply_problems({problem: True})


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """Return a scene with a mesh of two Services."""
    server = ObjectServer()
    async with ScriptedServer(server.play) as scripted, api_of(scripted) as api:
        yield Scene(api, server)


def condition(kind: str, status: str, reason: str, message: str, generation: int = 1, at: str = STAMP) -> Any:
    """Return a written condition."""
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
        "lastTransitionTime": at,
    }


def own(reference: dict[str, object], *conditions: Any) -> dict[str, Any]:
    """Return an entry of Meshwright."""
    controller = "mesh-controller" if reference.get("kind") == "Service" else "gateway-controller"
    return {
        "parentRef": reference,
        "controllerName": f"meshwright.dev/{controller}",
        "conditions": list(conditions),
    }


RESOLVED = condition("ResolvedRefs", "True", "ResolvedRefs", "all references are resolved")
AT_80 = condition("Accepted", "True", "Accepted", "attached to port 80 of Service default/echo")
NO_81 = condition("Accepted", "False", "NoMatchingParent", "Service default/echo has no port 81")


async def test_each_parent_gets_its_entry_as_written_in_one_write(scene: Scene) -> None:
    """All conditions of all parents are written at once, behind the entries of others."""
    key = scene.edit("split", g.parent("echo", port=80), g.parent("echo", port=81))
    scene.server.set_status("split", [FOREIGN])
    await scene.writer.report(key, 0.0)
    assert scene.server.entries("split") == [
        FOREIGN,
        own(service_parent("echo", port=80), AT_80, RESOLVED),
        own(service_parent("echo", port=81), NO_81, RESOLVED),
    ]
    assert scene.server.take_requests() == ["GET", "PUT"]
    await scene.writer.report(key, 0.0)
    assert scene.server.take_requests() == [], "nothing has changed"


async def test_one_service_in_two_forms_gets_two_entries(scene: Scene) -> None:
    """The API accepts the group `core` beside the empty one, and each reference has an entry of its own."""
    parents = g.parent("echo", port=80), replace(g.parent("echo", port=80), is_core=True)
    written = service_parent("echo", port=80), {**service_parent("echo", port=80), "group": "core"}
    scene.server.put("split", *written)
    key = scene.know(g.http_route("split", TO_V1, parents=parents), 1)
    await scene.writer.report(key, 0.0)
    assert scene.server.entries("split") == [own(reference, AT_80, RESOLVED) for reference in written]
    scene.server.take_requests()
    await scene.writer.report(key, 0.0)
    assert scene.server.take_requests() == [], "nothing has changed"


async def test_own_entries_change_at_their_place_and_keep_the_time_of_their_transition(scene: Scene) -> None:
    """Between entries of others the own one stays; only a changed status gets a new time."""
    key = scene.edit("split", g.parent("echo", port=80))
    await scene.writer.report(key, 0.0)
    mine = scene.server.entries("split")
    scene.server.set_status("split", [FOREIGN, *mine, FOREIGN])
    scene.now += timedelta(hours=1)
    scene.edit("split", g.parent("echo", port=80), generation=2, rule=Rule(backends=(g.to("none"),)))
    await scene.writer.report(key, 0.0)
    lost = "spec.rules[0].backendRefs[0]: Service default/none does not exist"
    assert scene.server.entries("split") == [
        FOREIGN,
        own(
            service_parent("echo", port=80),
            {**AT_80, "observedGeneration": 2},
            condition("ResolvedRefs", "False", "BackendNotFound", lost, 2, LATER),
        ),
        FOREIGN,
    ]


async def test_the_entry_of_a_former_parent_is_removed_and_others_stay(scene: Scene) -> None:
    """Without any Service as parent no own entry is left, and foreign ones are the same."""
    key = scene.edit("split", g.parent("echo", port=80), g.parent("echo", port=8080))
    await scene.writer.report(key, 0.0)
    scene.server.set_status(
        "split", [scene.server.entries("split")[0], FOREIGN, scene.server.entries("split")[1]]
    )
    scene.edit("split", g.parent("echo", port=8080), generation=2)
    await scene.writer.report(key, 0.0)
    assert [entry["parentRef"] for entry in scene.server.entries("split")] == [
        FOREIGN["parentRef"],
        service_parent("echo", port=8080),
    ]
    scene.edit("split", generation=3)
    await scene.writer.report(key, 0.0)
    assert scene.server.entries("split") == [FOREIGN]


async def test_a_route_of_foreign_gateways_alone_is_never_read_or_written(scene: Scene) -> None:
    """The status says nothing about parents of other controllers, or about missing gateways."""
    scene.add(g.FOREIGN_CLASS, g.gateway("other", class_name="other"))
    key = scene.edit(
        "split", g.at("other"), g.at("missing"), g.parent("edge", kind=Kind("Mesh", GATEWAY_API))
    )
    await scene.writer.report(key, 0.0)
    assert (scene.server.take_requests(), scene.server.entries("split")) == ([], [])


AT_HTTP = condition("Accepted", "True", "Accepted", "attached to Gateway default/edge: http")
NO_ADMIN = condition(
    "Accepted", "False", "NoMatchingParent", "Gateway default/edge lacks a listener named admin"
)


async def test_services_and_gateways_have_entries_of_two_controllers_in_one_write(scene: Scene) -> None:
    """Each parentRef gets its entry, in the order of the route, and a foreign entry stays."""
    scene.add(g.CLASS, g.gateway("edge"))
    key = scene.edit("split", g.at("edge", "admin"), g.parent("echo", port=80), g.at("edge"))
    scene.server.set_status("split", [FOREIGN])
    await scene.writer.report(key, 0.0)
    assert scene.server.entries("split") == [
        FOREIGN,
        own({"name": "edge", "sectionName": "admin"}, NO_ADMIN, RESOLVED),
        own(service_parent("echo", port=80), AT_80, RESOLVED),
        own({"name": "edge"}, AT_HTTP, RESOLVED),
    ]
    assert scene.server.take_requests() == ["GET", "PUT"]
    await scene.writer.report(key, 0.0)
    assert scene.server.take_requests() == [], "nothing has changed"


AT_SET = condition("Accepted", "True", "Accepted", "attached to ListenerSet default/set: http")


async def test_each_parent_of_a_gateway_and_its_set_has_an_entry_of_its_own(scene: Scene) -> None:
    """ListenerSetDualParentRefIndependence, ListenerSetRouteStatusScopedToParentRef."""
    scene.add(g.CLASS, g.open_gateway("edge"), g.listener_set("set", g.listener(hostname="set.example")))
    key = scene.edit("split", g.at("edge", "admin"), g.at_set("set"), g.at_set("missing"))
    await scene.writer.report(key, 0.0)
    reference: dict[str, object] = {"group": GATEWAY_API, "kind": "ListenerSet", "name": "set"}
    assert scene.server.entries("split") == [
        own({"name": "edge", "sectionName": "admin"}, NO_ADMIN, RESOLVED),
        own(reference, AT_SET, RESOLVED),
    ]
    scene.server.take_requests()
    await scene.writer.report(key, 0.0)
    assert scene.server.take_requests() == [], "nothing has changed"
    scene.refuse(key, 2)
    await scene.writer.report(key, 0.0)
    reasons = [entry["conditions"][0]["reason"] for entry in scene.server.entries("split")]
    assert reasons == ["UnsupportedValue", "UnsupportedValue"]


async def test_a_gateway_needs_a_grant_where_the_mesh_needs_none(scene: Scene) -> None:
    """Both entries of one route have their own ResolvedRefs, and the grant changes one of them."""
    there = a.service("there", a.port(80), namespace="other", address="10.0.0.3")
    scene.add(g.CLASS, g.gateway("edge"))
    scene.mesh.apply(Edits(objects=a.objects(there)))
    rule = Rule(backends=(g.to("there", namespace="other"),))
    key = scene.edit("split", g.parent("echo", port=80), g.at("edge"), rule=rule)
    await scene.writer.report(key, 0.0)
    reasons = [entry["conditions"][1]["reason"] for entry in scene.server.entries("split")]
    assert reasons == ["ResolvedRefs", "RefNotPermitted"]


async def test_an_edit_of_the_gateway_changes_the_entry_of_the_route(scene: Scene) -> None:
    """The generation is the route's; without the class the entry goes."""
    scene.add(g.CLASS, g.gateway("edge"))
    key = scene.edit("split", g.at("edge"), generation=7)
    await scene.writer.report(key, 0.0)
    scene.add(g.gateway("edge", g.listener(kinds=(GRPC_ROUTE,))))
    await scene.writer.report(key, 0.0)
    accepted, _ = scene.server.entries("split")[0]["conditions"]
    assert (accepted["reason"], accepted["observedGeneration"]) == ("NotAllowedByListeners", 7)
    scene.mesh.apply(Edits(objects={g.key_of(g.CLASS): None}))
    await scene.writer.report(key, 0.0)
    assert scene.server.entries("split") == []


async def test_a_refused_route_says_so_at_the_gateways_served_here(scene: Scene) -> None:
    """A gateway of another controller gets no entry, although the route cannot be read."""
    scene.add(g.CLASS, g.gateway("edge"), g.FOREIGN_CLASS, g.gateway("other", class_name="other"))
    key = scene.edit("split", g.at("edge"), g.at("other"), generation=2)
    scene.refuse(key, 2)
    await scene.writer.report(key, 0.0)
    (entry,) = scene.server.entries("split")
    assert entry["parentRef"] == {"name": "edge"}
    assert entry["controllerName"] == "meshwright.dev/gateway-controller"
    assert [item["reason"] for item in entry["conditions"]] == ["UnsupportedValue"]


async def test_a_conflict_is_followed_by_another_read(scene: Scene) -> None:
    """The entry that another controller has written in between survives."""
    key = scene.edit("split", g.parent("echo", port=80))
    scene.server.before_update = lambda: scene.server.set_status("split", [FOREIGN])
    await scene.writer.report(key, 0.0)
    assert scene.server.take_requests() == ["GET", "PUT", "GET", "PUT"]
    assert scene.server.entries("split") == [FOREIGN, own(service_parent("echo", port=80), AT_80, RESOLVED)]


async def test_conflicts_without_end_postpone_the_write(scene: Scene) -> None:
    """A rival that always writes first costs a bounded number of requests."""
    key = scene.edit("split", g.parent("echo", port=80))

    def rival() -> None:
        scene.server.set_status("split", [FOREIGN])
        scene.server.before_update = rival

    scene.server.before_update = rival
    with pytest.raises(WritePostponed) as raised:
        await scene.writer.report(key, 5.0)
    assert (raised.value.is_refused, raised.value.until > 5.0) == (True, True)
    assert scene.server.take_requests() == ["GET", "PUT"] * TRIES


async def test_a_newer_generation_is_never_overwritten(scene: Scene) -> None:
    """An object, or an own entry, that is newer than the decision is left alone."""
    key = scene.edit("split", g.parent("echo", port=80), generation=1)
    scene.server.put("split", service_parent("echo", port=8080), generation=2)
    await scene.writer.report(key, 0.0)
    assert scene.server.entries("split") == []
    newer = own(service_parent("echo", port=80), {**AT_80, "observedGeneration": 5})
    scene.server.put("split", service_parent("echo", port=80), generation=1)
    scene.server.set_status("split", [newer])
    await scene.writer.report(key, 0.0)
    assert scene.server.entries("split") == [newer]
    assert "PUT" not in scene.server.take_requests()


async def test_a_change_of_a_service_keeps_the_routes_generation(scene: Scene) -> None:
    """ObservedGeneration is the route's, whatever has caused the change."""
    key = scene.edit("split", g.parent("echo", port=80), generation=7)
    await scene.writer.report(key, 0.0)
    scene.mesh.apply(Edits(objects={a.object_key(ECHO): None}))
    await scene.writer.report(key, 0.0)
    accepted = scene.server.entries("split")[0]["conditions"][0]
    assert (accepted["reason"], accepted["observedGeneration"]) == ("NoMatchingParent", 7)


async def test_a_refused_route_says_so_at_every_parent(scene: Scene) -> None:
    """The entries of a route whose newest form cannot be read are made from the object itself, once."""
    key = scene.edit("split", g.parent("echo", port=80))
    await scene.writer.report(key, 0.0)
    scene.server.put("split", service_parent("echo", port=80), {"name": "edge"}, generation=2)
    scene.refuse(key, 2)
    scene.server.take_requests()
    await scene.writer.report(key, 0.0)
    (entry,) = scene.server.entries("split")
    (accepted,) = entry["conditions"]
    assert (accepted["status"], accepted["reason"]) == ("False", "UnsupportedValue")
    assert accepted["observedGeneration"] == 2
    assert "bad-route" in accepted["message"]
    await scene.writer.report(key, 0.0)
    assert scene.server.take_requests() == ["GET", "PUT"]


async def test_dropped_rules_add_a_condition_that_goes_away_again(scene: Scene) -> None:
    """PartiallyInvalid exists only while it is true."""
    key = scene.edit("split", g.parent("echo", port=80))
    route = g.http_route(
        "split", TO_V1, Rule(dropped="RE2 refuses `(`"), parents=(g.parent("echo", port=80),)
    )
    scene.know(route, 1)
    await scene.writer.report(key, 0.0)
    assert scene.server.entries("split")[0]["conditions"] == [
        AT_80,
        RESOLVED,
        condition(
            "PartiallyInvalid", "True", "UnsupportedValue", "Dropped Rule spec.rules[1]: RE2 refuses `(`"
        ),
    ]
    scene.edit("split", g.parent("echo", port=80))
    await scene.writer.report(key, 0.0)
    assert scene.server.entries("split")[0]["conditions"] == [AT_80, RESOLVED]


async def test_a_rule_that_proxies_reject_adds_a_condition_that_goes_away_again(scene: Scene) -> None:
    """Programmed exists only while a proxy rejects a rule, and only at parents of a route in force."""
    key = scene.edit("split", g.parent("echo", port=80), g.parent("echo", port=81))
    problem = Problem(
        code="resource-rejected",
        severity=Severity.ERROR,
        origin=InCluster("east", "1", 1),
        key=key,
        field="spec.rules[0].matches[0]",
        value="rejected: regex is too large",
        expected="Proxy a.b.shop rejected route r because of a match of rule-1 of HTTPRoute default/split.",
    )
    scene.standing.apply_problems({problem: True})
    await scene.writer.report(key, 0.0)
    said = (
        "resource-rejected: spec.rules[0].matches[0] is rejected: regex is too large: Proxy a.b.shop "
        "rejected route r because of a match of rule-1 of HTTPRoute default/split."
    )
    programmed = condition("Programmed", "False", "ResourceRejected", said)
    at_80, at_81 = scene.server.entries("split")
    assert at_80["conditions"] == [AT_80, RESOLVED, programmed]
    assert at_81["conditions"] == [NO_81, RESOLVED]
    scene.standing.apply_problems({problem: False})
    await scene.writer.report(key, 0.0)
    assert scene.server.entries("split")[0]["conditions"] == [AT_80, RESOLVED]


async def test_entries_from_before_the_start_are_not_written_again(scene: Scene) -> None:
    """A new leader reads all routes in one list, and writes only what differs."""
    key = scene.edit("split", g.parent("echo", port=80))
    scene.server.set_status("split", [own(service_parent("echo", port=80), AT_80, RESOLVED)])
    await scene.writer.remember(HTTP_ROUTE, None)
    await scene.writer.report(key, 0.0)
    assert scene.server.take_requests() == ["GET"], "the list alone"


async def test_a_deleted_route_is_forgotten(scene: Scene) -> None:
    """NotFound ends the report without an error, and a later route of the name is new."""
    key = scene.edit("split", g.parent("echo", port=80))
    del scene.server.objects["split"]
    assert await scene.writer.report(key, 0.0) is None
    scene.standing.apply_edits({key: None})
    assert await scene.writer.report(key, 0.0) is None
    assert scene.server.take_requests() == ["GET"]


async def test_route_that_is_deleted_and_created_again_gets_its_entries(scene: Scene) -> None:
    """Both changes may be read together; name, generation and spec are those of the old route."""
    parent = g.parent("echo", port=80)
    key = scene.edit("split", parent)
    await scene.writer.report(key, 0.0)
    entries = scene.server.entries("split")
    scene.server.recreate("split", "second")
    scene.edit("split", parent)
    await scene.writer.report(key, 0.0)
    assert scene.server.entries("split") == entries != []


async def test_decision_about_a_deleted_route_is_not_written_to_its_successor(scene: Scene) -> None:
    """Its generation would be greater than any of the new route, whose own decision would look outdated."""
    parent = g.parent("echo", port=80)
    key = scene.edit("split", parent, generation=7)
    scene.server.recreate("split", "second")
    await scene.writer.report(key, 0.0)
    assert scene.server.entries("split") == []
    scene.edit("split", parent)
    await scene.writer.report(key, 0.0)
    assert [item["observedGeneration"] for item in scene.server.entries("split")[0]["conditions"]] == [1, 1]


async def test_refused_route_that_is_created_again_gets_its_entries(scene: Scene) -> None:
    """A manifest that is wrong as before has the same reason, in a new object."""
    key = scene.edit("split", g.parent("echo", port=80))
    scene.refuse(key, 1)
    await scene.writer.report(key, 0.0)
    entries = scene.server.entries("split")
    scene.server.recreate("split", "second")
    problems = scene.standing.problems(key)
    scene.standing.apply_problems(dict.fromkeys(problems, False))
    scene.refuse(key, 1)
    await scene.writer.report(key, 0.0)
    assert scene.server.entries("split") == entries != []


async def test_the_writes_of_a_thousand_routes_are_bounded(scene: Scene) -> None:
    """Beyond one burst a write waits for the budget, which fills up with time."""
    keys = [scene.edit(f"r{number}", g.parent("echo", port=80)) for number in range(int(AT_ONCE) + 1)]
    for key in keys[:-1]:
        await scene.writer.report(key, 0.0)
    with pytest.raises(WritePostponed) as raised:
        await scene.writer.report(keys[-1], 0.0)
    assert not raised.value.is_refused
    await scene.writer.report(keys[-1], raised.value.until)
    assert len(scene.server.take_requests()) == 2 * len(keys)
    assert all(scene.server.entries(key.name) for key in keys)
    assert keys[0].namespace == Namespace("default")
