"""The bookstore's table is consistent with itself, with the manifests, and with the readers of manifests."""

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


def test_names_uuids_and_indexes_are_unique() -> None:
    """No two places share a name, a UUID or an index, from which their addresses follow."""
    for values in ([p.name for p in PLACES], [p.uuid for p in PLACES], [p.index for p in PLACES]):
        assert len(set(values)) == len(PLACES)


def test_uuids_are_the_same_in_every_run() -> None:
    """A UUID follows from the name alone."""
    assert topology.BOOKBUYER.uuid == "5a79c332-227f-5f73-a922-a39b624ea62b"
    assert str(topology.STORE_V1.proxy_name) == f"{topology.STORE_V1.uuid}.bookstore.bookstore"
    assert topology.BOOKTHIEF.proxy_name.service == "bookthief"


@pytest.mark.parametrize("addresses", BOTH, ids=lambda a: a.mode.value)
def test_workload_manifests_read_back_as_the_workloads(addresses: topology.Addresses) -> None:
    """What the demo writes is what the program reads, without a complaint."""
    documents = list(libyaml.load_all(manifests.workloads(addresses)))
    readings = [read(document, InFile("workloads.yaml")) for document in documents]
    assert [reading.problems for reading in readings] == [()] * len(PLACES)
    assert [reading.objects[0][1] for reading in readings] == [
        topology.workload(place, addresses) for place in PLACES
    ]


def test_explicit_listeners_never_share_an_address_and_port() -> None:
    """Sidecars, programs and upstreams of all places have addresses and ports of their own."""
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


def test_services_have_the_ports_and_the_workloads_of_the_table() -> None:
    """Each Service of the manifests has the table's port and selects exactly the places that back it."""
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


def test_all_manifests_are_read_without_a_problem() -> None:
    """Every variant that a phase can put up is a good one."""
    for path in sorted(manifests.SOURCE.rglob("*.yaml")):
        for document in libyaml.load_all(path.read_text("utf-8")):
            assert read(document, InFile(path.name)).problems == ()


def test_every_request_of_the_matrix_can_be_addressed() -> None:
    """A source's sidecar offers the service, also where policy must keep it away."""
    for _, request in matrix.CELLS:
        for addresses in BOTH:
            assert addresses.upstream(request.source, request.destination)
    assert BOTH[1].mode is Mode.TRANSPARENT


def test_apply_puts_replaces_and_removes(tmp_path: Path) -> None:
    """The mesh directory holds exactly the wanted changing files after each step."""
    manifests.prepare(tmp_path / "mesh", BOTH[0])
    always = {"namespaces.yaml", "services.yaml", "workloads.yaml"}
    for phase in matrix.PHASES:
        manifests.apply(tmp_path / "mesh", dict(phase.manifests))
        there = {path.name: path.read_bytes() for path in (tmp_path / "mesh").iterdir()}
        assert set(there) - always == set(phase.manifests)
        for name, variant in phase.manifests.items():
            assert there[name] == (manifests.SOURCE / variant).read_bytes()
