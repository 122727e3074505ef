"""Tests of a trial: which problems a mesh would have with one changed object, without a trace left behind."""

import contextlib
import random
from collections.abc import Mapping

import pytest

from catalog.lint.problems import problems
from catalog.store.view import MeshSettings, View
from meshwright.kubernetes.admission.trial import PART, Trial
from meshwright.kubernetes.admission.turns import LateError
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.problems.problem import Problem, Severity, ordered
from meshwright.mesh.values.picture import Picture
from meshwright.providers.merge import MergedObjects, merge
from tests.meshes import values as a
from tests.meshes.random_meshes import changed, random_mesh
from tests.tools.hypothesis_profiles import examples

CLUSTER, FILES = "kubernetes", "directory"
Objects = Mapping[ObjectKey, SourcedObject]


def merged(of: Objects, files: Objects | None = None, before: MergedObjects | None = None) -> MergedObjects:
    """Return the merged objects of a cluster and of files."""
    return merge([(FILES, Picture(files or {})), (CLUSTER, Picture(of))], before)


def codes(result: tuple[Problem, ...]) -> list[str]:
    """Return code and key of each problem."""
    return [f"{problem.code} {problem.key}" for problem in result]


def _one(thing: object) -> tuple[ObjectKey, SourcedObject]:
    ((key, sourced),) = a.objects(thing).items()
    return key, sourced


MESH = a.objects(a.service("store"), a.workload("store-1", "10.0.0.1", app="store", account="store"))
TARGET = a.target("buy", "client", "store", a.http("paths"))


def test_problems_of_a_new_object_are_reported() -> None:
    """For example, the source's identity has no workload and the route group does not exist."""
    trial = Trial(MeshSettings())
    trial.follow(merged(MESH), Picture())
    result = trial.new_problems(CLUSTER, *_one(TARGET))
    assert {"MW2001 TrafficTarget default/buy", "MW2008 TrafficTarget default/buy"} <= set(codes(result))


def test_existing_problems_of_other_objects_are_not_reported() -> None:
    """A review is about one object, whatever the state of the rest of the mesh."""
    trial = Trial(MeshSettings())
    trial.follow(merged({**MESH, **a.objects(a.split("halves", "nobody", ("none", 1)))}), Picture())
    assert not [
        problem for problem in trial.new_problems(CLUSTER, *_one(TARGET)) if "halves" in str(problem.key)
    ]


def test_deletion_reports_problems_of_objects_that_refer_to_it() -> None:
    """A deleted route group leaves the TrafficTarget with a missing reference."""
    group = a.route_group("paths", a.match("one"))
    trial = Trial(MeshSettings())
    trial.follow(merged({**MESH, **a.objects(TARGET, group)}), Picture())
    key, _ = _one(group)
    assert codes(trial.new_problems(CLUSTER, key, None)) == [
        "MW2001 TrafficTarget default/buy",
        "MW2004 TrafficTarget default/buy",
    ]


def test_trial_pauses_after_a_number_of_edits_and_between_objects() -> None:
    """Pauses let other threads run while the trial works."""
    turns: list[None] = []
    trial = Trial(MeshSettings(), pause=lambda: turns.append(None))
    things = [a.target(f"t{number}", "client", "store", a.http("paths")) for number in range(200)]
    trial.follow(merged(a.objects(*things)), Picture())
    assert len(turns) >= 200 + 200 // PART
    assert trial.values > 200


def test_form_of_another_source_stays_in_force() -> None:
    """The cluster's object under the same key is a conflict and has no other problem."""
    files = a.objects(a.target("buy", "client", "store", a.tcp("any")))
    trial = Trial(MeshSettings())
    trial.follow(merged(MESH, files), Picture())
    assert codes(trial.new_problems(CLUSTER, *_one(TARGET))) == ["MW1108 TrafficTarget default/buy"]


def _without_origin(result: tuple[Problem, ...]) -> set[tuple[str, str, Severity, str, str, str]]:
    return {(e.code, str(e.key), e.severity, e.field, e.value, e.expected) for e in result}


def _break_off(trial: Trial, key: ObjectKey, new: SourcedObject | None, after: int) -> None:
    """Ask, and cancel the question after this many examined objects."""
    left = [None] * after

    def check() -> None:
        if not left:
            raise LateError
        left.pop()

    with contextlib.suppress(LateError):
        trial.new_problems(CLUSTER, key, new, check)


def test_cancelled_question_stops_at_the_next_object() -> None:
    """The check runs between objects, so the question ends at the third of two hundred objects."""
    things = [a.target(f"t{number}", "client", "store", a.http("paths")) for number in range(200)]
    trial = Trial(MeshSettings())
    trial.follow(merged(a.objects(*things)), Picture())
    checks: list[None] = []

    def check() -> None:
        checks.append(None)
        if len(checks) == 3:
            raise LateError

    with pytest.raises(LateError):
        trial.new_problems(CLUSTER, *_one(a.route_group("paths", a.match("one"))), check)
    assert len(checks) == 3


@pytest.mark.fuzzed
@pytest.mark.parametrize("seed", range(examples(4, fresh=12)))
def test_trial_equals_a_mesh_built_from_nothing(seed: int) -> None:
    """For random meshes, the answer has the problems with the object, less those without it.

    Existing problems of the object itself may be repeated. A question, also a cancelled one, leaves no trace:
    the same question has the same answer later.
    """
    dice = random.Random(seed)  # noqa: S311 - random meshes
    mesh, other = random_mesh(dice), random_mesh(random.Random(seed + 1000))  # noqa: S311
    trial = Trial(MeshSettings())
    now = MergedObjects()
    for _ in range(examples(2, fresh=12)):
        for _ in range(5):
            changed(dice, mesh)
        objects = {
            key: sourced_object
            for key, sourced_object in mesh.known().objects.items()
            if sourced_object is not None
        }
        now = merged(objects, before=now)
        trial.follow(now, Picture())
        before = problems(View.build(objects, MeshSettings()))
        keys = sorted(
            {
                *objects,
                *(key for key, sourced_object in other.known().objects.items() if sourced_object is not None),
            }
        )
        for key in dice.sample(keys, min(6, len(keys))):
            new = other.known().objects.get(key)
            after = {
                object_key: value
                for object_key, value in objects.items()
                if object_key != key and object_key not in key.forms()
            }
            if new is not None:
                after[key] = new
            elif key not in objects:
                continue
            expected = _without_origin(problems(View.build(after, MeshSettings()))) - _without_origin(before)
            _break_off(trial, key, new, dice.randrange(4))
            result = trial.new_problems(CLUSTER, key, new)
            assert result == trial.new_problems(CLUSTER, key, new) == ordered(result)
            assert expected <= _without_origin(result)
            own = {item for item in _without_origin(result) if item[1] == str(key)}
            assert _without_origin(result) - own <= expected
