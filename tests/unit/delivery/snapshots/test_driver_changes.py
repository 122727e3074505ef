"""Tests of workloads that change their driver: incremental output equals output from scratch."""

import random
from dataclasses import replace

import pytest

import catalog.relations.groups
from catalog.lint.problems import Linter, problems
from catalog.store.view import MeshSettings, View
from meshwright.delivery.model import Inputs
from meshwright.delivery.problems import AllProblems
from meshwright.delivery.quarantine.fallback import Exclusions
from meshwright.delivery.quarantine.quarantine import Quarantine
from meshwright.delivery.self_check import verify
from meshwright.delivery.snapshots.group_snapshots import GroupSnapshots
from meshwright.delivery.snapshots.published_snapshots import PublishedSnapshots
from meshwright.delivery.snapshots.translation import translation
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject, ObjectKey
from meshwright.mesh.problems.problem import Problems
from meshwright.mesh.workload import DRIVER_ANNOTATION
from meshwright.sidecars import lint
from meshwright.sidecars.document.driver import DocumentDriver
from meshwright.sidecars.document.translate import DOCUMENT
from meshwright.sidecars.envoy.driver import EnvoyDriver
from meshwright.sidecars.envoy.empty_resources import empty
from tests.meshes import values as a
from tests.meshes.random_meshes import Mesh, changed, random_mesh
from tests.meshes.views import POLICY, mesh_config, namespace, view, workload
from tests.tools.hypothesis_profiles import examples
from tests.unit.delivery.histories import Replica
from xds.cache import NodeKey, SnapshotCache
from xds.protocol.resources.resource import CLUSTER

INSTALLED = lint.InstalledDrivers({"document": DocumentDriver(), "envoy": EnvoyDriver()}, {})
ONE, TWO = NodeKey("one.store.shop"), NodeKey("two.store.shop")


class Plane:
    """The snapshots of manifests that are replaced by others."""

    def __init__(self) -> None:
        self.view = View(MeshSettings())
        self.translate = translation(EnvoyDriver(), DocumentDriver())
        self.serving = GroupSnapshots(self.view, self.translate)
        self.published = PublishedSnapshots()
        self.certificates = {
            item.identity: a.certificate(item.identity, "1")
            for item in view(workload("one")).workloads.values()
        }
        self.serving.rendering.certify(self.certificates, b"roots")

    def wave(self, *documents: str) -> int:
        """Apply these manifests; return the number of changed snapshots."""
        self.view.apply(self.view.edits_to(view(*documents).known()))
        changed = 0
        for step in self.serving.steps(self.published, self.serving.touched()):
            if step is not None:
                self.published = step.after(self.published)
                changed = sum(snapshot is not None for snapshot in step.snapshots.values())
        inputs = Inputs(self.view.known(), self.view.settings, self.certificates, b"roots")
        assert verify(inputs, self.translate, self.published, Exclusions({}, empty)) == ()
        return changed

    def kinds(self) -> list[str]:
        """Return the kind of configuration of each of the two proxies."""
        result = []
        for node in (ONE, TWO):
            snapshot = self.published.snapshot(node)
            types = () if snapshot is None else snapshot.types()
            result.append(
                next((name for t, name in ((DOCUMENT, "document"), (CLUSTER, "envoy")) if t in types), "")
            )
        return result


def test_most_specific_driver_wins_after_each_change() -> None:
    """A workload's driver precedes its namespace's, and this the MeshConfig's.

    A change affects only the snapshots of the proxies whose driver it decides.
    """
    plane, one, two = Plane(), workload("one"), workload("two", "envoy", 2)
    both = (POLICY, one, two)
    assert (plane.wave(*both), plane.kinds()) == (2, ["envoy", "envoy"])
    assert plane.wave(*both) == 0
    assert (plane.wave(*both, namespace("document")), plane.kinds()) == (1, ["document", "envoy"])
    by_config = mesh_config("sidecarClass: document")
    assert (plane.wave(*both, by_config), plane.kinds()) == (1, ["document", "envoy"])
    assert (plane.wave(*both, by_config, namespace("envoy")), plane.kinds()) == (1, ["envoy", "envoy"])
    plane.wave(POLICY, workload("one", "document"), two, namespace("envoy"))
    assert plane.kinds() == ["document", "envoy"]


