"""Tests of docs/policy/osm.md: its examples are read without a problem; a table has every unused field."""

import re
from pathlib import Path
from typing import Final

import pytest

from meshwright.providers.directory.manifests import Manifests
from meshwright.specs.osm.mesh_config import NOT_USED

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = (ROOT / "docs" / "policy" / "osm.md").read_text("utf-8")
EXAMPLES: Final = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", EXAMPLES, ids=lambda text: text.split("\n")[1])
def test_osm_examples_are_read_without_a_problem(text: str) -> None:
    """Each example is read by itself, as a user pastes it."""
    state = Manifests().apply("example.yaml", text)
    assert state.objects()
    assert state.problems() == ()


def test_every_unused_osm_field_is_on_the_page() -> None:
    """The exceptions are fields of OSM's successor, which no MeshConfig of Open Service Mesh has."""
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


def test_every_test_named_on_the_osm_page_exists() -> None:
    """Each row of OSM's end-to-end tests names a test file, or is marked as not here."""
    section = PAGE.partition("\n## What Open Service Mesh tried end to end\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ") and not line.endswith("| here |")]
    assert len(rows) > 40
    for row in rows:
        named = re.findall(r"`(tests/[^`]*)`", row)
        assert named or "| not here: " in row, row
        for path in named:
            text = (ROOT / path).read_text("utf-8")
            assert re.search(r"^(async )?def test_", text, re.MULTILINE), path
