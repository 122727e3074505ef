"""Short hands for tests of readers: manifests from YAML text, and problems as short tuples."""

from meshwright.mesh.objects import MeshObject
from meshwright.mesh.origins import InFile
from meshwright.specs.reader import ManifestReading, read
from tests.tools import libyaml

ORIGIN = InFile("test.yaml", 1, 1)


def reading(text: str) -> ManifestReading:
    """Read one manifest written in YAML."""
    return read(libyaml.load(text), ORIGIN)


def value(text: str) -> MeshObject:
    """Read one manifest that must be good and without problems."""
    found = reading(text)
    assert found.problems == ()
    ((_, made),) = found.objects
    return made


def complaints(text: str) -> list[tuple[str, str, str, str]]:
    """Read one manifest and return its problems as severity, code, field and value."""
    found = reading(text)
    return [
        (problem.severity.value, problem.code, problem.field, problem.value) for problem in found.problems
    ]
