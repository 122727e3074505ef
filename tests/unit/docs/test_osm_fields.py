"""Tests of docs/policy/osm-fields.md: each field of OSM's kinds once, with tests that mention the field."""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = (ROOT / "docs" / "policy" / "osm-fields.md").read_text("utf-8")
REFERENCE: Final = (ROOT / "docs" / "policy" / "reference.md").read_text("utf-8")
KINDS: Final = re.findall(r"^## (\w+)$", PAGE, re.MULTILINE)
SECTION: Final = r"^## {}\n(.*?)(?=^## |\Z)"
STRUCTURE: Final = frozenset({"kind", "name", "namespace", "apiGroup", "number", "host", "port", "path"})
"""Fields whose names stand in every manifest: of them it says nothing that a test has the word."""


def section(page: str, kind: str) -> str:
    """Return a page's section about a kind."""
    match = re.search(SECTION.format(kind), page, re.MULTILINE | re.DOTALL)
    assert match is not None, kind
    return match[1]


def fields(kind: str) -> set[str]:
    """Return the leaf fields below `spec`, and the allowed fields without effect."""
    text = section(REFERENCE, kind)
    named = re.findall(r"^\| `spec\.([^`]*)` \|", text, re.MULTILINE)
    leaves = {
        each for each in named if not any(other.startswith((f"{each}.", f"{each}[].")) for other in named)
    }
    unused = re.search(r"^Allowed fields without effect: (.*)$", text, re.MULTILINE)
    return leaves | set(re.findall(r"`spec\.([^`]*)`", unused[1] if unused else ""))


def rows(kind: str) -> Iterator[tuple[tuple[str, ...], str, tuple[str, ...]]]:
    """Yield the fields of each row, their treatment, and its tests."""
    for line in re.findall(r"^\| (`.*) \|$", section(PAGE, kind), re.MULTILINE):
        of, here, tests = line.split(" | ")
        yield tuple(re.findall(r"`(.*?)`", of)), here, tuple(re.findall(r"`(.*?)`", tests))


def fits(field: str, pattern: str) -> bool:
    """Return whether a row's pattern matches a field; `.*` matches all fields below."""
    return field == pattern or (
        pattern.endswith(".*") and fnmatchcase(field.replace("[]", ""), pattern.replace("[]", ""))
    )


def test_page_has_all_osm_kinds() -> None:
    """These are the kinds that lint and the schemas know in OSM's groups."""
    heads = re.split(r"^## ", REFERENCE, flags=re.MULTILINE)
    theirs = {
        head.split("\n")[0] for head in heads if re.search(r"apiVersion of .*openservicemesh\.io", head)
    }
    assert set(KINDS) == theirs


@pytest.mark.parametrize("kind", KINDS)
def test_each_osm_field_is_in_one_row(kind: str) -> None:
    """No row is about a field that does not exist."""
    patterns = [pattern for of, _, _ in rows(kind) for pattern in of]
    assert dict.fromkeys(fields(kind), 1) == {
        item: sum(fits(item, pattern) for pattern in patterns) for item in fields(kind)
    }
    assert [item for item in patterns if not any(fits(field, item) for field in fields(kind))] == []


@pytest.mark.parametrize("kind", KINDS)
def test_each_row_names_tests_that_mention_its_fields(kind: str) -> None:
    """Each file exists, and the files contain each field's own name, or the parent's for a pattern."""
    for of, here, tests in rows(kind):
        assert re.match("works|without effect: |refused: |always so", here), of
        assert tests, of
        text = "".join((ROOT / test).read_text("utf-8") for test in tests)
        if here.startswith("without effect: ") and "NOT_USED" in text:
            continue  # where each of them is tried
        for item in of:
            word = item.removesuffix(".*").removesuffix("[]").rpartition(".")[2]
            assert word in STRUCTURE or word in text, (item, tests)
