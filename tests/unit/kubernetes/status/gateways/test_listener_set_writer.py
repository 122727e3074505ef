"""Tests of the status of ListenerSets: whole documents, with an API server in memory."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from catalog.store.edits import Edits
from meshwright.kubernetes.status.gateways.writer import AGAIN, FIRST, SERVED, SETTLED, WITHOUT_PROXY
from meshwright.kubernetes.status.rollouts import Progress
from meshwright.mesh.gateway.gateways import GatewayAddress
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.kinds import HTTP_ROUTE, LISTENER_SET
from tests.meshes import gateway as g
from tests.meshes import values as a
from tests.unit.kubernetes.status.gateways.test_gateway_writer import (
    APPLIED,
    FOREIGN,
    HTTP_KINDS,
    WORKLOAD,
    Scene,
    condition,
    scene_of,
    summary,
)

EDGE = g.open_gateway("edge", g.listener(hostname="a.example"))
GOOD, LOST = g.listener("good", hostname="b.example"), g.listener("lost", hostname="a.example")


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """Return a scene with the gateway `edge`, which allows all ListenerSets."""
    async with scene_of("listenersets") as result:
        add(result, g.CLASS, EDGE)
        yield result


def add(scene: Scene, *things: object) -> None:
    """Change objects in the mesh alone."""
    scene.mesh.apply(Edits(objects=g.view(*things).known().objects))


async def test_whole_status_is_written_at_once(scene: Scene) -> None:
    """Conditions, and an entry for each listener with its kinds and routes; conditions of others stay."""
    key = scene.edit(g.listener_set("set", GOOD), generation=3)
    add(scene, g.http_route("route", Rule(), parents=(g.at_set("set"),)))
    add(scene, g.http_route("other", Rule(), parents=(g.at("edge"),)))
    scene.server.objects["set"]["status"] = {"conditions": [FOREIGN]}
    assert await scene.writer.report(key, 0.0) == SERVED
    assert scene.status("set") == {
        "conditions": [
            FOREIGN,
            condition("Accepted", "True", "Accepted", "all listeners are in force", 3),
            condition("Programmed", "True", "Programmed", APPLIED, 3),
        ],
        "listeners": [
            {
                "name": "good",
                "supportedKinds": HTTP_KINDS,
                "attachedRoutes": 1,
                "conditions": [
                    condition("Accepted", "True", "Accepted", "the listener is in force at port 80", 3),
                    condition(
                        "Conflicted",
                        "False",
                        "NoConflicts",
                        "the listener differs from the others by port or host name",
                        3,
                    ),
                    condition("ResolvedRefs", "True", "ResolvedRefs", "all references are resolved", 3),
                    condition("Programmed", "True", "Programmed", APPLIED, 3),
                ],
            }
        ],
    }
    assert scene.server.take_requests() == ["GET", "PUT"]
    await scene.writer.remember(LISTENER_SET, None)
    scene.server.take_requests()
    await scene.writer.report(key, 1.0)
    assert scene.server.take_requests() == [], "nothing has changed"


async def test_lost_listener_beside_a_good_one(scene: Scene) -> None:
    """ListenerSetHostnameConflict: the set is accepted while one of its listeners is in force."""
    key = scene.edit(g.listener_set("set", GOOD, LOST))
    await scene.writer.report(key, 0.0)
    assert summary(scene.status("set")) == {
        "Accepted": "True ListenersNotValid",
        "Programmed": "True Programmed",
    }
    lost = scene.status("set")["listeners"][1]
    assert summary(lost) == {
        "Accepted": "False HostnameConflict",
        "Conflicted": "True HostnameConflict",
        "ResolvedRefs": "True ResolvedRefs",
        "Programmed": "False HostnameConflict",
    }
    scene.edit(g.listener_set("set", LOST), generation=2)
    await scene.writer.report(key, 0.0)
    assert summary(scene.status("set")) == {
        "Accepted": "False ListenersNotValid",
        "Programmed": "False ListenersNotValid",
    }


async def test_set_without_a_permitted_certificate_is_refused(scene: Scene) -> None:
    """ListenerSetReferenceGrant."""
    key = scene.edit(g.listener_set("set", g.https(namespace="certs")))
    await scene.writer.report(key, 0.0)
    assert summary(scene.status("set")) == {
        "Accepted": "False ListenersNotValid",
        "Programmed": "False ListenersNotValid",
    }
    assert summary(scene.status("set")["listeners"][0])["ResolvedRefs"] == "False RefNotPermitted"


async def test_kinds_that_do_not_fit_are_named_at_the_listener(scene: Scene) -> None:
    """ListenerSetAllowedRoutesSupportedKinds."""
    key = scene.edit(g.listener_set("set", g.passthrough(kinds=(HTTP_ROUTE,))))
    await scene.writer.report(key, 0.0)
    (listener,) = scene.status("set")["listeners"]
    assert (listener["supportedKinds"], summary(listener)["ResolvedRefs"]) == ([], "False InvalidRouteKinds")


async def test_set_that_is_not_allowed_has_no_listeners(scene: Scene) -> None:
    """ListenerSetDefaultNotAllowed; the set is accepted as soon as the gateway allows it."""
    add(scene, g.gateway("edge", g.listener(hostname="a.example")))
    key = scene.edit(g.listener_set("set", GOOD))
    await scene.writer.report(key, 0.0)
    message = "Gateway default/edge does not allow ListenerSets of namespace default in spec.allowedListeners"
    assert scene.status("set") == {
        "conditions": [
            condition("Accepted", "False", "NotAllowed", message),
            condition("Programmed", "False", "NotAllowed", message),
        ],
        "listeners": [],
    }
    add(scene, EDGE)
    await scene.writer.report(key, 0.0)
    assert summary(scene.status("set")) == {"Accepted": "True Accepted", "Programmed": "True Programmed"}


async def test_set_follows_its_gateway(scene: Scene) -> None:
    """A gateway that is not accepted, without a workload, or without an answer of its proxies."""
    key = scene.edit(g.listener_set("set", GOOD))
    add(scene, replace(EDGE, addresses=(GatewayAddress("example.com/pool"),)))
    await scene.writer.report(key, 0.0)
    assert summary(scene.status("set")) == {
        "Accepted": "False ParentNotAccepted",
        "Programmed": "False ParentNotProgrammed",
    }
    add(scene, EDGE)
    scene.progress = Progress(0, 2)
    await scene.writer.report(key, 0.0)
    assert await scene.writer.report(key, FIRST) == FIRST + AGAIN
    assert summary(scene.status("set")) == {"Accepted": "True Accepted", "Programmed": "False Pending"}
    scene.mesh.apply(Edits(objects={a.object_key(WORKLOAD): None}))
    scene.progress = Progress(0, 0)
    assert await scene.writer.report(key, SETTLED) == SETTLED + WITHOUT_PROXY
    assert summary(scene.status("set"))["Programmed"] == "False ParentNotProgrammed"


async def test_sets_of_other_gateways_are_left_alone(scene: Scene) -> None:
    """Neither read nor written: a missing gateway, and one of another controller."""
    add(scene, g.FOREIGN_CLASS, g.gateway("other", class_name="other"))
    for name in ("missing", "other"):
        key = scene.edit(g.listener_set("set", gateway=name))
        assert await scene.writer.report(key, 0.0) is None
    assert scene.server.take_requests() == []
