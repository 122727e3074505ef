"""Tests of docs/operate/telemetry.md: examples are read without a problem, and tables have every field."""

import re
from pathlib import Path
from typing import Final

import pytest

from meshwright.mesh.kinds import EXTENSION_SERVICE, TELEMETRY, Kind
from meshwright.providers.directory.manifests import Manifests
from meshwright.specs.reference.meanings.kinds import KINDS

PAGE: Final = (Path(__file__).parents[3] / "docs" / "operate" / "telemetry.md").read_text("utf-8")
EXAMPLES: Final = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_telemetry_examples_are_read_without_a_problem() -> None:
    """A Telemetry is read by itself, and another one with the server that it names."""
    states = [Manifests().apply("example.yaml", text) for text in EXAMPLES]
    assert [sorted(key.kind.name for key in state.objects()) for state in states] == [
        ["Telemetry"],
        ["ExtensionService", "Telemetry"],
    ]
    assert [state.problems() for state in states] == [(), ()]


@pytest.mark.parametrize("kind", [TELEMETRY, EXTENSION_SERVICE])
def test_every_telemetry_field_is_on_the_page(kind: Kind) -> None:
    """Each field is named as it is written."""
    fields = {place.rpartition(".")[2] for place in KINDS[kind][1] if place.startswith("spec.")}
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`(.*?)`", PAGE)))) | set(re.findall(r"\w+", PAGE))
    assert fields <= named
