"""Tests of the cost of endpoint changes: computed functions are counted, no time is measured."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from catalog.lint.problems import Linter
from catalog.policy.group_policy import proxy_policy
from catalog.store.edits import Edits
from catalog.store.settings import Admission, EndpointAdmission
from catalog.store.view import MeshSettings, View
from meshwright.delivery.snapshots import rendering
from meshwright.delivery.snapshots.group_snapshots import GroupSnapshots
from meshwright.delivery.snapshots.published_snapshots import PublishedSnapshots, Step
from meshwright.delivery.snapshots.rendering import GroupInput
from meshwright.delivery.snapshots.translation import translation
from meshwright.engine.graph import Graph
from meshwright.engine.node import Derivation
from meshwright.mesh.names import IpAddress
from meshwright.mesh.workload import Health
from meshwright.sidecars.contract.driver import Piece, Pieces
from meshwright.sidecars.document.driver import DocumentDriver
from meshwright.sidecars.document.translate import DOCUMENT, NAME
from meshwright.sidecars.envoy.driver import EnvoyDriver
from tests.meshes import values as a
from xds.protocol.resources.resource import ENDPOINT, TypeUrl

ALL = a.http("all")
MOVED = replace(a.workload("shop-1", "10.1.0.1", app="shop", account="shop"), address=IpAddress("10.1.0.9"))
ONCE = (
    "catalog.relations.backends.workloads.backing",
    "catalog.relations.backends.workloads.services_of",
    "catalog.relations.backends.endpoints.endpoints",
    "catalog.relations.backends.readiness.taking_traffic",
    "catalog.relations.backends.targets.slice_ports",
    "catalog.policy.outbound.identities_behind",
    "catalog.relations.backends.protocols.spoken_there",
    "catalog.policy.destinations.endpoints_of",
    "meshwright.delivery.snapshots.rendering._completed",
    "meshwright.delivery.snapshots.rendering.made",
    "meshwright.delivery.snapshots.group_snapshots.nodes_of",
    "claims by place",
    "workloads by group",
)
PER_CALLER = ("meshwright.delivery.snapshots.rendering.own",)


class Server:
    """A server for a mesh in which clients call a shop with two workloads and a service of their own.

    `callers` is the number of clients; `translated` are the ServiceAccounts of the groups that the last wave
    translated.
    """

    def __init__(
        self,
        callers: int,
        translate: Callable[[GroupInput], Iterable[Piece | Pieces]],
        mode: EndpointAdmission,
    ) -> None:
        self.view = a.view(*_mesh(callers), settings=MeshSettings(endpoint_admission=mode))
        self._translate = translate
        self.translated: list[str] = []
        self.serving = GroupSnapshots(self.view, self._noted)
        identities = {workload.identity for workload in self.view.workloads.values()}
        self.serving.rendering.certify(
            {identity: a.certificate(identity, "1") for identity in identities}, b"ROOT"
        )
        self.published = PublishedSnapshots()
        self.wave(Edits())

    def _noted(self, need: GroupInput) -> Iterable[Piece | Pieces]:
        self.translated.append(need.policy.identity.service_account)
        return self._translate(need)

    def wave(self, edits: Edits) -> Step:
        """Apply edits; return the step of the served snapshots."""
        self.translated.clear()
        self.view.apply(edits)
        (step,) = [
            item for item in self.serving.steps(self.published, self.serving.touched()) if item is not None
        ]
        self.published = step.after(self.published)
        return step


def _changes(step: Step, before: PublishedSnapshots) -> dict[str, set[TypeUrl]]:
    """Return the types that a step changes, by the ServiceAccount of the group."""
    return {
        name.split("|")[1]: set(snapshot.changed_since(before.snapshots[name]))
        for name, snapshot in step.snapshots.items()
        if snapshot is not None
    }


def _mesh(callers: int) -> Iterable[object]:
    yield a.service("shop")
    yield a.route_group("all", a.match("any", "/.*"))
    for number in (1, 2):
        yield a.workload(f"shop-{number}", f"10.1.0.{number}", app="shop", account="shop")
    for number in range(callers):
        name = f"client-{number}"
        yield a.service(f"own-{number}")
        yield a.workload(name, f"10.2.0.{number}")
        yield a.workload(f"own-{number}", f"10.3.0.{number}")
        yield a.target(f"shop-{number}", name, "shop", ALL)
        yield a.target(f"own-{number}", name, f"own-{number}", ALL)


def _server(callers: int = 3, mode: EndpointAdmission = EndpointAdmission.OFF) -> Server:
    return Server(callers, translation(EnvoyDriver()), mode)


def _clients(callers: int = 3) -> list[str]:
    return [f"client-{number}" for number in range(callers)]


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return a counter of the functions that are computed from now on."""
    result: Counter[str] = Counter()
    compute = Graph._compute

    def counting(self: Graph, node: Derivation) -> None:
        result[node.family.name] += 1
        compute(self, node)

    monkeypatch.setattr(Graph, "_compute", counting)
    return result


