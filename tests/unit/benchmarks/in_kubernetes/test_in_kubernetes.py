"""Both control planes are told the same of one mesh in a cluster; what happens there is what was meant."""

from benchmarks.in_kubernetes import objects, smi
from benchmarks.in_kubernetes.source import InKubernetes, turning
from benchmarks.kubernetes import PEER, RELISTS, Size, arguments, plans
from benchmarks.meshes import generator as meshes
from benchmarks.meshes.changes import MOVED
from benchmarks.meshes.manifests import text
from benchmarks.peers.istiod.source import Istio
from meshwright.mesh.kinds import HTTP_ROUTE_GROUP
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.providers.directory.manifests import Manifests

SERVICES = 40


class Written:
    """Takes what is written to an API."""

    def __init__(self) -> None:
        self.merged: list[objects.Object] = []

    def create(self, one: objects.Object) -> None:
        """Refuse: nothing new is written here."""
        raise AssertionError(one)

    def merge(self, one: objects.Object) -> None:
        """Note it."""
        self.merged.append(one)

    def delete(self, one: objects.Object) -> None:
        """Refuse."""
        raise AssertionError(one)


def test_each_service_has_two_policies_of_each_control_plane() -> None:
    """Beside the splits of a tenth."""
    for plan in plans(Size(SERVICES, 5, 10)):
        result = [policy for number in range(SERVICES) for policy in plan.words.policies(number, (1, 2))]
        assert len(result) == 2 * SERVICES + SERVICES // meshes.SPLIT_EVERY, plan.who
        assert {item.kind for item in result} == set(plan.kinds)


def test_what_ours_is_told_is_read_as_the_benchmarks_mesh() -> None:
    """The routes and splits are the very same; who may call is one target with its five callers."""
    messages = [
        policy.document()
        for number in range(SERVICES)
        for policy in smi.Smi(SERVICES).policies(number, meshes.callers(number, SERVICES))
    ]
    read = Manifests().apply("mesh.yaml", text(messages))
    assert read.problems() == ()
    result = {sourced_object.key: sourced_object.value for sourced_object in read.objects().values()}
    theirs = {
        sourced_object.key: sourced_object.value for sourced_object in meshes.mesh(SERVICES).objects.values()
    }
    routes = [ObjectKey(HTTP_ROUTE_GROUP, *_place(number)) for number in range(SERVICES)]
    assert [result[route] for route in routes] == [theirs[route] for route in routes]


def test_an_endpoint_turns_and_turns_back() -> None:
    """In its slice alone; the others stay ready."""
    written = Written()
    source = InKubernetes(written, SERVICES, Istio(SERVICES, narrow=True), 5)
    event = turning(source)
    for count in range(2):
        event.write(source, count)
    ready = [[one["conditions"]["ready"] for one in item.body["endpoints"]] for item in written.merged]
    assert ready == [[True, False, True, True, True], [True] * 5]
    assert {item.kind for item in written.merged} == {objects.SLICE}
    assert event.concerned is not None
    assert event.concerned(SERVICES) == meshes.callers(MOVED, SERVICES)


def test_the_endpoint_is_ready_when_the_next_control_plane_begins() -> None:
    """Else its first event would be none."""
    assert RELISTS % 2 == 0


def test_whoever_the_event_concerns_connects_first() -> None:
    """However few connect; a peer's sidecars are the same as ours."""
    size = Size(SERVICES, 5, 30)
    numbers = (MOVED, *meshes.callers(MOVED, SERVICES))
    assert size.names() == meshes.sidecar_names(numbers, 5)[:30]
    assert arguments(["--only", PEER, "--quick"]).services < 100


def _place(number: int) -> tuple[Namespace, str]:
    key = meshes.service_key(number)
    return key.namespace, str(key.name)
