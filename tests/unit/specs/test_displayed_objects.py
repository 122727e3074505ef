"""Tests of objects that an API server returns in another version than the one they were written in."""

import copy
from typing import Any

import pytest

from meshwright.cli.offline import reference
from meshwright.mesh.origins import InCluster
from meshwright.mesh.policies.smi import TrafficTarget
from meshwright.mesh.problems.problem import Severity
from meshwright.providers.text.documents import documents
from meshwright.specs.displayed_objects import read_shown
from meshwright.specs.kinds import READ
from meshwright.specs.reader import read
from meshwright.specs.reference.meanings.definitions import INSTALLED
from meshwright.specs.reference.meanings.kinds import KINDS
from tests.tools import libyaml

ORIGIN = InCluster("here", "7")
CASES = [
    pytest.param(example.value, api_version, id=f"{kind.name}-{number}-as-{api_version}")
    for kind in KINDS
    if kind in INSTALLED
    for number, example in enumerate(documents(reference.text_of(kind)))
    for api_version in READ[kind].api_versions
]


@pytest.mark.parametrize(("example", "api_version"), CASES)
def test_object_has_the_same_value_in_every_returned_version(
    example: dict[str, Any], api_version: str
) -> None:
    """The CRDs have no conversion, so the fields are those of the original version."""
    shown = {**copy.deepcopy(example), "apiVersion": api_version}
    manifest_reading = read_shown(shown, ORIGIN)
    assert manifest_reading.objects == read(example, ORIGIN).objects
    assert not [problem for problem in manifest_reading.problems if problem.severity is Severity.ERROR]


def test_port_of_an_older_version_still_restricts_the_target() -> None:
    """As v1alpha3 the object would be refused, and without the port it would allow every port."""
    manifest_reading = read_shown(
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
    ((_, value),) = manifest_reading.objects
    assert isinstance(value, TrafficTarget)
    assert value.port == 80
    assert [(problem.code, problem.severity, problem.field) for problem in manifest_reading.problems] == [
        ("MW1033", Severity.INFO, "apiVersion")
    ]
    assert "access.smi-spec.io/v1alpha2" in manifest_reading.problems[0].expected


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
def test_document_that_fits_no_version_is_refused_like_in_a_file(text: str) -> None:
    """The problems are those of the returned version."""
    document = libyaml.load(text)
    assert read_shown(document, ORIGIN) == read(document, ORIGIN)
