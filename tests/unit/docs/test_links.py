"""Tests of every link in the repository's Markdown, and of every mention of a page in its other files."""

import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.unit.docs.links import Link, anchors, broken_links, links, lost_mentions

ROOT: Final = Path(__file__).parents[3]
_MADE_UP: Final = ("tests/unit/docs/links.py", "tests/unit/docs/test_links.py")
"""Files that mention pages of examples."""


@cache
def _files() -> frozenset[str]:
    """Return the files of the repository, with new files that git does not ignore."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("only git knows the files of the repository")
    # The owner of a checkout in a container is often another user, which git refuses by default.
    words = ("git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    answer = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True, timeout=60)
    return frozenset(path for path in answer.stdout.split("\0") if (ROOT / path).is_file())


@cache
def _pages() -> dict[str, str]:
    paths = sorted(path for path in _files() if path.endswith(".md"))
    return {path: (ROOT / path).read_text("utf-8") for path in paths}


def test_every_link_leads_to_a_file_and_a_heading() -> None:
    """Pages link to files, folders and headings that exist, by relative paths."""
    assert sum(1 for text in _pages().values() for link in links(text) if "://" not in link.path) > 500
    assert broken_links(_pages(), _files()) == []


def test_every_mention_of_a_page_names_an_existing_page() -> None:
    """Messages, docstrings, comments and settings name pages below docs/ and headings that exist."""
    known = {path: anchors(text) for path, text in _pages().items()}
    texts = {
        path: data.decode("utf-8", "replace")
        for path in sorted(_files() - set(_MADE_UP))
        if b"docs/" in (data := (ROOT / path).read_bytes())
    }
    assert len(texts) > 100
    lost = {path: found for path, text in texts.items() if (found := lost_mentions(text, known))}
    assert lost == {}


_README: Final = """# Shop

## Begin `now`: it's *easy*
## Begin
## Begin ##
## See [the plan](docs/plan.md)

```sh
# no heading
echo "[no link](nowhere.md)"
```
"""


def test_anchors_are_those_of_github() -> None:
    """Links leave their text, equal headings are numbered, and code has no headings."""
    assert anchors(_README) == {"shop", "begin-now-its-easy", "begin", "begin-1", "see-the-plan"}


def test_links_of_all_forms_are_found() -> None:
    """Text, code as text, line breaks, images, definitions and HTML are read; code is not."""
    text = (
        "[a](a.md), [`b`](b.md#c 'title'), [two\nlines](#d), ![picture](e%20f.png), `[code](no.md)`\n\n"
        '<img src="g.svg">\n\n[h]: h.md\n'
    )
    assert list(links(text)) == [
        Link("a.md", ""),
        Link("b.md", "c"),
        Link("", "d"),
        Link("e f.png", ""),
        Link("h.md", ""),
        Link("g.svg", ""),
    ]


@pytest.mark.parametrize(
    ("link", "fault"),
    [
        ("plan.md", None),
        ("plan.md#goal", None),
        ("../README.md#begin-1", None),
        ("../code", None),
        ("../code/run.py", None),
        ("..", None),
        ("https://example.org/docs/plan.md", None),
        ("mailto:shop@example.org", None),
        ("README.md", "docs/README.md does not exist"),
        ("plan.md#goals", "docs/plan.md has no such heading"),
        ("#begin", "docs/links.md has no such heading"),
        ("../README.md#begin-2", "README.md has no such heading"),
        ("../code/run.py#L7", "code/run.py has no such heading"),
        ("../../README.md", "../README.md does not exist"),
        ("/docs/plan.md", "link to files of the repository by a relative path"),
        ("file:///shop/docs/plan.md", "link to files of the repository by a relative path"),
        (
            "https://git.example.org/us/meshwright/blob/main/docs/plan.md",
            "link to files of the repository by a relative path",
        ),
    ],
)
def test_broken_links_are_found(link: str, fault: str | None) -> None:
    """Each kind of broken link is reported with its page and its fault, and each good link is accepted."""
    pages = {"README.md": _README, "docs/plan.md": "# Goal\n", "docs/links.md": f"[link]({link})\n"}
    files = frozenset({*pages, "code/run.py"})
    assert broken_links(pages, files) == ([f"docs/links.md: {link}: {fault}"] if fault else [])


def test_lost_mentions_are_found() -> None:
    """A page and a heading are checked; web pages, patterns and folders are not mentions."""
    text = (
        "see docs/plan.md, docs/plan.md#goal; (docs/old.md) `docs/plan.md#aim` ../docs/a/b.md."
        " https://example.org/docs/other.md docs/*.md docs/examples/x.yaml"
    )
    assert lost_mentions(text, {"docs/plan.md": {"goal"}}) == [
        "docs/old.md",
        "docs/plan.md#aim",
        "docs/a/b.md",
    ]
