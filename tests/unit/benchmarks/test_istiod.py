"""Tests that the peer's mesh equals ours: services, callers, scopes and sidecars in Istio's objects."""

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
    """Records requests to an API."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, core.Object]] = []

    def create(self, one: core.Object) -> None:
        """Record a creation."""
        self.requests.append(("create", one))

    def merge(self, one: core.Object) -> None:
        """Record a merge."""
        self.requests.append(("merge", one))

    def delete(self, one: core.Object) -> None:
        """Record a deletion."""
        self.requests.append(("delete", one))


def test_each_service_has_the_objects_that_istio_reads() -> None:
    """There are two Pods behind one EndpointSlice, and an AuthorizationPolicy.

    A fraction of the services has a VirtualService.
    """
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


def test_authorization_policy_admits_the_callers_of_our_targets() -> None:
    """The callers are identified by their ServiceAccounts."""
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


def test_narrow_scope_has_exactly_the_called_services_and_their_backends() -> None:
    """With more, the peer would not be at its best; with fewer, routes would lack a backend."""
    number = 3
    result = objects.sidecar(number, SERVICES)
    called = meshes.called(number, SERVICES)
    further = [meshes.backend(item, SERVICES) for item in called if item % meshes.SPLIT_EVERY == 0]
    assert further
    hosts = result.body["spec"]["egress"][0]["hosts"]
    expected = {*called, *further}
    assert {host.split("/")[1] for host in hosts} == {objects.host(item) for item in expected}
    assert all(host.split("/")[0] == host.split(".")[1] for host in hosts)


def test_sidecar_node_has_the_fields_of_istios() -> None:
    """The id has its address, Pod and namespace; the metadata has its labels and account."""
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


def test_endpoint_move_is_one_write() -> None:
    """Only the EndpointSlice is written, and its other endpoint is unchanged."""
    written = Written()
    InKubernetes(written, SERVICES, Istio(SERVICES, narrow=True)).move(MOVED, 1, 4)
    ((how, result),) = written.requests
    assert (how, result.kind) == ("merge", core.SLICE)
    addresses = [endpoint["addresses"] for endpoint in result.body["endpoints"]]
    assert addresses == [
        [str(meshes.workload(MOVED, 0).address)],
        [str(meshes.workload(MOVED, 1, moved=5).address)],
    ]


def test_default_scope_is_compared_with_permissive_mode() -> None:
    """In both, every sidecar has every service. The narrow scope is compared with our policy mode."""
    result = {scope.name: (scope.case.permissive, scope.case.stages) for scope in scopes_of(250, None)}
    assert result == {"istiod-narrow": (False, (0, 12, 500)), "istiod-default": (True, (0, 250, 500))}
