"""Tests of the writer of `status.ancestors`: own entries alone, with an API server in memory."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from catalog.relations.backend_tls.states import PolicyState, policy_state
from catalog.store.edits import Edits
from catalog.store.view import View
from meshwright.kube.api import Api
from meshwright.kube.resource import Resource
from meshwright.kubernetes.status.ancestors.writer import AncestorWriter
from meshwright.kubernetes.status.attempts import Attempts
from meshwright.kubernetes.status.cluster import Cluster
from meshwright.kubernetes.status.event import EventReporter
from meshwright.kubernetes.status.object_status import ObjectStatusTable
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.kinds import BACKEND_TLS_POLICY, GATEWAY_API, Kind
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.origins import InCluster
from meshwright.mesh.policies.smi import PolicyKey
from tests.meshes import gateway as g
from tests.meshes import values as a
from tests.unit.kube.scripted_api import ScriptedServer, api_of
from tests.unit.kubernetes.status.object_server import ObjectServer
from tests.unit.kubernetes.status.test_attempts import RecordingMeter

START = datetime(2026, 1, 2, tzinfo=UTC)
STAMP, LATER = "2026-01-02T00:00:00Z", "2026-01-02T01:00:00Z"
FOREIGN: dict[str, Any] = {
    "ancestorRef": {"group": GATEWAY_API, "kind": "Gateway", "name": "edge", "namespace": "default"},
    "controllerName": "example.org/gateway",
    "conditions": [{"type": "Accepted", "status": "True", "reason": "Accepted", "extra": 1}],
}
MISSING = "ConfigMap default/ca does not exist, has no entry ca.crt, or cannot be read"


async def served(kind: Kind) -> Resource:
    """Return the resource of a kind."""
    return Resource(kind.group, "v1", "backendtlspolicies", kind.name)


def routed(gateway: str) -> tuple[object, object]:
    """Return a gateway, and a route from it to Service `web`."""
    return g.gateway(gateway), g.http_route(gateway, Rule(backends=(g.to("web"),)), parents=(g.at(gateway),))


class Scene:
    """A mesh, its status table, and a writer of policies at an API server in memory."""

    def __init__(self, api: Api, server: ObjectServer) -> None:
        self.server, self.now = server, START
        self.mesh: View = g.view(a.service("web"), g.CLASS, *routed("edge"), g.ca_bundle())
        self.standing = ObjectStatusTable("east", set(), policies={BACKEND_TLS_POLICY})
        cluster = Cluster(api, served, self.standing, lambda: self.now, EventReporter("a", "home"))
        attempts = Attempts(RecordingMeter(), lambda: 0.5, lambda: 0.0)
        self.writer = AncestorWriter(cluster, self, attempts)

    def state(self, key: ObjectKey) -> PolicyState | None:
        """Return the state of a policy."""
        return policy_state(self.mesh, PolicyKey(key.namespace, key.name))

    def edit(self, generation: int = 1, *targets: str) -> ObjectKey:
        """Change policy `tls` at the API server and in the mesh."""
        self.server.put("tls", generation=generation)
        policy = g.backend_policy("tls", *targets)
        key = g.key_of(policy)
        edits = {key: SourcedObject(key, policy, InCluster("east", "1", generation))}
        self.mesh.apply(Edits(objects=edits))
        self.standing.apply_edits(edits)
        return key

    def change(self, *things: Any, gone: tuple[Any, ...] = ()) -> None:
        """Add objects to the mesh, and remove others."""
        added = g.view(*things).known().objects
        self.mesh.apply(Edits(objects={**added, **{g.key_of(thing): None for thing in gone}}))

    def ancestors(self) -> list[dict[str, Any]]:
        """Return the entries in the status."""
        status: dict[str, Any] = self.server.objects["tls"].get("status", {})
        return list(status.get("ancestors", []))


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """Return a scene with a gateway that uses Service `web`."""
    server = ObjectServer("backendtlspolicies")
    async with ScriptedServer(server.play) as scripted, api_of(scripted) as api:
        yield Scene(api, server)


def own(gateway: str, *conditions: tuple[str, str, str, str], generation: int = 1, at: str = STAMP) -> Any:
    """Return an entry of Meshwright, with conditions of type, status, reason and message."""
    names = ("type", "status", "reason", "message")
    return {
        "ancestorRef": {**FOREIGN["ancestorRef"], "name": gateway},
        "controllerName": "meshwright.dev/gateway-controller",
        "conditions": [
            {
                **dict(zip(names, item, strict=True)),
                "observedGeneration": generation,
                "lastTransitionTime": at,
            }
            for item in conditions
        ],
    }


GOOD = (
    ("Accepted", "True", "Accepted", "the policy is in force"),
    ("ResolvedRefs", "True", "ResolvedRefs", "all CA certificates can be used"),
)
BAD = (
    ("Accepted", "False", "NoValidCACertificate", f"requests to the targets fail: {MISSING}"),
    ("ResolvedRefs", "False", "InvalidCACertificateRef", MISSING),
)


async def test_each_gateway_has_an_entry(scene: Scene) -> None:
    """The entries follow the gateways, and an unchanged policy is written once."""
    key = scene.edit()
    await scene.writer.report(key, 0.0)
    assert scene.ancestors() == [own("edge", *GOOD)]
    assert scene.server.take_requests() == ["GET", "PUT"]
    await scene.writer.report(key, 0.0)
    assert scene.server.take_requests() == []
    scene.change(*routed("other"))
    await scene.writer.report(key, 0.0)
    assert scene.ancestors() == [own("edge", *GOOD), own("other", *GOOD)]
    scene.change(gone=routed("edge"))
    await scene.writer.report(key, 0.0)
    assert scene.ancestors() == [own("other", *GOOD)]


async def test_conditions_follow_the_config_map_and_the_generation(scene: Scene) -> None:
    """A ConfigMap that goes away is no edit of the policy; the time of a transition is that of a status."""
    key = scene.edit()
    await scene.writer.report(key, 0.0)
    scene.now += timedelta(hours=1)
    key = scene.edit(2)
    await scene.writer.report(key, 0.0)
    assert scene.ancestors() == [own("edge", *GOOD, generation=2)]
    scene.change(gone=(g.ca_bundle(),))
    await scene.writer.report(key, 0.0)
    assert scene.ancestors() == [own("edge", *BAD, generation=2, at=LATER)]


async def test_foreign_entries_stay_as_they_are(scene: Scene) -> None:
    """BackendTLSPolicyPreserveForeignStatus: form and place are the other controller's."""
    key = scene.edit()
    scene.server.objects["tls"]["status"] = {"ancestors": [FOREIGN]}
    await scene.writer.report(key, 0.0)
    assert scene.ancestors() == [FOREIGN, own("edge", *GOOD)]
    key = scene.edit(2, "unused")
    await scene.writer.report(key, 0.0)
    assert scene.ancestors() == [FOREIGN]