@pytest.mark.parametrize("callers", [1, 3])
def test_moved_endpoint_changes_only_load_assignments(callers: int, computed: Counter[str]) -> None:
    """No group is translated, and the endpoints are computed once for all callers."""
    server = _server(callers)
    before, encoded = server.published, server.serving.rendering.encoded
    computed.clear()
    step = server.wave(Edits(a.objects(MOVED)))
    assert server.translated == []
    assert dict(computed) == dict.fromkeys(ONCE, 1) | dict.fromkeys(PER_CALLER, callers)
    assert server.serving.rendering.encoded - encoded == 1
    assert _changes(step, before) == {name: {ENDPOINT} for name in _clients(callers)}


def test_added_or_removed_endpoint_translates_no_policy() -> None:
    """Another workload of the same identity remains, and the new proxy joins its group at once."""
    server = _server()
    gone = server.wave(Edits({a.object_key(MOVED): None}))
    assert (server.translated, sorted(map(str, gone.members))) == ([], ["shop-1-uuid.shop.default"])
    came = server.wave(Edits(a.objects(MOVED)))
    assert (server.translated, sorted(map(str, came.members))) == ([], ["shop-1-uuid.shop.default"])


def test_admitted_endpoint_translates_no_policy(computed: Counter[str]) -> None:
    """Only the endpoints of its callers are computed."""
    server = _server(mode=EndpointAdmission.READY)
    proxy = server.view.workloads[MOVED.key].proxy_name
    assert proxy is not None
    computed.clear()
    before = server.published
    step = server.wave(Edits(admissions={proxy: Admission.ADMITTED}))
    assert server.translated == []
    assert dict(computed) == {
        "catalog.relations.backends.readiness.taking_traffic": 1,
        "catalog.policy.destinations.endpoints_of": 1,
        "meshwright.delivery.snapshots.rendering._completed": 1,
        "meshwright.delivery.snapshots.rendering.made": 1,
        **dict.fromkeys(PER_CALLER, 3),
    }
    assert _changes(step, before) == {name: {ENDPOINT} for name in _clients()}


def test_changed_health_of_an_endpoint_translates_no_policy() -> None:
    """Every Pod is unready when it starts, so callers are sent endpoints only."""
    server = _server()
    for health in (Health.UNREADY, Health.READY, Health.DRAINING):
        before = server.published
        step = server.wave(Edits(a.objects(replace(MOVED, health=health))))
        assert server.translated == []
        assert _changes(step, before) == {name: {ENDPOINT} for name in _clients()}


def test_new_identity_behind_a_service_translates_its_callers() -> None:
    """Negative control: clusters have the identities of the servers."""
    server = _server()
    other = replace(MOVED, identity=a.identity("own-0"))
    server.wave(Edits(a.objects(other)))
    assert {"client-0", "own-0"} <= set(server.translated) <= {*_clients(), "own-0", "shop"}


def test_translation_that_reads_endpoints_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: such a translation runs again for every caller."""
    monkeypatch.setattr(rendering, "outline", proxy_policy)
    server = _server()
    server.wave(Edits(a.objects(MOVED)))
    assert sorted(server.translated) == _clients()


def test_document_follows_a_moved_endpoint_without_a_translation() -> None:
    """The document driver has one piece for everything; it gets the endpoints that it names."""
    server = Server(1, lambda need: DocumentDriver().pieces(need.policy), EndpointAdmission.OFF)
    before = server.published
    step = server.wave(Edits(a.objects(MOVED)))
    assert server.translated == []
    assert _changes(step, before) == {"client-0": {DOCUMENT}}
    (after,) = [snapshot for snapshot in step.snapshots.values() if snapshot is not None]
    assert b'"address":"10.1.0.9"' in after.resources(DOCUMENT)[NAME].body


def test_moved_endpoint_is_linted_with_its_service_only(
    computed: Counter[str],
) -> None:
    """No TrafficTarget of its identity is linted again."""
    view: View = a.view(*_mesh(3))
    linter = Linter(view)
    assert list(linter.looks())
    computed.clear()
    view.apply(Edits(a.objects(MOVED)))
    assert list(linter.looks())
    asked = {name: count for name, count in computed.items() if ".problems." in name}
    assert asked == {"catalog.lint.problems.of_service": 1, "catalog.lint.problems.of_workload": 1}
