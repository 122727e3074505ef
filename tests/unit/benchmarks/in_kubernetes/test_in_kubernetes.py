"""Tests that both control planes get the same mesh in a cluster, and the intended changes of it."""

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
    """Records objects written to an API."""

    def __init__(self) -> None:
        self.merged: list[objects.Object] = []

    def create(self, one: objects.Object) -> None:
        """Refuse, because no object is created here."""
        raise AssertionError(one)

    def merge(self, one: objects.Object) -> None:
        """Record the object."""
        self.merged.append(one)

    def delete(self, one: objects.Object) -> None:
        """Refuse, because no object is deleted here."""
        raise AssertionError(one)


def test_each_service_has_two_policies_for_each_control_plane() -> None:
    """One in `SPLIT_EVERY` services has a split as well."""
    for plan in plans(Size(SERVICES, 5, 10)):
        result = [policy for number in range(SERVICES) for policy in plan.words.policies(number, (1, 2))]
        assert len(result) == 2 * SERVICES + SERVICES // meshes.SPLIT_EVERY, plan.who
        assert {item.kind for item in result} == set(plan.kinds)


def test_manifests_for_meshwright_are_read_as_the_benchmark_mesh() -> None:
    """The routes are the same, and the reader has no problems."""
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


def test_endpoint_event_turns_an_endpoint_unready_and_ready_again() -> None:
    """Only its slice changes, and the other endpoints stay ready."""
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


def test_endpoint_is_ready_when_the_next_control_plane_starts() -> None:
    """The number of relists is even; otherwise the first event of the next one would change nothing."""
    assert RELISTS % 2 == 0


def test_sidecars_concerned_by_the_event_connect_first() -> None:
    """This holds however few connect, and a peer has the same sidecars."""
    size = Size(SERVICES, 5, 30)
    numbers = (MOVED, *meshes.callers(MOVED, SERVICES))
    assert size.names() == meshes.sidecar_names(numbers, 5)[:30]
    assert arguments(["--only", PEER, "--quick"]).services < 100


def _place(number: int) -> tuple[Namespace, str]:
    key = meshes.service_key(number)
    return key.namespace, str(key.name)
