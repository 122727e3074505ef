"""Tests of the choice among the supported versions of Kubernetes, whose programs are kept side by side."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.real_parts import building
from tools.real_parts.building import PartError, build, chosen_kubernetes, is_built, program
from tools.real_parts.parts import API_SERVER, ETCD, KUBERNETES, OTHERS, PARTS, Kubernetes

ROOT = Path(__file__).parents[4]
OLDER = Kubernetes("1.35.4", "kubernetes-1.35")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the parts in a temporary folder."""
    monkeypatch.setenv("REAL_PARTS", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "version"),
    [
        (None, KUBERNETES),
        ("", KUBERNETES),
        (KUBERNETES.minor, KUBERNETES),
        *((each.minor, each) for each in OTHERS),
        *((each.version, each) for each in OTHERS),
    ],
)
def test_variable_chooses_a_minor_or_a_version(
    name: str | None, version: Kubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the variable, or with an empty one, the default version is chosen."""
    monkeypatch.delenv("REAL_KUBERNETES", raising=False)
    if name is not None:
        monkeypatch.setenv("REAL_KUBERNETES", name)
    assert chosen_kubernetes() == version


@pytest.mark.parametrize("name", ["1.2", "1.36.0", "v1.36", "newest"])
def test_unknown_version_is_refused_with_the_supported_ones(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default version is never tested in the place of a version that is not supported."""
    monkeypatch.setenv("REAL_KUBERNETES", name)
    known = ", ".join(sorted(each.version for each in (KUBERNETES, *OTHERS)))
    said = f"REAL_KUBERNETES={name} is not among the supported versions: {known}"
    with pytest.raises(PartError, match=f"^{re.escape(said)}$"):
        chosen_kubernetes()


def test_default_programs_stay_where_they_were_built(cache: Path) -> None:
    """Existing caches remain valid: no part has another path or stamp than before."""
    assert {program(part).relative_to(cache) for part in map(KUBERNETES.own, PARTS.values())} == {
        Path("bin") / name for name in PARTS
    }
    assert [KUBERNETES.own(part) for part in PARTS.values()] == [*PARTS.values()]


def test_only_programs_of_kubernetes_have_another_version(cache: Path) -> None:
    """etcd, CoreDNS and others are the same programs for each version of Kubernetes."""
    own = {name: program(OLDER.own(part)).relative_to(cache) for name, part in PARTS.items()}
    kubernetes = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy")
    assert own == {
        name: Path("kubernetes-1.35", "bin", name) if name in kubernetes else Path("bin", name)
        for name in PARTS
    }


def test_other_version_is_built_from_its_own_modules() -> None:
    """The program also reports its own version, as `gitVersion` and in the two parts of the minor."""
    part = OLDER.own(API_SERVER)
    assert part.module_file("\tk8s.io/api => ./staging/src/k8s.io/api\n").splitlines()[4:] == [
        "require (",
        "\tk8s.io/kubernetes v1.35.4",
        ")",
        "",
        "replace (",
        "\tk8s.io/api => k8s.io/api v0.35.4",
        ")",
    ]
    version = "k8s.io/component-base/version"
    assert part.variables == {
        f"{version}.gitVersion": "v1.35.4",
        f"{version}.gitMajor": "1",
        f"{version}.gitMinor": "35",
        f"{version}.gitTreeState": "clean",
    }


def test_build_of_another_version_leaves_the_default_one(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are then built, and neither build has to be repeated."""

    def go(folder: Path, *words: str, toolchain: str) -> str:
        assert not toolchain  # Kubernetes is built by the installed Go
        if "-o" in words:
            Path(words[words.index("-o") + 1]).write_text((folder / "go.mod").read_text())
        return f'{{"GoMod": "{cache / "own.mod"}"}}'

    (cache / "own.mod").write_text("")
    monkeypatch.setattr(building, "has_go", lambda: True)
    monkeypatch.setattr(building, "_go", go)
    default, older = build(API_SERVER), build(OLDER.own(API_SERVER))
    assert f"k8s.io/kubernetes v{KUBERNETES.version}" in default.read_text()
    assert "k8s.io/kubernetes v1.35.4" in older.read_text()
    assert (is_built(API_SERVER), is_built(OLDER.own(API_SERVER)), is_built(ETCD)) == (True, True, False)


def test_command_line_refuses_an_unknown_version(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command ends with one line and status 1, before it builds anything."""
    monkeypatch.setenv("REAL_KUBERNETES", "1.20")
    words = [sys.executable, "-m", "tools.real_parts", "build", "kube-apiserver"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("REAL_KUBERNETES=1.20 is not among the supported versions")
    assert list(cache.iterdir()) == []


def test_makefile_names_each_other_minor() -> None:
    """`make test-kubernetes-versions` leaves out no supported version."""
    (line,) = (
        line
        for line in (ROOT / "Makefile").read_text("utf-8").splitlines()
        if line.startswith("KUBERNETES_MINORS := ")
    )
    assert line.split()[2:] == [each.minor for each in OTHERS]
