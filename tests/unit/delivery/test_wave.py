"""What a wave was made for: each input that is another one, once, with where it was read."""

from dataclasses import replace
from datetime import UTC, datetime

from catalog.store.edits import Edits, difference
from catalog.store.view import View
from delivery.wave import NAMED, Cause, Causes, Change, causes
from mesh.endpoints import Inventory
from mesh.kinds import SERVICE
from mesh.names import IpAddress, Namespace
from mesh.objects import EndpointSlice
from mesh.origins import InFile
from providers.merge import merge
from tests.meshes import values as a

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STORE = a.service("store")
W = a.workload("w", "10.0.0.1")


def _causes(before: View, after: View, source: str = "dns") -> list[str]:
    edits = difference(before.known(), after.known())
    return [str(each) for each in causes(before, edits, edits.objects, lambda _: source)]


def test_each_kind_of_change_is_named() -> None:
    """With the file of objects; what came is from its new place, what went from where it was."""
    before = a.view(STORE, a.service("cart"))
    after = a.view(a.service("store", app="other"), a.service("bank"))
    assert sorted(_causes(before, after)) == [
        "Service default/bank added (test:2 (document 1))",
        "Service default/cart removed (test:2 (document 1))",
        "Service default/store changed (test:1 (document 1))",
    ]


def test_an_object_that_only_moved_in_its_file_is_no_cause() -> None:
    """Nothing but messages depends on it."""
    assert _causes(a.view(STORE), a.view(a.service("cart"), STORE)) == [
        "Service default/cart added (test:1 (document 1))"
    ]


def test_a_workload_read_from_an_object_is_one_cause() -> None:
    """It is in the inventory as well; one of another source is named by that source."""
    assert _causes(a.view(), a.view(W)) == ["Workload default/w added (test:1 (document 1))"]
    known = a.view().known()
    elsewhere = replace(known, workloads=Inventory.of([W]).workloads)
    edits = difference(known, elsewhere)
    assert [str(each) for each in causes(a.view(), edits, {}, lambda _: "dns")] == [
        "Workload default/w added (dns)"
    ]


def test_another_form_of_a_slice_is_one_change() -> None:
    """Although the view knows it as another slice."""
    before, after = (
        a.view(EndpointSlice("store", Namespace("default"), "s", (each,), ()))
        for each in ("10.0.0.1", "10.0.0.2")
    )
    assert _causes(before, after) == ["EndpointSlice default/s changed (dns)"]


def test_a_source_is_found_for_what_it_wins() -> None:
    """And nobody for what nobody has."""
    merged = merge([("one", Inventory()), ("two", Inventory.of([W]))])
    key = a.object_key(W)
    assert (merged.source(key), merged.source(replace(key, name="v"))) == ("two", "")


def test_more_causes_than_are_named_are_counted() -> None:
    """The next wave begins anew."""
    gathered = Causes()
    gathered.note(Cause(SERVICE, f"n/{each}", str(InFile("f")), Change.ADDED) for each in range(NAMED + 5))
    named, more = gathered.take()
    assert (len(named), more, gathered.take()) == (NAMED, 5, ((), 0))


def test_large_edits_come_in_parts_that_are_the_whole() -> None:
    """Objects before workloads; few edits are one part."""
    moved = replace(W, address=IpAddress("10.0.0.2"))
    edits = difference(a.view(W).known(), a.view(STORE, a.service("cart"), moved).known())
    assert list(edits.parts(10)) == [edits]
    parts = list(edits.parts(1))
    assert [len(each) for each in parts] == [1] * len(edits)
    assert parts[-1] == Edits(workloads=edits.workloads)
