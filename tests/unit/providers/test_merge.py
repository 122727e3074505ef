"""Several providers' inventories as one."""

from dataclasses import replace

from mesh.endpoints import Inventory
from mesh.names import IpAddress, Namespace
from mesh.objects import EndpointSlice
from mesh.origins import FromSource
from mesh.problems import Problem, Severity
from providers.manifests import Manifests
from providers.merge import Merged, merge
from tests.meshes.texts import workload, workload_key

INVENTORY = Manifests().apply("x.yaml", workload("w", "10.0.0.1")).inventory()
(W,) = INVENTORY.workloads.values()
SLICE = EndpointSlice("s", Namespace("shop"), "s-1", ("10.0.0.1",), (("", 80),))


def test_the_earlier_source_wins() -> None:
    """A key known differently is a warning that names both sources; known alike it is none."""
    other = replace(W, address=IpAddress("10.0.0.2"))
    later = replace(W, key=replace(W.key, name="v"))
    merged = merge(
        [
            ("one", Inventory.of([W])),
            ("two", Inventory.of([later, other], [SLICE])),
            ("three", Inventory.of([W])),
        ]
    )
    assert merged.inventory == Inventory.of([later, W], [SLICE])
    said = "is known differently by the source one, which comes first and is used"
    key = workload_key("w")
    assert merged.problems == (
        Problem(code="MW1108", severity=Severity.WARNING, origin=FromSource("two"), key=key, expected=said),
    )


def test_nothing_merges_to_nothing() -> None:
    """No source, no answer, no problem."""
    assert merge([]) == Merged()
