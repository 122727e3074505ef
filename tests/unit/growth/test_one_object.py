"""Tests that the work for one object is linear in its size, for readers, lint, policy, drivers and pages.

Each part of an object has SIZE items, and then twice as many. The work that these add to the work for one
item may grow by a factor of 2.3: the constant is subtracted, a logarithm has some room, and quadratic work
would grow fourfold.
"""

from collections.abc import Mapping
from typing import Final

import pytest

from catalog.policy.group_policy import proxy_policy
from catalog.relations.groups import groups
from catalog.store.view import MeshSettings, View
from meshwright.admin.pages import access
from meshwright.admin.pages.calls import explain
from meshwright.admin.pages.proxies import description as describe
from meshwright.delivery.snapshots.rendering import RenderInputs, resources
from meshwright.delivery.snapshots.translation import translation
from meshwright.kubernetes.admission.trial import Trial
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.origins import InFile
from meshwright.mesh.values.picture import Picture
from meshwright.providers.merge import merge
from meshwright.sidecars.document.driver import DocumentDriver
from meshwright.sidecars.envoy.driver import EnvoyDriver
from meshwright.specs.reader import ManifestReading, read
from tests.tools.counted_work import Work, uncounted
from tests.tools.hypothesis_profiles import examples
from tests.unit.growth.objects import LARGE, MESH, Document

SIZE: Final = 8
MOST: Final = 2.3
SPARE: Final = 30
"""Lines that may be run besides: at so small a size a single line more is some percent."""

Objects = Mapping[ObjectKey, SourcedObject]
ORIGIN: Final = InFile("mesh.yaml")
QUERY: Final = {"from": "shop/client", "to": "shop/web:80", "method": "GET", "path": "/one"}


def _objects(reading: ManifestReading) -> Objects:
    assert reading.objects, reading.problems
    return {key: SourcedObject(key, value, ORIGIN) for key, value in reading.objects}


OTHERS: Final = {
    key: sourced_object for one in MESH for key, sourced_object in _objects(read(one, ORIGIN)).items()
}
"""The rest of the mesh."""


def _works(large: Document) -> Mapping[str, int]:
    """Return the work of each stage for the mesh with an object."""
    works = {stage: Work() for stage in ("read", "serve", "show", "review")}
    with works["read"]:
        reading = read(large, ORIGIN)
    works["read"].said(*reading.problems)
    objects = _objects(reading)
    with works["serve"]:
        view = View.build({**OTHERS, **objects}, MeshSettings())
        rendering = RenderInputs(view, translation(EnvoyDriver(), DocumentDriver(), secrets=False))
        for group in groups(view):
            works["serve"].said(*(resource.body for resource in resources(rendering, group).resources))
    _show(works["show"], view)
    _review(works["review"], objects)
    return {stage: work.count for stage, work in works.items()}


def _show(work: Work, view: View) -> None:
    """Build the debug pages of the mesh, of a request, and of each proxy."""
    policies = [proxy_policy(view, group) for group in groups(view)]
    with work:
        work.said(access.access_pairs(view), explain.answer(view, QUERY, ()))
        for policy in policies:
            messages = (describe.listeners, describe.routes, describe.clusters, describe.endpoints)
            work.said(*(page(policy) for page in messages))


def _review(work: Work, objects: Objects) -> None:
    """Review the object as the validating webhook and lint do."""
    ((key, sourced),) = objects.items()
    trial = Trial(MeshSettings())
    trial.follow(merge([("cluster", Picture(OTHERS))]), Picture())
    with work:
        problems = trial.new_problems("cluster", key, sourced)
    work.said(*problems)


@pytest.mark.fuzzed
@pytest.mark.parametrize("name", [*LARGE][:: examples(2, fresh=1)])
def test_work_for_one_object_is_linear_in_its_size(name: str) -> None:
    """Twice the object needs twice the work, so that no object delays all others for seconds.

    Every run has every second object, and `make fuzz` has all of them.
    """
    with uncounted():
        _works(LARGE[name](2))  # work done once in a process, such as imports, is done here
    small, one, other = (_works(LARGE[name](size)) for size in (1, SIZE, 2 * SIZE))
    added = {stage: (one[stage] - small[stage], other[stage] - small[stage]) for stage in small}
    assert {stage: item for stage, item in added.items() if item[1] > MOST * item[0] + SPARE} == {}
