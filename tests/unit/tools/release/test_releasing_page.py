"""Tests of docs/extend/releasing.md and the changelog: names of files, commands, form of headings."""

import re
import subprocess
from pathlib import Path

from tests.tools.commit import source_files
from tools.release.artifacts import IMAGES, SIGNATURE, SUMS, Names
from tools.release.signatures import NAMESPACE, VARIABLE
from tools.release.versions import version

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs/extend/releasing.md").read_text("utf-8")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text("utf-8")
NAMES = Names(version(source_files(ROOT, "pyproject.toml")))
HEADINGS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
"""Headings of Keep a Changelog, in the order in which a version has them here."""


def test_table_of_files_has_every_file_of_a_release() -> None:
    """The first column has the names in the order in which the command prints them, then the signatures."""
    rows = re.findall(r"^\| `([^`]+)` \| .* \| .* \|$", PAGE.split("## Use the files")[0], re.MULTILINE)
    assert set(rows) == {*NAMES.summed, SUMS, f"*{SIGNATURE}"}


def test_commands_of_the_page_use_the_names_and_the_namespace() -> None:
    """Each image has its context, and the signature is verified for the namespace of the program."""
    builds = re.findall(r"^docker build -t meshwright/(\S+):\S+ - < (\S+)$", PAGE, re.MULTILINE)
    assert builds == [(image, NAMES.context(image)) for image in IMAGES]
    assert f"-n {NAMESPACE} \\\n     -s {SUMS}{SIGNATURE} < {SUMS}" in PAGE
    assert f"make release {VARIABLE}=" in PAGE


def test_changelog_begins_with_unreleased_and_sorts_versions_by_date() -> None:
    """Every published version has a date, its headings are those of Keep a Changelog, and none is empty."""
    first, *versions = re.findall(r"^## (.+)$", CHANGELOG, re.MULTILINE)
    assert first == "[Unreleased]"
    dates = [
        found[1] for each in versions if (found := re.fullmatch(r"\[[\d.]+\] - (\d{4}-\d\d-\d\d)", each))
    ]
    assert dates == sorted(dates, reverse=True) != []
    for part in re.split(r"^## ", CHANGELOG, flags=re.MULTILINE)[1:]:
        headings = re.findall(r"^### (.+)$", part, re.MULTILINE)
        assert headings == [heading for heading in HEADINGS if heading in headings]
        assert [text for text in part.split("\n### ")[1:] if "\n- " not in text] == []


def test_links_of_the_changelog_resolve() -> None:
    """A page that moves takes its links in the changelog along."""
    links = {link for link in re.findall(r"\]\(([^)\s]+)\)", CHANGELOG) if "://" not in link}
    assert len(links) > 20
    assert [link for link in sorted(links) if not (ROOT / link.partition("#")[0]).exists()] == []


def test_make_release_runs_the_command() -> None:
    """`make help` lists the target, and a dry run shows the command."""
    done = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", "-o", "setup", "release"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == ".venv/bin/python -m tools.release"
