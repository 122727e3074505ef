"""What an object would come to, found out in a second mesh: as if it were there, and afterwards as it was."""

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
    """Return what a cluster and files come to."""
    return merge([(FILES, Picture(files or {})), (CLUSTER, Picture(of))], before)


def codes(found: tuple[Problem, ...]) -> list[str]:
    """Return the problems' codes and whose they are."""
    return [f"{each.code} {each.key}" for each in found]


def _one(thing: object) -> tuple[ObjectKey, SourcedObject]:
    ((key, sourced),) = a.objects(thing).items()
    return key, sourced


MESH = a.objects(a.service("store"), a.workload("store-1", "10.0.0.1", app="store", account="store"))
TARGET = a.target("buy", "client", "store", a.http("paths"))


def test_what_an_object_would_come_to_is_said() -> None:
    """Here that nobody has the source's identity, and that the route is not there."""
    trial = Trial(MeshSettings())
    trial.follow(merged(MESH), Picture())
    found = trial.of(CLUSTER, *_one(TARGET))
    assert {"MW2001 TrafficTarget default/buy", "MW2008 TrafficTarget default/buy"} <= set(codes(found))


def test_what_is_wrong_without_it_is_not_said() -> None:
    """The rest of the mesh may be as it likes."""
    trial = Trial(MeshSettings())
    trial.follow(merged({**MESH, **a.objects(a.split("halves", "nobody", ("none", 1)))}), Picture())
    assert not [each for each in trial.of(CLUSTER, *_one(TARGET)) if "halves" in str(each.key)]


def test_that_others_lose_what_they_name_is_said() -> None:
    """Of an object that is to go."""
    group = a.route_group("paths", a.match("one"))
    trial = Trial(MeshSettings())
    trial.follow(merged({**MESH, **a.objects(TARGET, group)}), Picture())
    key, _ = _one(group)
    assert codes(trial.of(CLUSTER, key, None)) == [
        "MW2001 TrafficTarget default/buy",
        "MW2004 TrafficTarget default/buy",
    ]


def test_who_has_it_work_beside_others_gives_them_their_turns() -> None:
    """After so many edits, and between objects that are looked at."""
    turns: list[None] = []
    trial = Trial(MeshSettings(), pause=lambda: turns.append(None))
    things = [a.target(f"t{number}", "client", "store", a.http("paths")) for number in range(200)]
    trial.follow(merged(a.objects(*things)), Picture())
    assert len(turns) >= 200 + 200 // PART
    assert trial.values > 200


def test_what_another_source_has_is_in_force() -> None:
    """Whatever the cluster is to have under the same key, which is a contradiction."""
    files = a.objects(a.target("buy", "client", "store", a.tcp("any")))
    trial = Trial(MeshSettings())
    trial.follow(merged(MESH, files), Picture())
    assert codes(trial.of(CLUSTER, *_one(TARGET))) == ["MW1108 TrafficTarget default/buy"]


def _without_origin(found: tuple[Problem, ...]) -> set[tuple[str, str, Severity, str, str, str]]:
    return {(e.code, str(e.key), e.severity, e.field, e.value, e.expected) for e in found}


def _break_off(trial: Trial, key: ObjectKey, new: SourcedObject | None, after: int) -> None:
    """Ask, and have nobody wait any more after so many objects that were looked at."""
    left = [None] * after

    def check() -> None:
        if not left:
            raise LateError
        left.pop()

    with contextlib.suppress(LateError):
        trial.of(CLUSTER, key, new, check)


def test_a_question_is_broken_off_when_nobody_waits() -> None:
    """After the first object that was looked at, of two hundred that are concerned."""
    things = [a.target(f"t{number}", "client", "store", a.http("paths")) for number in range(200)]
    trial = Trial(MeshSettings())
    trial.follow(merged(a.objects(*things)), Picture())
    checks: list[None] = []

    def check() -> None:
        checks.append(None)
        if len(checks) == 3:
            raise LateError

    with pytest.raises(LateError):
        trial.of(CLUSTER, *_one(a.route_group("paths", a.match("one"))), check)
    assert len(checks) == 3


@pytest.mark.parametrize("seed", range(12))
def test_it_says_what_a_mesh_from_nothing_would(seed: int) -> None:
    """Random meshes that change, and random objects: problems with it less those without it.

    What was asked leaves no trace, also where it was broken off: the same question has the same answer, and
    so has every later one.
    """
    dice = random.Random(seed)  # noqa: S311 - random meshes
    mesh, other = random_mesh(dice), random_mesh(random.Random(seed + 1000))  # noqa: S311
    trial = Trial(MeshSettings())
    now = MergedObjects()
    for _ in range(examples(3, fresh=12)):
        for _ in range(5):
            changed(dice, mesh)
        objects = {key: each for key, each in mesh.known().objects.items() if each is not None}
        now = merged(objects, before=now)
        trial.follow(now, Picture())
        before = problems(View.build(objects, MeshSettings()))
        keys = sorted({*objects, *(key for key, each in other.known().objects.items() if each is not None)})
        for key in dice.sample(keys, min(6, len(keys))):
            new = other.known().objects.get(key)
            after = {
                each: value for each, value in objects.items() if each != key and each not in key.forms()
            }
            if new is not None:
                after[key] = new
            elif key not in objects:
                continue
            expected = _without_origin(problems(View.build(after, MeshSettings()))) - _without_origin(before)
            _break_off(trial, key, new, dice.randrange(4))
            found = trial.of(CLUSTER, key, new)
            assert found == trial.of(CLUSTER, key, new) == ordered(found)
            assert expected <= _without_origin(found)
            own = {each for each in _without_origin(found) if each[1] == str(key)}
            assert _without_origin(found) - own <= expected
