"""Helpers for tests of readers: manifests from YAML text, and problems as short tuples."""

from meshwright.mesh.objects import MeshObject
from meshwright.mesh.origins import InFile
from meshwright.specs.reader import ManifestReading, read
from tests.tools import libyaml

ORIGIN = InFile("test.yaml", 1, 1)


def reading(text: str) -> ManifestReading:
    """Read one manifest written in YAML."""
    return read(libyaml.load(text), ORIGIN)


def value(text: str) -> MeshObject:
    """Read one manifest that must be valid and without problems."""
    manifest_reading = reading(text)
    assert manifest_reading.problems == ()
    ((_, made),) = manifest_reading.objects
    return made


def complaints(text: str) -> list[tuple[str, str, str, str]]:
    """Read one manifest and return its problems as severity, code, field and value."""
    manifest_reading = reading(text)
    return [
        (problem.severity.value, problem.code, problem.field, problem.value)
        for problem in manifest_reading.problems
    ]
