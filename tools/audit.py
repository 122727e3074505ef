"""Command `python -m tools.audit`: look up known vulnerabilities of all pinned packages with pip-audit.

The exit status distinguishes three results, because a failed look-up must not count as a clean one:

    0  every pinned package was looked up, and has no known vulnerability
    1  a package has a known vulnerability
    3  no known vulnerability, but the data of some package could not be reached

With `--unreachable-is-fine` the status is 0 in place of 3, for machines without access to the internet. The
output still names the packages that were not looked up.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
REQUIREMENTS: Final = ROOT / "requirements"
SECONDS: Final = 600
_SAID: Final = 400


class End(IntEnum):
    """Result of an audit; the values are the exit statuses of the program."""

    CLEAN = 0
    VULNERABLE = 1
    UNREACHABLE = 3


@dataclass(frozen=True, slots=True)
class Vulnerability:
    """A known vulnerability of a package, and the versions with a fix."""

    package: str
    identifier: str
    fixed_in: tuple[str, ...]

    def __str__(self) -> str:
        fixed = f"fixed in {', '.join(self.fixed_in)}" if self.fixed_in else "not fixed in any version"
        return f"{self.package}: {self.identifier}, {fixed}"


@dataclass(frozen=True, slots=True)
class Report:
    """Result of the audit of one lock file; `unknown` has a reason for each failed look-up."""

    file: str
    packages: int = 0
    vulnerable: tuple[Vulnerability, ...] = ()
    unknown: tuple[str, ...] = ()


def read_report(file: str, text: str, error_output: str) -> Report:
    """Parse the JSON report of pip-audit; `error_output` has the reason for a missing report."""
    try:
        result = json.loads(text)["dependencies"]
        return _report(file, result)
    except (ValueError, KeyError, TypeError, AttributeError):
        last = " ".join(error_output.split())[-_SAID:] or "pip-audit wrote neither a report nor an error"
        return Report(file, unknown=(last,))


def _report(file: str, dependencies: Iterable[Mapping[str, Any]]) -> Report:
    count, vulnerable, unknown = 0, list[Vulnerability](), list[str]()
    for dependency in dependencies:
        if reason := dependency.get("skip_reason"):
            unknown.append(f"{dependency['name']}: {reason}")
            continue
        count += 1
        package = f"{dependency['name']} {dependency['version']}"
        vulnerable += (
            Vulnerability(package, str(known["id"]), tuple(map(str, known.get("fix_versions", ()))))
            for known in dependency["vulns"]
        )
    if not count and not unknown:
        unknown.append("the report has no packages")
    return Report(file, count, tuple(sorted(vulnerable, key=str)), tuple(unknown))


def end(reports: Iterable[Report]) -> End:
    """Return the result of all audits; vulnerabilities count more than failed look-ups."""
    every = tuple(reports)
    if any(report.vulnerable for report in every):
        return End.VULNERABLE
    return End.UNREACHABLE if any(report.unknown for report in every) or not every else End.CLEAN


def lines(reports: Iterable[Report]) -> Iterable[str]:
    """Yield the lines that the audit prints: each lock file with findings, then the verdict."""
    every = tuple(reports)
    for each in every:
        yield f"{each.file}: {each.packages} packages looked up, {len(each.vulnerable)} vulnerabilities known"
        yield from (f"  VULNERABLE {vulnerability}" for vulnerability in each.vulnerable)
        yield from (f"  NOT LOOKED UP {why}" for why in each.unknown)
    match end(every):
        case End.CLEAN:
            yield "audit: no known vulnerabilities in the pinned packages"
        case End.VULNERABLE:
            yield "audit: VULNERABLE, see above; `make lock` resolves newer versions"
        case End.UNREACHABLE:
            yield "audit: NOT DONE, because the vulnerability data could not be reached"


def _audited(file: Path, program: Path) -> Report:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "report.json"
        command = (
            *(
                sys.executable,
                "-m",
                "pip_audit",
                "--requirement",
                str(file),
                "--require-hashes",
                "--disable-pip",
            ),
            *("--format", "json", "--output", str(out), "--progress-spinner", "off"),
        )
        environment = {**os.environ, "PYTHONPATH": str(program)}
        try:
            ran = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
            )
            stderr = ran.stderr
        except subprocess.TimeoutExpired:
            stderr = f"pip-audit did not end within {SECONDS} s"
        text = out.read_text("utf-8") if out.exists() else ""
    return read_report(str(file.relative_to(ROOT)), text, stderr)


def main() -> None:
    """Audit all lock files, and exit with the status of the result."""
    parser = argparse.ArgumentParser(prog="python -m tools.audit")
    parser.add_argument("--unreachable-is-fine", action="store_true")
    parser.add_argument("--program", type=Path, default=ROOT / ".audit", help="where pip-audit is installed")
    options = parser.parse_args()
    reports = [_audited(path, options.program) for path in sorted(REQUIREMENTS.rglob("*.txt"))]
    sys.stdout.write("".join(f"{line}\n" for line in lines(reports)))
    status = end(reports)
    fine = options.unreachable_is_fine and status is End.UNREACHABLE
    sys.exit(End.CLEAN if fine else status)


if __name__ == "__main__":
    main()
