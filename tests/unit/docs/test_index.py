"""Tests of docs/README.md, the index of all pages."""

import re
from collections import Counter
from pathlib import Path
from typing import Final

DOCS: Final = Path(__file__).parents[3] / "docs"
INDEX: Final = (DOCS / "README.md").read_text("utf-8")
FOLDERS: Final = {
    "Start": "start",
    "Write policy": "policy",
    "Operate": "operate",
    "Debug": "debug",
    "Extend": "extend",
    "Understand": "understand",
}
"""Folder of the pages below each heading, in the order of the headings."""
_LINE: Final = re.compile(r"- \[[^\]]+\]\(([^)]+\.md)\): [^\n]{20,130}\.")


def _sections() -> dict[str, list[str]]:
    """Return the lines below each heading, without empty ones."""
    parts = re.split(r"^## (.+)\n", INDEX, flags=re.MULTILINE)[1:]
    return {
        heading: [line for line in text.splitlines() if line]
        for heading, text in zip(parts[::2], parts[1::2], strict=True)
    }


def _listed() -> list[tuple[str, str]]:
    """Return each heading with each page below it."""
    return [
        (heading, match[1])
        for heading, lines in _sections().items()
        for line in lines
        if (match := _LINE.fullmatch(line))
    ]


def test_headings_are_tasks_of_readers() -> None:
    """The headings are the six tasks, in the order in which a reader meets them."""
    assert list(_sections()) == list(FOLDERS)


def test_each_line_is_a_page_and_its_use() -> None:
    """Below a heading are only lines with one link and one sentence of 20 to 130 characters."""
    lines = [line for lines in _sections().values() for line in lines]
    assert [line for line in lines if not _LINE.fullmatch(line)] == []


def test_every_page_is_listed_once() -> None:
    """A new page needs a line, and a removed page leaves none; no page is below two headings."""
    pages = Counter(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
    del pages["README.md"]
    listed = Counter(page for _, page in _listed())
    assert len(pages) > 30
    assert {"unlisted": pages - listed, "twice or gone": listed - pages} == {
        "unlisted": Counter(),
        "twice or gone": Counter(),
    }


def test_pages_are_in_the_folder_of_their_heading() -> None:
    """A reader who knows the heading finds the folder."""
    wrong = [
        f"{page} is below {heading!r}: its folder is docs/{FOLDERS[heading]}"
        for heading, page in _listed()
        if page.rpartition("/")[0] != FOLDERS[heading]
    ]
    assert wrong == []


def test_names_of_pages_are_unique() -> None:
    """Tests and readers name a page without its folder, for example `settings.md`."""
    names = [path.name for path in DOCS.rglob("*.md")]
    assert sorted(names) == sorted({*names})
