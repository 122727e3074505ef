"""Tests of the chart package with Helm: it equals the package of Helm, and renders like the folder."""

import io
import tarfile
from pathlib import Path

import pytest

from tests.kubernetes.tools.helm import CHART, Helm
from tests.tools import libyaml
from tests.tools.commit import source_files
from tools.release.archives import unpack
from tools.release.artifacts import Names
from tools.release.chart import FOLDER, package
from tools.release.versions import PROJECT, version

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.usefixtures("helm_part")


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """The chart package of a release, under its name."""
    files = source_files(ROOT, FOLDER, PROJECT)
    path = tmp_path / Names(version(files)).chart
    path.write_bytes(package(files, 1_700_000_000))
    return path


def test_package_equals_the_one_of_helm(ours: Path, tmp_path: Path) -> None:
    """Name, files and content are equal; Helm writes Chart.yaml anew, and with the same fields."""
    (tmp_path / "helm").mkdir()
    Helm(tmp_path)("package", str(CHART), "--destination", str(tmp_path / "helm"))
    (theirs,) = (tmp_path / "helm").iterdir()
    assert theirs.name == ours.name
    made, wanted = unpack(ours.read_bytes()), unpack(theirs.read_bytes())
    metadata = "meshwright/Chart.yaml"
    assert libyaml.load(made.pop(metadata).text) == libyaml.load(wanted.pop(metadata).text)
    assert {name: file.content for name, file in made.items()} == {
        name: file.content for name, file in wanted.items()
    }
    firsts = [_names(path.read_bytes())[:3] for path in (ours, theirs)]
    assert firsts[0] == firsts[1]


def _names(archive: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        return opened.getnames()


def test_package_renders_the_manifests_of_the_chart(ours: Path, tmp_path: Path) -> None:
    """`helm template` of the file and of the folder agree, and `helm lint --strict` finds nothing."""
    helm = Helm(tmp_path)
    words = ("--namespace", "meshwright-system", "--set", "injection.enabled=true")
    assert helm("template", "meshwright", str(ours), *words) == helm(
        "template", "meshwright", str(CHART), *words
    )
    assert "0 chart(s) failed" in helm("lint", "--strict", str(ours))
