"""Tests of docs/understand/xds-rules.md: a row for each rule, tests for each row, a row for each test."""

import ast
import re
from collections import Counter
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
FOLDERS = ("unit/xds", "feature/xds", "conformance", "soak")
COUNTS = {"S": 15, "W": 17, "D": 18, "O": 11, "N": 12}
NUMBERED = re.compile(r"test_((?:[swdon]\d+_)+)")


def rows() -> dict[str, tuple[str, list[str]]]:
    """Return the text of each rule's row, and the tests that it names."""
    page = (REPOSITORY / "docs" / "understand" / "xds-rules.md").read_text()
    result = re.findall(r"^\| ([A-Z]\d+) \| (.*) \|([^|]*)\|$", page, re.MULTILINE)
    assert max(Counter(rule for rule, _, _ in result).values()) == 1
    return {rule: (what, re.findall(r"`(test_\w+)`", tests)) for rule, what, tests in result}


def existing() -> set[str]:
    """Return the names of all existing tests."""
    return {
        node.name
        for folder in FOLDERS
        for file in (REPOSITORY / "tests" / folder).rglob("test_*.py")
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def test_every_rule_of_the_catalogue_has_a_row() -> None:
    """The table has five sections, each numbered without a gap."""
    assert set(rows()) == {f"{kind}{n}" for kind, count in COUNTS.items() for n in range(1, count + 1)}


def test_every_named_test_exists() -> None:
    """A renamed or deleted test must not remain in the table."""
    assert {name for _, names in rows().values() for name in names} - existing() == set()


def test_every_rule_has_a_test_with_its_number_or_does_not_apply() -> None:
    """A row without a test begins with "Does not apply"."""
    for rule, (what, names) in rows().items():
        if what.startswith("Does not apply: "):
            assert names == [], rule
        else:
            assert any(rule in _numbers(name) for name in names), rule


def test_every_numbered_test_is_in_the_rows_of_its_numbers() -> None:
    """A new test with a rule's number must be added to the rule's row."""
    table = rows()
    for name in existing():
        for rule in _numbers(name):
            assert name in table[rule][1], f"{name} is not in the row of {rule}"


def _numbers(name: str) -> list[str]:
    match = NUMBERED.match(name)
    return match.group(1).strip("_").upper().split("_") if match else []
