"""Unknown fields in every mapping of every kind: the problem offers all fields that the schema has there."""

import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest

from meshwright.mesh.origins import FromSource
from meshwright.specs.reader import read
from meshwright.specs.reference.shapes import DescribedKind, MappingShape
from tests.unit.specs.reference.document_places import DESCRIBED

ORIGIN = FromSource("test")
UNLIKE_ANY = "zzzzzzzz"
OF_EVERY_KIND = {"apiVersion", "kind"}
"""Fields that shapes do not list, because each kind has them."""


def mappings(
    value: Any, path: str, shape: MappingShape
) -> Iterator[tuple[str, dict[str, Any], MappingShape]]:
    """Yield the mappings without further fields in a document, each with its path and shape."""
    if not isinstance(value, dict):
        return
    if shape.closed:
        yield path, value, shape
    for field in shape.fields:
        at = f"{path}.{field.name}" if path else field.name
        match value.get(field.name):
            case dict() as section:
                yield from mappings(section, at, field.inside)
            case list() as items:
                for index, item in enumerate(items):
                    yield from mappings(item, f"{at}[{index}]", field.items)
            case _:
                pass


def absences(mapping: dict[str, Any], shape: MappingShape) -> Iterator[None]:
    """Remove no optional field from a mapping, then each, then all; the fields return afterwards."""
    optional = [
        field.name
        for field in shape.fields
        if field.name in mapping and not field.required and field.name not in {"metadata", *OF_EVERY_KIND}
    ]
    whole = dict(mapping)
    for gone in ([], *([name] for name in optional), optional):
        for name in gone:
            del mapping[name]
        yield
        mapping.clear()
        mapping.update(whole)


def offered(document: dict[str, Any], at: str) -> set[str]:
    """Return the known fields that the problem of an unknown field names."""
    (problem,) = (problem for problem in read(document, ORIGIN).problems if problem.field == at)
    listed = re.fullmatch("unknown field(?:; the known fields are (.*))?", problem.expected)
    assert listed is not None, problem
    # Some mappings have no field, for example those that must be empty.
    return {*listed[1].split(", ")} if listed[1] else set()


@DESCRIBED
def test_unknown_field_is_answered_with_all_fields_of_the_schema(described: DescribedKind) -> None:
    """Also with those that the document does not have, whatever other fields it has."""
    for shape in described.shapes:
        for example in described.examples:
            document = copy.deepcopy(dict(example))
            if document["apiVersion"] not in shape.api_versions:
                continue
            for path, mapping, inner in [*mappings(document, "", shape.body)]:
                known = {*(field.name for field in inner.fields), *inner.untouched}
                for _ in absences(mapping, inner):
                    mapping[UNLIKE_ANY] = 1
                    at = f"{path}.{UNLIKE_ANY}" if path else UNLIKE_ANY
                    assert offered(document, at) - (OF_EVERY_KIND - known) == known, at


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "field", "meant"),
    [
        (
            "meshwright.dev/v1alpha1",
            "Workload",
            {"address": "192.0.2.10", "serviceAccount": "public", "gatway": "public"},
            "gatway",
            "gateway",
        ),
        (
            "policy.meshwright.dev/v1alpha1",
            "MutualTLS",
            {"destination": {"kind": "ServiceAccount", "name": "x"}, "mode": "Strict", "plaintxt": {}},
            "plaintxt",
            "plaintext",
        ),
    ],
)
def test_misspelt_optional_field_is_recognised(
    api_version: str, kind: str, spec: dict[str, Any], field: str, meant: str
) -> None:
    """Although the reader does not read the field without its presence."""
    document = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "one"}, "spec": spec}
    problems = {problem.field: problem.expected for problem in read(document, ORIGIN).problems}
    assert problems[f"spec.{field}"] == f"unknown field; did you mean {meant}?"
