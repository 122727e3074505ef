"""Objects that an API server shows in another version than the one they were written in."""

import copy
from typing import Any

import pytest

from meshwright.cli.offline import reference
from meshwright.mesh.origins import InCluster
from meshwright.mesh.policies.smi import TrafficTarget
from meshwright.mesh.problems.problem import Severity
from meshwright.specs.displayed_objects import read_shown
from meshwright.specs.kinds import READ
from meshwright.specs.reader import read
from meshwright.specs.reference.meanings.definitions import INSTALLED
from tests.tools import libyaml

ORIGIN = InCluster("here", "7")
CASES = [
    pytest.param(dict(example), api_version, id=f"{each.kind.name}-{number}-as-{api_version}")
    for each in reference.described()
    if each.kind in INSTALLED
    for number, example in enumerate(each.examples)
    for api_version in READ[each.kind].api_versions
]


@pytest.mark.parametrize(("example", "api_version"), CASES)
def test_an_object_means_the_same_in_whatever_version_it_is_shown(
    example: dict[str, Any], api_version: str
) -> None:
    """Nothing converts: the fields are those that it was written with, whatever stands in apiVersion."""
    shown = {**copy.deepcopy(example), "apiVersion": api_version}
    found = read_shown(shown, ORIGIN)
    assert found.objects == read(example, ORIGIN).objects
    assert not [each for each in found.problems if each.severity is Severity.ERROR]


def test_a_port_that_only_an_older_version_has_still_narrows() -> None:
    """Read as v1alpha3 alone it would be refused, and without the field it would open every port."""
    found = read_shown(
        libyaml.load(
            """
apiVersion: access.smi-spec.io/v1alpha3
kind: TrafficTarget
metadata: {name: a, namespace: n}
spec:
  destination: {kind: ServiceAccount, name: store, port: 80}
  rules: [{kind: TCPRoute, name: any}]
  sources: [{kind: ServiceAccount, name: client}]
"""
        ),
        ORIGIN,
    )
    ((_, value),) = found.objects
    assert isinstance(value, TrafficTarget)
    assert value.port == 80
    assert [(each.code, each.severity, each.field) for each in found.problems] == [
        ("MW1033", Severity.INFO, "apiVersion")
    ]
    assert "access.smi-spec.io/v1alpha2" in found.problems[0].expected


@pytest.mark.parametrize(
    "text",
    [
        "{apiVersion: access.smi-spec.io/v1alpha3, kind: TrafficTarget, metadata: {name: a}, spec: {r: []}}",
        "{apiVersion: access.smi-spec.io/v1alpha9, kind: TrafficTarget, metadata: {name: a}, spec: {}}",
        "{apiVersion: specs.smi-spec.io/v1alpha4, kind: UDPRoute, metadata: {name: a}}",
        "{apiVersion: v1, kind: Servce, metadata: {name: a}}",
        "{apiVersion: v1, kind: List, items: [{}]}",
        "[]",
    ],
)
def test_what_fits_no_version_is_refused_as_in_a_file(text: str) -> None:
    """For what is wrong with it in the version that it is shown in."""
    document = libyaml.load(text)
    assert read_shown(document, ORIGIN) == read(document, ORIGIN)
