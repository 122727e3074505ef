"""docs/osm.md is true: its examples are read without a word; every field without effect is in its table."""

import re
from pathlib import Path
from typing import Final

import pytest

from meshwright.providers.directory.manifests import Manifests
from meshwright.specs.osm.mesh_config import NOT_USED

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = (ROOT / "docs" / "osm.md").read_text("utf-8")
EXAMPLES: Final = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", EXAMPLES, ids=lambda text: text.split("\n")[1])
def test_examples_are_read_without_a_word(text: str) -> None:
    """As a user pastes them, each by itself."""
    state = Manifests().apply("example.yaml", text)
    assert state.objects()
    assert state.problems() == ()


def test_of_every_field_of_osm_s_that_has_no_effect_it_is_said() -> None:
    """Its table names them; those of its successor alone are none of a MeshConfig of Open Service Mesh."""
    table = re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)
    named = {name.rpartition(".")[2] for row in table for name in re.findall(r"`(.*?)`", row)}
    fields = {
        name for section in ("traffic", "sidecar", "certificate") for name in NOT_USED[f"spec.{section}"]
    }
    assert fields - named == SUCCESSOR


SUCCESSOR: Final = {
    "enablePriviledgedInitContainer",
    "http1PerRequestLoadBalancing",
    "http2PerRequestLoadBalancing",
    "interceptionMode",
    "localDNSProxy",
    "serviceAccessMode",
    "sidecarTimeout",
    "useHTTPSIngress",
}


def test_every_test_that_is_named_is_there() -> None:
    """Each row of what was tried end to end names one that tries it, or says that it is not here."""
    section = PAGE.partition("\n## What Open Service Mesh tried end to end\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ") and not line.endswith("| here |")]
    assert len(rows) > 40
    for row in rows:
        named = re.findall(r"`(tests/[^`]*)`", row)
        assert named or "| not here: " in row, row
        for path in named:
            text = (ROOT / path).read_text("utf-8")
            assert re.search(r"^(async )?def test_", text, re.MULTILINE), path
