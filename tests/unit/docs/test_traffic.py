"""docs/traffic.md is true: its examples are read without a word, and each of our kinds has a section."""

import re
from pathlib import Path
from typing import Final

import pytest

from meshwright.providers.directory.manifests import Manifests
from meshwright.specs.kinds import READ

PAGE: Final = (Path(__file__).parents[3] / "docs" / "traffic.md").read_text("utf-8")
EXAMPLES: Final = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "text", EXAMPLES, ids=lambda text: re.findall("^kind: (.*)$", text, re.MULTILINE)[-1]
)
def test_examples_are_read_without_a_word(text: str) -> None:
    """As a user pastes them, each by itself."""
    state = Manifests().apply("example.yaml", text)
    assert state.objects()
    assert state.problems() == ()


def test_each_kind_has_its_section_and_an_example() -> None:
    """Those of our policy's group, and no others."""
    kinds = {kind.name for kind in READ if kind.group == "policy.meshwright.dev"}
    assert kinds == set(re.findall(r"^## (\w+)$", PAGE, re.MULTILINE))
    shown = set(re.findall(r"^apiVersion: policy.meshwright.dev/v1alpha1\nkind: (\w+)$", PAGE, re.MULTILINE))
    assert kinds == shown
