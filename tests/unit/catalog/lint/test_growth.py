"""Tests of the cost of lint after a change: equal counts in a mesh four times as large."""

import gc
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FrameType

import pytest

from benchmarks.meshes import generator as meshes
from catalog.lint.problems import Linter
from catalog.store.edits import Edits
from catalog.store.view import MeshSettings, View
from meshwright.mesh.config import TlsVersion
from meshwright.mesh.kinds import WORKLOAD
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import MeshObject, NamespaceObject, ObjectKey, SourcedObject
from meshwright.sidecars.document.driver import DocumentDriver
from meshwright.sidecars.envoy.driver import EnvoyDriver
from meshwright.sidecars.lint import InstalledDrivers

SMALL, LARGE = 50, 200
PERMISSIVE = pytest.mark.parametrize("permissive", [False, True], ids=["policy", "permissive"])

Change = Callable[[int, int, bool], Mapping[ObjectKey, MeshObject | None]]
"""What is written: by the number of services, the change's number, and whether the mesh is permissive."""


def _moves(services: int, count: int, permissive: bool) -> Mapping[ObjectKey, MeshObject | None]:
    del services, permissive
    value = meshes.workload(17, 1, moved=count + 1)
    return {ObjectKey.from_name(WORKLOAD, value.key): value}


def _target(services: int, count: int, permissive: bool) -> Mapping[ObjectKey, MeshObject | None]:
    del services, permissive
    return dict([meshes.target(16, 17, *(() if count % 2 else ("read",)))])


def _weight(services: int, count: int, permissive: bool) -> Mapping[ObjectKey, MeshObject | None]:
    del permissive
    return dict([meshes.split(20, services, count + 2)])


def _service(services: int, count: int, permissive: bool) -> Mapping[ObjectKey, MeshObject | None]:
    """Add a service and its workloads, and delete them the next time."""
    del permissive
    workloads = [meshes.workload(9990, replica) for replica in range(2)]
    result = {
        **dict(meshes.service_objects(9990, services)),
        **{ObjectKey.from_name(WORKLOAD, workload.key): workload for workload in workloads},
    }
    return result if count % 2 == 0 else dict.fromkeys(result)


def _setting(services: int, count: int, permissive: bool) -> Mapping[ObjectKey, MeshObject | None]:
    del services
    version = (TlsVersion.V1_3, TlsVersion.V1_2)[count % 2]
    return {meshes.CONFIG: meshes.config(version, permissive=permissive)}


def _annotation(services: int, count: int, permissive: bool) -> Mapping[ObjectKey, MeshObject | None]:
    del services, permissive
    name = Namespace("team-3")
    return {ObjectKey.of_namespace(name): NamespaceObject(name, annotations=(("team", str(count)),))}


CHANGES = {
    "an endpoint moves": _moves,
    "a target is narrowed": _target,
    "a weight changes": _weight,
    "a service comes and goes": _service,
    "a setting changes": _setting,
    "a namespace is annotated": _annotation,
}


@dataclass(frozen=True, slots=True)
class Work:
    """Counts of work: functions computed, values reused, objects linted, and calls of any function."""

    computed: int
    reused: int
    looked: int
    calls: int


class Linted:
    """A mesh with its linter."""

    def __init__(self, services: int, permissive: bool) -> None:
        self.services, self._permissive = services, permissive
        self.view = View.build(meshes.mesh(services, permissive=permissive).objects, MeshSettings())
        installed = InstalledDrivers({"document": DocumentDriver(), "envoy": EnvoyDriver()}, {})
        self.linter = Linter(self.view, lambda: installed)
        self.looked = len(list(self.linter.looks()))
        self.view.apply(Edits())  # drops values that only the first lint needed

    def work(self, change: Change, count: int) -> Work:
        """Apply a change, lint, and return the work."""
        edits = change(self.services, count, self._permissive)
        sourced_objects: dict[ObjectKey, SourcedObject | None] = {
            key: None if value is None else meshes.sourced(key, value) for key, value in edits.items()
        }
        graph = self.view.graph
        before = graph.computed, graph.reused
        calls = Calls()
        with calls:
            self.view.apply(Edits(sourced_objects))
            looked = len(list(self.linter.looks()))
        return Work(graph.computed - before[0], graph.reused - before[1], looked, calls.count)


class Calls:
    """Counter of function calls, built-in functions included, while the context is entered.

    Garbage is not collected meanwhile, because that calls functions for objects of other tests.
    """

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> None:
        gc.disable()
        sys.setprofile(self._noted)

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        gc.enable()

    def _noted(self, _: FrameType, event: str, __: object) -> None:
        self.count += event in ("call", "c_call")


@pytest.fixture(scope="module")
def linted() -> Callable[[int, bool], Linted]:
    """Return a factory of meshes by size and mode, each made once."""
    made: dict[tuple[int, bool], Linted] = {}

    def get(services: int, permissive: bool) -> Linted:
        if (services, permissive) not in made:
            made[services, permissive] = Linted(services, permissive)
        return made[services, permissive]

    return get


@PERMISSIVE
@pytest.mark.parametrize("name", CHANGES)
def test_lint_after_a_change_costs_the_same_in_a_larger_mesh(
    linted: Callable[[int, bool], Linted], name: str, permissive: bool
) -> None:
    """With four times as many services, lint computes no more functions and makes at most 5 % more calls."""
    small, large = linted(SMALL, permissive), linted(LARGE, permissive)
    for count in range(4):
        few, many = (item.work(CHANGES[name], count) for item in (small, large))
        assert (many.computed, many.looked) == (few.computed, few.looked)
        assert many.reused <= few.reused
        assert many.calls <= 1.05 * few.calls


def test_first_lint_looks_at_every_object(linted: Callable[[int, bool], Linted]) -> None:
    """The first lint grows with the mesh, so low costs of later ones do not come from an idle linter."""
    assert linted(LARGE, False).looked > 3.5 * linted(SMALL, False).looked
    assert linted(SMALL, False).work(_moves, 99).looked > 1
