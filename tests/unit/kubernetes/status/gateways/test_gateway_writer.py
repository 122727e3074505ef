"""Tests of the writer of gateways' status: whole documents, with an API server in memory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from catalog.relations.gateways.classes import served_class
from catalog.relations.gateways.set_states import SetState, set_state
from catalog.relations.gateways.states import GatewayState, gateway_state
from catalog.store.edits import Edits
from catalog.store.view import View
from meshwright.kube.api import Api
from meshwright.kube.resource import Resource
from meshwright.kubernetes.status.attempts import Attempts
from meshwright.kubernetes.status.cluster import Cluster
from meshwright.kubernetes.status.event import EventReporter
from meshwright.kubernetes.status.gateways.writer import AGAIN, FIRST, SERVED, SETTLED, GatewayWriter
from meshwright.kubernetes.status.object_status import ObjectStatusTable
from meshwright.kubernetes.status.rollouts import Progress
from meshwright.mesh.gateway.features import GATEWAY_FEATURES
from meshwright.mesh.gateway.gateways import (
    ClientValidation,
    Gateway,
    GatewayClass,
    Listener,
    ListenerSet,
    ObjectReference,
    ValidationMode,
)
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.kinds import GATEWAY, GATEWAY_CLASS, LISTENER_SET, SERVICE, TLS_ROUTE, Kind
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.origins import InCluster
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.workload import Edge
from tests.meshes import gateway as g
from tests.meshes import values as a
from tests.unit.kube.scripted_api import ScriptedServer, api_of
from tests.unit.kubernetes.status.object_server import ObjectServer
from tests.unit.kubernetes.status.test_attempts import RecordingMeter

START = datetime(2026, 1, 2, tzinfo=UTC)
STAMP, LATER = "2026-01-02T00:00:00Z", "2026-01-02T01:00:00Z"
WORKLOAD = replace(a.workload("edge", "10.0.0.9"), interception=Edge("edge"))
BAD = g.listener("bad", 8080, protocol="INVALID")
HTTP_KINDS = [{"group": "gateway.networking.k8s.io", "kind": kind} for kind in ("HTTPRoute", "GRPCRoute")]
FOREIGN = {"type": "example.org/Seen", "status": "True", "reason": "Seen", "extra": 1}


async def served(kind: Kind) -> Resource:
    """Return the resource of a kind."""
    plural = "gatewayclasses" if kind == GATEWAY_CLASS else f"{kind.name.lower()}s"
    return Resource(kind.group, "v1", plural, kind.name, namespaced=kind != GATEWAY_CLASS)


class Scene:
    """A mesh, its status table, and a writer of gateways at an API server in memory."""

    def __init__(self, api: Api, server: ObjectServer) -> None:
        self.server, self.now = server, START
        self.mesh: View = g.view(WORKLOAD)
        self.standing = ObjectStatusTable("east", set(), gateways={GATEWAY, GATEWAY_CLASS, LISTENER_SET})
        self.progress = Progress(1, 1)
        cluster = Cluster(api, served, self.standing, lambda: self.now, EventReporter("a", "home"))
        attempts = Attempts(RecordingMeter(), lambda: 0.5, lambda: 0.0)
        self.writer = GatewayWriter(cluster, self, lambda _: self.progress, attempts, 0.0)

    def value(self, key: ObjectKey) -> GatewayState | SetState | None:
        """Return the state of a gateway or ListenerSet."""
        name = PolicyKey(key.namespace, key.name)
        return set_state(self.mesh, name) if key.kind == LISTENER_SET else gateway_state(self.mesh, name)

    def served_class(self, name: str) -> GatewayClass | None:
        """Return a class of ours."""
        return served_class(self.mesh, name)

    def edit(self, *things: Gateway | GatewayClass | ListenerSet, generation: int = 1) -> ObjectKey:
        """Change objects at the API server and in the mesh; return the key of the last one."""
        for thing in things:
            key = g.key_of(thing)
            self.server.put(key.name, generation=generation)
            origin = InCluster("east", "1", generation, self.server.uid(key.name))
            edits = {key: SourcedObject(key, thing, origin)}
            self.mesh.apply(Edits(objects=edits))
            self.standing.apply_edits(edits)
        return key

    def edge(self, *listeners: Listener, generation: int = 1) -> ObjectKey:
        """Change the gateway `edge` of our class."""
        self.mesh.apply(Edits(objects=g.view(g.CLASS).known().objects))
        return self.edit(g.gateway("edge", *listeners), generation=generation)

    def status(self, name: str = "edge") -> Any:
        """Return the status at the API server."""
        return self.server.objects[name].get("status")

    def reasons(self) -> dict[str, str]:
        """Return status and reason of each condition of the gateway."""
        return summary(self.status())


def summary(raw: Any) -> dict[str, str]:
    """Return status and reason of each condition."""
    return {item["type"]: f"{item['status']} {item['reason']}" for item in raw["conditions"]}


@asynccontextmanager
async def scene_of(plural: str) -> AsyncIterator[Scene]:
    """Run an API server in memory for objects of one kind."""
    server = ObjectServer(plural)
    async with ScriptedServer(server.play) as scripted, api_of(scripted) as api:
        yield Scene(api, server)


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """Return a scene with a workload that serves the gateway `edge`."""
    async with scene_of("gateways") as result:
        yield result


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


APPLIED = "the connected proxies of the gateway have applied it"


async def test_the_whole_status_is_written_at_once(scene: Scene) -> None:
    """Conditions, addresses, and a listener with its kinds and routes."""
    key = scene.edge()
    route = g.http_route("route", Rule(), parents=(g.at("edge"),))
    scene.mesh.apply(Edits(objects=g.view(route).known().objects))
    assert await scene.writer.report(key, 0.0) == SERVED
    assert scene.status() == {
        "conditions": [
            condition("Accepted", "True", "Accepted", "all listeners are in force"),
            condition("Programmed", "True", "Programmed", APPLIED),
            condition("ResolvedRefs", "True", "ResolvedRefs", "all references are resolved"),
        ],
        "addresses": [{"type": "IPAddress", "value": "10.0.0.9"}],
        "listeners": [
            {
                "name": "http",
                "supportedKinds": HTTP_KINDS,
                "attachedRoutes": 1,
                "conditions": [
                    condition("Accepted", "True", "Accepted", "the listener is in force at port 80"),
                    condition(
                        "Conflicted",
                        "False",
                        "NoConflicts",
                        "the listener differs from the others by port or host name",
                    ),
                    condition("ResolvedRefs", "True", "ResolvedRefs", "all references are resolved"),
                    condition("Programmed", "True", "Programmed", APPLIED),
                ],
            }
        ],
    }
    assert scene.server.take_requests() == ["GET", "PUT"]
    await scene.writer.report(key, 1.0)
    assert scene.server.take_requests() == [], "nothing has changed"


async def test_an_edit_gives_every_condition_the_new_generation_in_one_write(scene: Scene) -> None:
    """GatewayObservedGenerationBump: a listener more, and times of transitions that stay."""
    key = scene.edge()
    await scene.writer.report(key, 0.0)
    scene.server.take_requests()
    scene.now += timedelta(hours=1)
    scene.edge(g.listener(), g.listener("admin", 8080), generation=2)
    await scene.writer.report(key, 1.0)
    status = scene.status()
    every = [status, *status["listeners"]]
    assert {item["observedGeneration"] for raw in every for item in raw["conditions"]} == {2}
    times = [{item["lastTransitionTime"] for item in raw["conditions"]} for raw in every]
    assert times == [{STAMP}, {STAMP}, {LATER}]
    assert scene.server.take_requests() == ["GET", "PUT"]


async def test_gateway_is_programmed_only_after_its_proxies_acknowledged(scene: Scene) -> None:
    """A quick rollout needs one write; a slow one is reported as pending, and looked at again."""
    key = scene.edge()
    scene.progress = Progress(0, 2)
    assert await scene.writer.report(key, 0.0) == AGAIN
    assert scene.status() is None, "the proxies get a moment"
    assert await scene.writer.report(key, FIRST) == FIRST + AGAIN
    assert scene.reasons() == {
        "Accepted": "True Accepted",
        "Programmed": "False Pending",
        "ResolvedRefs": "True ResolvedRefs",
    }
    assert summary(scene.status()["listeners"][0])["Programmed"] == "False Pending"
    scene.progress = Progress(2, 2)
    await scene.writer.report(key, FIRST + AGAIN)
    assert scene.reasons()["Programmed"] == "True Programmed"
    scene.progress = Progress(1, 2)
    await scene.writer.report(key, 10.0)
    assert scene.reasons()["Programmed"] == "True Programmed", "routes and endpoints change all the time"


async def test_gateway_without_workloads_or_proxies_is_not_programmed(scene: Scene) -> None:
    """The reasons of the specification tell a missing workload from a missing proxy."""
    key = scene.edge()
    scene.progress = Progress(0, 0)
    await scene.writer.report(key, SETTLED)
    assert scene.reasons()["Programmed"] == "False NoResources"
    scene.mesh.apply(Edits(objects={a.object_key(WORKLOAD): None}))
    await scene.writer.report(key, SETTLED)
    assert scene.reasons()["Programmed"] == "False AddressNotAssigned"
    assert scene.status()["addresses"] == []


async def test_a_new_leader_waits_for_the_proxies_before_it_takes_programmed_back(scene: Scene) -> None:
    """After a restart the proxies connect again within a moment."""
    key = scene.edge()
    await scene.writer.report(key, 0.0)
    scene.progress = Progress(0, 0)
    await scene.writer.remember(GATEWAY, None)
    await scene.writer.report(key, SETTLED - 1)
    assert scene.reasons()["Programmed"] == "True Programmed"
    await scene.writer.report(key, SETTLED)
    assert scene.reasons()["Programmed"] == "False NoResources"


async def test_bad_listener_beside_a_good_one(scene: Scene) -> None:
    """GatewayListenerUnsupportedProtocol: the gateway is accepted, the bad listener has no kinds."""
    key = scene.edge(g.listener(), BAD)
    await scene.writer.report(key, 0.0)
    assert scene.reasons() == {
        "Accepted": "True ListenersNotValid",
        "Programmed": "True Programmed",
        "ResolvedRefs": "True ResolvedRefs",
    }
    bad = scene.status()["listeners"][1]
    assert bad["supportedKinds"] == []
    assert summary(bad) == {
        "Accepted": "False UnsupportedProtocol",
        "Conflicted": "False NoConflicts",
        "ResolvedRefs": "True ResolvedRefs",
        "Programmed": "False Invalid",
    }
    scene.edge(BAD, generation=2)
    await scene.writer.report(key, 0.0)
    assert scene.reasons() == {
        "Accepted": "False ListenersNotValid",
        "Programmed": "False Invalid",
        "ResolvedRefs": "True ResolvedRefs",
    }


async def test_conflicts_and_unknown_kinds_are_conditions_of_the_listener(scene: Scene) -> None:
    """GatewayInvalidRouteKind, and two listeners with one host name."""
    key = scene.edge(g.listener("one"), g.listener("two"), g.listener("kinds", 8080, kinds=(TLS_ROUTE,)))
    await scene.writer.report(key, 0.0)
    one, _, kinds = scene.status()["listeners"]
    assert summary(one) == {
        "Accepted": "False HostnameConflict",
        "Conflicted": "True HostnameConflict",
        "ResolvedRefs": "True ResolvedRefs",
        "Programmed": "False Invalid",
    }
    assert (kinds["supportedKinds"], summary(kinds)["ResolvedRefs"]) == ([], "False InvalidRouteKinds")


async def test_listener_without_a_certificate_is_accepted_and_not_programmed(scene: Scene) -> None:
    """GatewayInvalidTLSConfiguration: the good listener beside it is programmed."""
    key = scene.edge(g.listener(), g.https("bad", "", "missing"))
    await scene.writer.report(key, 0.0)
    good, bad = scene.status()["listeners"]
    assert summary(good)["Programmed"] == "True Programmed"
    assert summary(bad) == {
        "Accepted": "True Accepted",
        "Conflicted": "False NoConflicts",
        "ResolvedRefs": "False InvalidCertificateRef",
        "Programmed": "False Invalid",
    }
    (resolved,) = (item for item in bad["conditions"] if item["type"] == "ResolvedRefs")
    assert resolved["message"] == "Secret default/missing does not exist, or cannot be read"


async def test_bad_client_certificate_of_a_gateway_costs_its_references_alone(scene: Scene) -> None:
    """GatewayInvalidTLSBackendConfiguration: the gateway stays accepted and programmed."""
    key = scene.edge()
    scene.edit(g.with_client_certificate(g.gateway("edge", g.listener(), g.https("bad"))), generation=2)
    await scene.writer.report(key, 0.0)
    assert scene.status()["conditions"] == [
        condition("Accepted", "True", "Accepted", "all listeners are in force", 2),
        condition("Programmed", "True", "Programmed", APPLIED, 2),
        condition(
            "ResolvedRefs",
            "False",
            "InvalidClientCertificateRef",
            "Secret default/client does not exist, or cannot be read",
            2,
        ),
    ]


@pytest.mark.parametrize(
    ("validation", "reason"),
    [
        (g.validation(), "InvalidCACertificateRef"),
        (g.validation(kind=SERVICE), "InvalidCACertificateKind"),
        (g.validation(namespace="certs"), "RefNotPermitted"),
    ],
    ids=["missing", "kind", "no grant"],
)
async def test_listener_that_cannot_validate_its_clients_is_refused(
    scene: Scene, validation: ClientValidation, reason: str
) -> None:
    """GatewayInvalidFrontendClientCertificateValidation, and the listener without TLS beside it."""
    key = scene.edge()
    scene.mesh.apply(Edits(objects=g.view(g.tls_secret()).known().objects))
    gateway = g.with_validation(g.gateway("edge", g.listener(), g.https()), validation)
    scene.edit(gateway, generation=2)
    await scene.writer.report(key, 0.0)
    plain, secure = scene.status()["listeners"]
    assert set(summary(plain).values()) == {
        "True Accepted",
        "False NoConflicts",
        "True ResolvedRefs",
        "True Programmed",
    }
    assert summary(secure) == {
        "Accepted": "False NoValidCACertificate",
        "Conflicted": "False NoConflicts",
        "ResolvedRefs": f"False {reason}",
        "Programmed": "False Invalid",
    }


async def test_insecure_validation_is_a_condition_while_it_lasts(scene: Scene) -> None:
    """GatewayFrontendClientCertificateValidationInsecureFallback; the condition is removed afterwards."""
    key = scene.edge()
    insecure = g.validation(mode=ValidationMode.INSECURE_FALLBACK)
    scene.edit(g.with_validation(g.gateway("edge"), None, at_8443=insecure), generation=2)
    await scene.writer.report(key, 0.0)
    assert scene.status()["conditions"][3] == condition(
        "InsecureFrontendValidationMode",
        "True",
        "ConfigurationChanged",
        "clients without a valid certificate are admitted (mode AllowInsecureFallback)",
        2,
    )
    scene.edge(generation=3)
    await scene.writer.report(key, 0.0)
    assert list(scene.reasons()) == ["Accepted", "Programmed", "ResolvedRefs"]


async def test_references_of_listeners_are_summed_up_at_the_gateway(scene: Scene) -> None:
    """The condition of a gateway covers its listeners too."""
    key = scene.edge(
        g.listener(), g.https("bad", "", "missing"), g.listener("kinds", 8080, kinds=(TLS_ROUTE,))
    )
    await scene.writer.report(key, 0.0)
    assert scene.status()["conditions"][2] == condition(
        "ResolvedRefs",
        "False",
        "ListenersNotResolved",
        "listeners with references that are not resolved: bad, kinds",
    )


async def test_message_names_every_broken_certificate(scene: Scene) -> None:
    """A condition has one reason, so the other certificates are in its message alone."""
    key = scene.edge(g.https("bad", "", "first", "second"))
    await scene.writer.report(key, 0.0)
    (bad,) = scene.status()["listeners"]
    (resolved,) = (item for item in bad["conditions"] if item["type"] == "ResolvedRefs")
    assert resolved["message"] == (
        "Secret default/first does not exist, or cannot be read; "
        "Secret default/second does not exist, or cannot be read"
    )


async def test_foreign_conditions_survive_in_their_places(scene: Scene) -> None:
    """GatewayPreserveForeignConditions: in the gateway and in the listener, also after an edit."""
    key = scene.edge()
    scene.server.objects["edge"]["status"] = {
        "conditions": [FOREIGN, {"type": "Accepted", "status": "Unknown", "reason": "Pending"}],
        "listeners": [{"name": "http", "attachedRoutes": 0, "conditions": [FOREIGN]}, {"name": "gone"}],
        "attachedListenerSets": 3,
    }
    await scene.writer.report(key, 0.0)
    scene.edge(g.listener(), g.listener("admin", 8080), generation=2)
    await scene.writer.report(key, 0.0)
    status = scene.status()
    types = [item["type"] for item in status["conditions"]]
    assert types == ["example.org/Seen", "Accepted", "Programmed", "ResolvedRefs"]
    assert status["conditions"][0] == status["listeners"][0]["conditions"][0] == FOREIGN
    assert [item["name"] for item in status["listeners"]] == ["http", "admin"]
    assert status["attachedListenerSets"] == 0, "the number is ours"


async def test_accepted_sets_are_counted(scene: Scene) -> None:
    """A set without a listener in force, and one that is not allowed, are not attached."""
    scene.mesh.apply(Edits(objects=g.view(g.CLASS).known().objects))
    key = scene.edit(g.open_gateway("edge", g.listener(hostname="a.example")))
    await scene.writer.report(key, 0.0)
    assert "attachedListenerSets" not in scene.status()
    sets = (
        g.listener_set("good", g.listener(hostname="b.example"), g.listener("lost", hostname="a.example")),
        g.listener_set("lost", g.listener(hostname="a.example")),
        g.listener_set("other", g.listener(hostname="c.example"), gateway="other"),
    )
    scene.mesh.apply(Edits(objects=g.view(*sets).known().objects))
    await scene.writer.report(key, 0.0)
    assert scene.status()["attachedListenerSets"] == 1
    assert [item["name"] for item in scene.status()["listeners"]] == ["http"], "those of sets are elsewhere"
    scene.edit(g.gateway("edge", g.listener(hostname="a.example")), generation=2)
    await scene.writer.report(key, 0.0)
    assert scene.status()["attachedListenerSets"] == 0


async def test_newer_generation_is_never_overwritten(scene: Scene) -> None:
    """The object in the cluster is newer than the one that was read."""
    key = scene.edge()
    scene.server.put("edge", generation=2)
    await scene.writer.report(key, 0.0)
    assert (scene.status(), scene.server.take_requests()) == (None, ["GET"])


async def test_gateway_that_is_deleted_and_created_again_gets_its_status(scene: Scene) -> None:
    """Both changes may be read together; an older decision is not written to the new object."""
    key = scene.edge()
    await scene.writer.report(key, 0.0)
    status = scene.status()
    scene.server.recreate("edge", "second")
    await scene.writer.report(key, 0.0)
    assert scene.status() is None
    scene.edge()
    await scene.writer.report(key, 0.0)
    assert scene.status() == status


async def test_gateways_of_other_controllers_are_left_alone(scene: Scene) -> None:
    """Neither read nor written."""
    key = scene.edit(g.FOREIGN_CLASS, g.gateway("edge", class_name="other"))
    assert await scene.writer.report(key, 0.0) is None
    assert scene.server.take_requests() == []


async def test_class_gets_its_condition_and_the_features_in_order() -> None:
    """GatewayClassObservedGenerationBump; other controllers' classes are left alone."""
    async with scene_of("gatewayclasses") as scene:
        other, key = scene.edit(g.FOREIGN_CLASS), scene.edit(g.CLASS)
        for each in (other, key):
            await scene.writer.report(each, 0.0)
        names = [item["name"] for item in scene.status("meshwright")["supportedFeatures"]]
        assert names == sorted(GATEWAY_FEATURES)
        assert scene.status("meshwright")["conditions"] == [
            condition("Accepted", "True", "Accepted", "Meshwright serves the gateways of this class")
        ]
        assert scene.status("other") is None
        status = scene.status("meshwright")
        scene.server.recreate("meshwright", "second")
        scene.edit(g.CLASS)
        await scene.writer.report(key, 0.0)
        assert scene.status("meshwright") == status
        scene.edit(replace(g.CLASS, parameters=ObjectReference(Kind("Secret"), "x")), generation=2)
        await scene.writer.report(key, 0.0)
        (accepted,) = scene.status("meshwright")["conditions"]
        assert (accepted["reason"], accepted["observedGeneration"]) == ("InvalidParameters", 2)


def test_features_are_sorted_and_none_is_of_a_mesh() -> None:
    """The API wants the order, and features of meshes are in the status of another kind."""
    assert list(GATEWAY_FEATURES) == sorted(set(GATEWAY_FEATURES))
    assert not [name for name in GATEWAY_FEATURES if name.startswith("Mesh")]
