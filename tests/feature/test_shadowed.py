"""The command beside packages that have a name of ours: installed, real, and first on the import path."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from meshwright import guard
from tests.tools.wheels import install, wheel

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install this project's packages into a directory of their own, by a wheel of what is here."""
    folder = tmp_path_factory.mktemp("ours")
    files = {
        str(path.relative_to(ROOT)): path.read_text("utf-8")
        for package in (*guard.PACKAGES, "meshwright")
        for path in sorted((ROOT / package).rglob("*.py"))
    }
    script = "[console_scripts]\nmeshwright = meshwright.guard:main\n"
    return install(folder / "site", wheel(folder, "meshwright", files, script))


def _run(ours: Path, *before: Path, cwd: Path | None = None, module: bool = False) -> tuple[int, str, str]:
    """Ask for the version, with these directories before ours on the import path."""
    path = os.pathsep.join(map(str, (*before, ours)))
    command = ("-m", "meshwright") if module else (str(ours / "bin" / "meshwright"),)
    done = subprocess.run(
        [sys.executable, *command, "--version"],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": path},
        cwd=cwd or ours.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("module", [False, True])
def test_alone_it_runs(ours: Path, module: bool) -> None:
    """As a script and as a module."""
    code, out, err = _run(ours, module=module)
    assert (code, err) == (0, "")
    assert out.strip()


@pytest.mark.parametrize("name", guard.PACKAGES)
def test_whoever_is_before_one_of_ours_is_named(ours: Path, name: str, tmp_path: Path) -> None:
    """With the path, the distribution and the reason, whichever it is: also what runs first."""
    files = {f"{name}/__init__.py": "raise SystemExit('not ours')\n"}
    theirs = install(tmp_path / "theirs", wheel(tmp_path, "somebodys", files))
    code, out, err = _run(ours, theirs)
    assert (code, out) == (2, "")
    assert err == (
        f"meshwright: its package {name!r} is shadowed by {theirs / name} "
        "(of the distribution somebodys 1.0), "
        f"which is entry 1 of sys.path (PYTHONPATH, or a .pth file), before {ours / name}: "
        "take that away, or install meshwright as an application of its own\n"
    )


def test_a_file_of_nobodys_in_the_working_directory_is_named(ours: Path, tmp_path: Path) -> None:
    """`python -m` looks there first."""
    (tmp_path / "catalog.py").touch()
    code, _, err = _run(ours, cwd=tmp_path, module=True)
    assert code == 2
    assert f"'catalog' is shadowed by {tmp_path / 'catalog.py'}, which stands in the working directory" in err


def test_what_is_imported_already_is_named(ours: Path, tmp_path: Path) -> None:
    """By a sitecustomize, for example, from a place that is on no path."""
    (tmp_path / "xds.py").touch()
    (tmp_path / "before").mkdir()
    (tmp_path / "before" / "sitecustomize.py").write_text(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import xds; del sys.path[0]\n"
    )
    code, _, err = _run(ours, tmp_path / "before")
    assert code == 2
    assert f"'xds' is shadowed by {tmp_path / 'xds.py'}, which is imported already" in err


def test_a_folder_without_init_shadows_nothing(ours: Path, tmp_path: Path) -> None:
    """A directory of keys that is called certs is no package."""
    (tmp_path / "certs").mkdir()
    assert _run(ours, cwd=tmp_path, module=True)[0] == 0


def test_a_package_of_theirs_behind_ours_shadows_nothing(ours: Path, tmp_path: Path) -> None:
    """It is theirs that is not found then."""
    (tmp_path / "certs.py").touch()
    assert _run(ours, ours, tmp_path)[0] == 0
