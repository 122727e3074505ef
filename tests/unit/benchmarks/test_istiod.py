"""The peer's mesh is ours: the same services, callers, scopes and sidecars, as Istio is told of them."""

from google.protobuf import json_format

from benchmarks.in_kubernetes import objects as core
from benchmarks.in_kubernetes.source import InKubernetes, mesh
from benchmarks.istiod import scopes_of
from benchmarks.meshes import generator as meshes
from benchmarks.meshes.changes import MOVED
from benchmarks.peers.istiod import objects
from benchmarks.peers.istiod.source import Istio
from meshwright.mesh.policies.smi import TrafficTarget
from protos.envoy.config.core.v3 import base_pb2

SERVICES = 100


class Written:
    """Takes what is written to an API."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, core.Object]] = []

    def create(self, one: core.Object) -> None:
        """Note it."""
        self.requests.append(("create", one))

    def merge(self, one: core.Object) -> None:
        """Note it."""
        self.requests.append(("merge", one))

    def delete(self, one: core.Object) -> None:
        """Note it."""
        self.requests.append(("delete", one))


def test_each_service_has_what_istio_goes_by() -> None:
    """Two Pods behind one EndpointSlice, and who may call; a tenth is split."""
    result = list(mesh(SERVICES, Istio(SERVICES, narrow=False)))
    count = {
        kind: sum(item.kind.name == kind for item in result) for kind in {item.kind.name for item in result}
    }
    assert count == {
        "Service": SERVICES,
        "ServiceAccount": SERVICES,
        "Pod": 2 * SERVICES,
        "EndpointSlice": SERVICES,
        "AuthorizationPolicy": SERVICES,
        "VirtualService": SERVICES // meshes.SPLIT_EVERY,
    }


def test_a_policy_admits_whom_our_targets_admit() -> None:
    """By the identities of their ServiceAccounts."""
    result = objects.policy(MOVED, meshes.callers(MOVED, SERVICES))
    (rule,) = result.body["spec"]["rules"]
    targets = [sourced_object.value for sourced_object in meshes.mesh(SERVICES).objects.values()]
    ours = {
        f"cluster.local/ns/{source.namespace}/sa/{source.service_account}"
        for target in targets
        if isinstance(target, TrafficTarget) and target.destination.service_account == f"service-{MOVED}"
        for source in target.sources
    }
    assert set(rule["from"][0]["source"]["principals"]) == ours
    assert len(ours) == 5


def test_the_narrow_scope_has_whom_a_service_calls_and_is_split_to() -> None:
    """No more, or it would not be the peer at its best; no less, or routes would miss a backend."""
    number = 3
    result = objects.sidecar(number, SERVICES)
    called = meshes.called(number, SERVICES)
    further = [meshes.backend(item, SERVICES) for item in called if item % meshes.SPLIT_EVERY == 0]
    assert further
    hosts = result.body["spec"]["egress"][0]["hosts"]
    expected = {*called, *further}
    assert {host.split("/")[1] for host in hosts} == {objects.host(item) for item in expected}
    assert all(host.split("/")[0] == host.split(".")[1] for host in hosts)


def test_a_sidecar_says_what_istios_says() -> None:
    """Its address, Pod and namespace in its id, its labels and account in the metadata."""
    workload = meshes.workload(5, 1)
    node = base_pb2.Node.FromString(objects.node(workload))
    assert node.id == f"sidecar~{workload.address}~service-5-1.team-5~team-5.svc.cluster.local"
    answer = json_format.MessageToDict(node.metadata)
    assert answer["SERVICE_ACCOUNT"] == "service-5"
    assert answer["LABELS"] == {
        "app": "service-5",
        "tier": "mesh",
        "security.istio.io/tlsMode": "istio",
    }


def test_the_move_of_an_endpoint_is_one_write() -> None:
    """The EndpointSlice, whose other endpoint stays."""
    written = Written()
    InKubernetes(written, SERVICES, Istio(SERVICES, narrow=True)).move(MOVED, 1, 4)
    ((how, result),) = written.requests
    assert (how, result.kind) == ("merge", core.SLICE)
    addresses = [endpoint["addresses"] for endpoint in result.body["endpoints"]]
    assert addresses == [
        [str(meshes.workload(MOVED, 0).address)],
        [str(meshes.workload(MOVED, 1, moved=5).address)],
    ]


def test_the_default_scope_is_held_to_permissive_mode() -> None:
    """In both every sidecar holds every service; the narrow one is held to ours by policy."""
    result = {scope.name: (scope.case.permissive, scope.case.stages) for scope in scopes_of(250, None)}
    assert result == {"istiod-narrow": (False, (0, 12, 500)), "istiod-default": (True, (0, 250, 500))}
