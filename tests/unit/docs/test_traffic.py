"""Tests of docs/policy/traffic.md: examples are read without a problem, and each kind has a section."""

import re
from pathlib import Path
from typing import Final

import pytest

from meshwright.providers.directory.manifests import Manifests
from meshwright.specs.kinds import READ

PAGE: Final = (Path(__file__).parents[3] / "docs" / "policy" / "traffic.md").read_text("utf-8")
EXAMPLES: Final = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "text", EXAMPLES, ids=lambda text: re.findall("^kind: (.*)$", text, re.MULTILINE)[-1]
)
def test_traffic_examples_are_read_without_a_problem(text: str) -> None:
    """Each example is read by itself, as a user pastes it."""
    state = Manifests().apply("example.yaml", text)
    assert state.objects()
    assert state.problems() == ()


def test_each_policy_kind_has_a_section_and_an_example() -> None:
    """These are exactly the kinds of our policy group."""
    kinds = {kind.name for kind in READ if kind.group == "policy.meshwright.dev"}
    assert kinds == set(re.findall(r"^## (\w+)$", PAGE, re.MULTILINE))
    shown = set(re.findall(r"^apiVersion: policy.meshwright.dev/v1alpha1\nkind: (\w+)$", PAGE, re.MULTILINE))
    assert kinds == shown
