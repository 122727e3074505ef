"""Tests that the bookstore's table is consistent with itself, the manifests and their readers."""

import itertools
from pathlib import Path

import pytest

from demo import manifests, matrix, topology
from demo.topology import PLACES, SERVICE_PORTS, ExplicitAddresses, Mode, TransparentAddresses
from meshwright.mesh.origins import InFile
from meshwright.mesh.service import Service
from meshwright.mesh.workload import Explicit, Workload
from meshwright.specs.reader import read
from tests.tools import libyaml

BOTH = (ExplicitAddresses("127.20"), TransparentAddresses("10.222.0"))


def test_places_have_unique_names_uuids_and_indexes() -> None:
    """Addresses are derived from the index."""
    for values in ([p.name for p in PLACES], [p.uuid for p in PLACES], [p.index for p in PLACES]):
        assert len(set(values)) == len(PLACES)


def test_place_uuid_depends_only_on_its_name() -> None:
    """So it is the same in every run."""
    assert topology.BOOKBUYER.uuid == "5a79c332-227f-5f73-a922-a39b624ea62b"
    assert str(topology.STORE_V1.proxy_name) == f"{topology.STORE_V1.uuid}.bookstore.bookstore"
    assert topology.BOOKTHIEF.proxy_name.service == "bookthief"


@pytest.mark.parametrize("addresses", BOTH, ids=lambda a: a.mode.value)
def test_workload_manifests_are_read_back_as_the_same_workloads(addresses: topology.Addresses) -> None:
    """The reader has no complaint about the demo's manifests."""
    documents = list(libyaml.load_all(manifests.workloads(addresses)))
    readings = [read(document, InFile("workloads.yaml")) for document in documents]
    assert [reading.problems for reading in readings] == [()] * len(PLACES)
    assert [reading.objects[0][1] for reading in readings] == [
        topology.workload(place, addresses) for place in PLACES
    ]


def test_explicit_listeners_never_share_an_address_and_port() -> None:
    """This holds for sidecars, programs and upstreams of all places."""
    taken: list[tuple[str, int]] = []
    for place in PLACES:
        described = topology.workload(place, BOTH[0])
        assert isinstance(described.interception, Explicit)
        taken += [(described.address, port.number) for port in described.ports]
        application = described.interception.application_address
        taken += [(application, port.number) for port in described.ports if application is not None]
        taken += [(up.local_address, up.local_port) for up in described.interception.upstreams]
    assert len(set(taken)) == len(taken)


def _services() -> dict[str, Service]:
    services = {}
    for document in libyaml.load_all((manifests.SOURCE / "services.yaml").read_text("utf-8")):
        for _, value in read(document, InFile("services.yaml")).objects:
            assert isinstance(value, Service)
            services[str(value.key)] = value
    return services


def test_services_have_the_ports_and_workloads_of_the_table() -> None:
    """Each Service of the manifests selects exactly the places that back it."""
    services = _services()
    assert set(services) == {str(key) for key in SERVICE_PORTS}
    for key, port in SERVICE_PORTS.items():
        assert [inbound_port.port for inbound_port in services[str(key)].ports] == [port]
    for place, (name, service) in itertools.product(PLACES, services.items()):
        described: Workload = topology.workload(place, BOTH[0])
        selected = (
            described.has_labels(service.selector) and place.identity.namespace == service.key.namespace
        )
        assert selected == (name in {str(back) for back in place.backs})


def test_all_demo_manifests_are_read_without_a_problem() -> None:
    """This includes every variant of every phase."""
    for path in sorted(manifests.SOURCE.rglob("*.yaml")):
        for document in libyaml.load_all(path.read_text("utf-8")):
            assert read(document, InFile(path.name)).problems == ()


def test_every_request_of_the_matrix_has_an_address() -> None:
    """A source's sidecar offers the service, also if policy denies it."""
    for _, request in matrix.CELLS:
        for addresses in BOTH:
            assert addresses.upstream(request.source, request.destination)
    assert BOTH[1].mode is Mode.TRANSPARENT


def test_apply_adds_replaces_and_removes_the_changing_manifests(tmp_path: Path) -> None:
    """After each phase, the mesh directory has exactly the wanted files."""
    manifests.prepare(tmp_path / "mesh", BOTH[0])
    always = {"namespaces.yaml", "services.yaml", "workloads.yaml"}
    for phase in matrix.PHASES:
        manifests.apply(tmp_path / "mesh", dict(phase.manifests))
        there = {path.name: path.read_bytes() for path in (tmp_path / "mesh").iterdir()}
        assert set(there) - always == set(phase.manifests)
        for name, variant in phase.manifests.items():
            assert there[name] == (manifests.SOURCE / variant).read_bytes()
