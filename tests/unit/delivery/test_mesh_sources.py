"""Tests of the mesh's sources: counts of their changes, and the pace of each kind of change."""

from collections.abc import Callable

import pytest

from catalog.store.settings import Admission
from meshwright.admin.metrics.registry import Metrics
from meshwright.delivery.mesh_sources import MeshSources, Paces, matter
from meshwright.delivery.timing.debounce import Matter, Pace
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.kinds import ADMISSION, ENDPOINT_SLICE, SERVICE, TRAFFIC_TARGET, WORKLOAD
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import EndpointSlice
from meshwright.providers.directory.source import DirectorySource
from meshwright.providers.sources import Counts, Sources
from tests.meshes import values as a
from tests.meshes.sources import MemorySource


def test_every_change_is_counted_once_by_source_and_kind(source_of: Callable[..., DirectorySource]) -> None:
    """Changes of manifests, of the DNS and of admissions are counted alike, once each."""
    source, dns = source_of(("a", "store")), MemorySource("dns")
    admitted: dict[ProxyName, Admission] = {}
    pace = Pace()
    gathering = MeshSources(Sources((source, dns)), Paces(pace, pace), Metrics(), lambda: dict(admitted))
    assert gathering.look() == {("directory", SERVICE): 1, ("directory", WORKLOAD): 1}
    assert gathering.look() == {}
    source_of(("a", "other"), ("b", "store"))
    source.load()
    dns.change(a.objects(EndpointSlice("store", Namespace("shop"), "s", ("10.0.0.1",), ())))
    name = ProxyName.parse("a.store.shop")
    admitted[name] = Admission.ADMITTED
    assert gathering.look() == {
        ("directory", WORKLOAD): 2,
        ("dns", ENDPOINT_SLICE): 1,
        ("admissions", ADMISSION): 1,
    }


@pytest.mark.parametrize(
    ("events", "of"),
    [
        ({("directory", WORKLOAD): 2, ("dns", ENDPOINT_SLICE): 1}, Matter.ENDPOINTS),
        ({("admissions", ADMISSION): 1}, Matter.ADMISSIONS),
        ({("admissions", ADMISSION): 1, ("dns", ENDPOINT_SLICE): 1}, Matter.ENDPOINTS),
        ({("directory", WORKLOAD): 2, ("directory", TRAFFIC_TARGET): 1}, Matter.POLICY),
        ({}, Matter.POLICY),
    ],
)
def test_only_changes_of_endpoints_and_admissions_have_their_own_pace(events: Counts, of: Matter) -> None:
    """A wave with any other change, or without events, has the pace of policy."""
    assert matter(events) is of