def test_unknown_driver_leaves_a_proxy_with_its_last_configuration() -> None:
    """Only this group fails; a new proxy with an unknown driver has no configuration."""
    plane = Plane()
    plane.wave(POLICY, workload("one"))
    plane.wave(POLICY, workload("one", "pipy"), workload("two", "pipy", 2))
    assert plane.kinds() == ["envoy", ""]
    (failure,) = {item.error for item in plane.published.failures}
    assert failure == "UnknownDriverError: sidecar driver 'pipy' is unknown; known: document, envoy"
    plane.wave(POLICY, workload("one", "document"), workload("two", "envoy", 2))
    assert plane.kinds() == ["document", "envoy"]
    assert plane.published.failures == ()


class Mixed(Replica):
    """A control plane whose workloads have several drivers, some of them unknown."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.view = View(mesh.settings)
        self.translate = translation(*INSTALLED.drivers.values())
        self.serving = GroupSnapshots(self.view, self.translate)
        self.published = PublishedSnapshots()
        self.quarantine = Quarantine(empty)
        self.cache = SnapshotCache()
        self.linter = Linter(self.view, lambda: INSTALLED)
        self.problems = AllProblems()

    def differences(self) -> tuple[str, ...]:
        """Return the differences from the same mesh computed from scratch."""
        inputs = Inputs(self.mesh.known(), self.mesh.settings, self.mesh.certificates, self.mesh.roots)
        anew = View(self.mesh.settings)
        anew.apply(anew.edits_to(self.mesh.known()))
        self.problems.report_lint(self.linter.looks())
        answer = {*problems(anew), *_further(anew)} == set(self.problems.all())
        return (
            *verify(inputs, self.translate, self.published, Exclusions({}, empty)),
            *(() if answer else ("said",)),
        )


def _further(of: View) -> Problems:
    return lint.problems(of, INSTALLED)


def _rename(dice: random.Random, mesh: Mesh) -> None:
    """Set another driver, or none, on a workload, a namespace or a MeshConfig."""
    name = dice.choice(("", "", "envoy", "document", "pipy"))
    kind = dice.choice(("workload", "workload", NamespaceObject, MeshConfig))
    if kind == "workload":
        if mesh.workloads:
            chosen = dice.choice(sorted(mesh.workloads))
            mesh.workloads[chosen] = replace(mesh.workloads[chosen], driver=name)
        return
    for key, sourced in sorted(mesh.objects.items()):
        match sourced.value:
            case NamespaceObject() as value if kind is NamespaceObject:
                others = tuple(
                    annotation for annotation in value.annotations if annotation[0] != DRIVER_ANNOTATION
                )
                answer = ((DRIVER_ANNOTATION, name),) if name else ()
                mesh.objects[key] = replace(sourced, value=replace(value, annotations=(*others, *answer)))
            case MeshConfig() as value if kind is MeshConfig:
                sidecar = replace(value.sidecar, sidecar_class=name)
                mesh.objects[key] = replace(sourced, value=replace(value, sidecar=sidecar))
            case _:
                continue


@pytest.mark.fuzzed
@pytest.mark.parametrize("seed", range(examples(4, fresh=12)))
def test_random_histories_of_drivers(seed: int) -> None:
    """After random changes of drivers, snapshots and problems equal those computed from scratch."""
    dice = random.Random(seed)  # noqa: S311 - dice
    replica = Mixed(random_mesh(dice))
    for _ in range(6):
        replica.wave()
        assert replica.differences() == ()
        changed(dice, replica.mesh)
        for _ in range(dice.randint(1, 3)):
            _rename(dice, replica.mesh)


def test_unrecorded_read_of_a_namespace_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: if the read of its annotation is not recorded, a workload keeps its old driver."""

    def unrecorded(of: View, namespace: Namespace) -> str:
        sourced_object = of.sourced.values_unrecorded().get(ObjectKey.of_namespace(namespace))
        if sourced_object is None or not isinstance(sourced_object.value, NamespaceObject):
            return ""
        return dict(sourced_object.value.annotations).get(DRIVER_ANNOTATION, "")

    monkeypatch.setattr(catalog.relations.groups, "namespace_driver", unrecorded)
    with pytest.raises(AssertionError):
        for seed in range(12):
            test_random_histories_of_drivers(seed)