async def test_status_has_at_most_16_entries(scene: Scene) -> None:
    """The API server refuses more; those of other controllers have their place."""
    scene.change(*(thing for number in range(20) for thing in routed(f"edge-{number:02}")))
    key = scene.edit()
    scene.server.objects["tls"]["status"] = {"ancestors": [own("edge", *BAD), FOREIGN]}
    await scene.writer.report(key, 0.0)
    expected = [
        own("edge", *GOOD, at=STAMP),
        FOREIGN,
        *(own(f"edge-{number:02}", *GOOD) for number in range(14)),
    ]
    assert scene.ancestors() == expected


async def test_older_decision_is_not_written(scene: Scene) -> None:
    """The object is newer than what this server has read of it."""
    key = scene.edit()
    scene.server.put("tls", generation=2)
    await scene.writer.report(key, 0.0)
    assert (scene.ancestors(), scene.server.take_requests()) == ([], ["GET"])


async def test_restarted_writer_writes_nothing_again(scene: Scene) -> None:
    """The entries of the previous run are known."""
    key = scene.edit()
    scene.server.objects["tls"]["status"] = {"ancestors": [own("edge", *GOOD)]}
    await scene.writer.remember(BACKEND_TLS_POLICY, None)
    await scene.writer.report(key, 0.0)
    assert scene.server.take_requests() == ["GET"]
