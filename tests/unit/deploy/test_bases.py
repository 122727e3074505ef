"""The base images of the Dockerfiles: each can be pinned by digest when an image is built."""

import re
from pathlib import Path

import pytest

IMAGES = Path(__file__).resolve().parents[3] / "deploy" / "images"


@pytest.mark.parametrize("name", ["control-plane", "proxy"])
def test_every_base_is_an_argument(name: str) -> None:
    """Every stage begins with an argument of the build, whose default has a tag."""
    text = (IMAGES / name / "Dockerfile").read_text("utf-8")
    defaults = dict(re.findall(r"^ARG (\w+)=(\S+)$", text.partition("\nFROM ")[0], re.MULTILINE))
    bases = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert bases
    assert {base.strip("${}") for base in bases} == set(defaults)
    assert all(base.startswith("${") for base in bases)
    assert all(re.fullmatch(r"[^@:]+:[\w.-]+(@sha256:[0-9a-f]{64})?", each) for each in defaults.values())
