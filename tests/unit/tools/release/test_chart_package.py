"""Tests of the chart package without Helm; tests/kubernetes compares it with Helm's own."""

import io
import tarfile
from pathlib import Path

from tests.tools.commit import source_files
from tools.release.archives import below, unpack
from tools.release.chart import FOLDER, package

ROOT = Path(__file__).parents[4]
TIME = 1_700_000_000


def test_package_is_the_chart_in_one_folder_and_begins_with_its_metadata() -> None:
    """Helm finds the chart's name by the folder, and registries read Chart.yaml first."""
    files = source_files(ROOT, FOLDER)
    archive = package(files, TIME)
    assert unpack(archive) == {f"meshwright/{name}": file for name, file in below(files, FOLDER).items()}
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        members = opened.getmembers()
    assert [member.name for member in members[:3]] == [
        "meshwright/Chart.yaml",
        "meshwright/values.yaml",
        "meshwright/values.schema.json",
    ]
    assert {member.mtime for member in members} == {TIME}
