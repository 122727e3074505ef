"""Tests of the README's size: a reader decides in a minute, so page, quick starts and picture are small."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text("utf-8")


def test_readme_has_at_most_150_lines() -> None:
    """The rest is in docs/, where the last section leads."""
    assert len(README.splitlines()) <= 150


@pytest.mark.parametrize("title", ["Laptop", "Kubernetes", "Virtual machines"])
def test_quick_start_has_at_most_twelve_lines(title: str) -> None:
    """All blocks of one quick start count, with their comments and continued lines."""
    section = README.partition(f"\n### {title}\n")[2].partition("\n##")[0]
    blocks = re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert 1 <= len(lines) <= 12


def test_pictures_in_the_readme_are_small_png_files() -> None:
    """Each has less than 200 kB, so that the page is fast and the repository stays small."""
    pictures = [ROOT / path for path in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README)]
    assert [path.relative_to(ROOT).as_posix() for path in pictures] == ["docs/images/console.png"]
    assert [path for path in pictures if not path.read_bytes().startswith(b"\x89PNG")] == []
    assert [path for path in pictures if path.stat().st_size >= 200_000] == []
