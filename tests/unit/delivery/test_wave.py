"""Tests of a wave's causes: each changed input once, with its origin."""

from dataclasses import replace
from datetime import UTC, datetime

from catalog.store.edits import Edits
from catalog.store.view import View
from meshwright.delivery.wave import NAMED, Cause, Causes, Change, causes
from meshwright.mesh.kinds import SERVICE
from meshwright.mesh.names import IpAddress, Namespace
from meshwright.mesh.objects import EndpointSlice
from meshwright.mesh.origins import InFile
from meshwright.providers.dns.slices import FoundSlice
from tests.meshes import values as a

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STORE = a.service("store")
W = a.workload("w", "10.0.0.1")


def _causes(before: View, after: View) -> list[str]:
    return [str(cause) for cause in causes(before, before.edits_to(after.known()))]


def test_added_changed_and_removed_objects_are_causes_with_their_origin() -> None:
    """Added and changed objects have their new place in the file, removed ones their last place."""
    before = a.view(STORE, a.service("cart"))
    after = a.view(a.service("store", app="other"), a.service("bank"))
    assert sorted(_causes(before, after)) == [
        "Service default/bank added (test:2 (document 1))",
        "Service default/cart removed (test:2 (document 1))",
        "Service default/store changed (test:1 (document 1))",
    ]


def test_object_that_only_moved_in_its_file_is_no_cause() -> None:
    """Only messages depend on an object's place in its file."""
    assert _causes(a.view(STORE), a.view(a.service("cart"), STORE)) == [
        "Service default/cart added (test:1 (document 1))"
    ]


def test_cause_from_the_dns_has_the_resolved_name_and_nameserver() -> None:
    """An EndpointSlice from the DNS has no file, so its origin is the name and the nameserver."""
    value = EndpointSlice("db", Namespace("default"), "db-dns", ("10.0.0.1",), ())
    sourced_object = FoundSlice(value, "db.test at 10.9.0.1").sourced()
    assert [str(cause) for cause in causes(a.view(), Edits({sourced_object.key: sourced_object}))] == [
        f"EndpointSlice default/db-dns added ({sourced_object.origin})"
    ]


def test_changed_endpoint_slice_is_one_cause() -> None:
    """A slice with other addresses is one change, although the view has it as another slice."""
    before, after = (
        a.view(EndpointSlice("store", Namespace("default"), "s", (item,), ()))
        for item in ("10.0.0.1", "10.0.0.2")
    )
    assert _causes(before, after) == ["EndpointSlice default/s changed (test:1 (document 1))"]


def test_causes_beyond_the_limit_are_counted() -> None:
    """`take` returns the first NAMED causes and the number of the others; the next wave starts anew."""
    gathered = Causes()
    gathered.note(Cause(SERVICE, f"n/{each}", str(InFile("f")), Change.ADDED) for each in range(NAMED + 5))
    named, more = gathered.take()
    assert (len(named), more, gathered.take()) == (NAMED, 5, ((), 0))


def test_large_edits_are_split_with_objects_before_workloads() -> None:
    """Few edits stay one part; otherwise the parts together have all edits, and workloads come last."""
    moved = replace(W, address=IpAddress("10.0.0.2"))
    edits = a.view(W).edits_to(a.view(STORE, a.service("cart"), moved).known())
    assert list(edits.parts(10)) == [edits]
    parts = list(edits.parts(1))
    assert [len(part) for part in parts] == [1] * len(edits)
    assert [*parts[-1].objects] == [a.object_key(W)]
