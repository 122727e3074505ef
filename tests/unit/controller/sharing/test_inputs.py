"""Tests of the digest of the objects that a server has read."""

from collections.abc import Mapping
from dataclasses import replace

from meshwright.controller.sharing.inputs import DifferingInputs, InputDigest
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.origins import InFile
from meshwright.mesh.values.picture import Picture
from meshwright.providers.directory.source import DirectorySource
from meshwright.providers.merge import MergedObjects


def _digest(*moments: Mapping[ObjectKey, SourcedObject]) -> str:
    digest, objects = InputDigest(), Picture[ObjectKey, SourcedObject]()
    before: Mapping[ObjectKey, SourcedObject] = {}
    for there in moments:
        gone: dict[ObjectKey, SourcedObject | None] = dict.fromkeys(key for key in before if key not in there)
        objects, before = objects.changed(gone | dict(there)), there
        for _ in digest.steps(MergedObjects((("directory", objects),))):
            pass
    return digest.text


def test_equal_objects_have_equal_digests(source: DirectorySource) -> None:
    """Neither the order nor the way there counts, and the origin is a server's own."""
    objects = dict(source.objects())
    first, *others = objects
    backwards = dict(reversed(objects.items()))
    moved = {key: replace(item, origin=InFile("other.yaml", 1, 1)) for key, item in objects.items()}
    without = {key: objects[key] for key in others}
    digest = _digest(objects)
    assert digest.startswith(f"{len(objects)}-")
    assert _digest(backwards) == _digest(moved) == _digest({}, without, objects) == digest
    assert _digest(objects, without) == _digest(without) != digest
    assert _digest() == _digest(objects, {}) == f"0-{0:032x}"
    changed = objects | {first: replace(objects[first], value=objects[others[0]].value)}
    assert _digest(changed) not in (digest, _digest(without))
    assert _digest(objects, changed, objects) == digest


def test_time_for_which_inputs_differ() -> None:
    """A server that has not read its sources does not count, and equal digests begin a new time."""
    now = 0.0
    differing = DifferingInputs(lambda: now)
    assert differing.seconds() is None
    differing.look(["a", "", "a"])
    assert differing.seconds() is None
    differing.look(["a", "b"])
    now = 5.0
    differing.look(["b", "c"])
    assert differing.seconds() == 5.0
    differing.look(["c", "c"])
    assert differing.seconds() is None
    differing.look(["c", "d"])
    now = 6.0
    assert differing.seconds() == 1.0
