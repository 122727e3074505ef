"""Tests of the command beside packages with the same names as ours, earlier or later on the import path."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from meshwright import guard
from tests.tools.deadline import HANG_SECONDS
from tests.tools.wheels import install, wheel

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with this project's packages, installed from a wheel."""
    folder = tmp_path_factory.mktemp("ours")
    files = {
        str(path.relative_to(ROOT)): path.read_text("utf-8")
        for package in (*guard.PACKAGES, "meshwright")
        for path in sorted((ROOT / package).rglob("*.py"))
    }
    script = "[console_scripts]\nmeshwright = meshwright.guard:main\n"
    return install(folder / "site", wheel(folder, "meshwright", files, script))


def _run(ours: Path, *before: Path, cwd: Path | None = None, module: bool = False) -> tuple[int, str, str]:
    """Run `--version` with these directories before ours on the import path."""
    path = os.pathsep.join(map(str, (*before, ours)))
    command = ("-m", "meshwright") if module else (str(ours / "bin" / "meshwright"),)
    done = subprocess.run(
        [sys.executable, *command, "--version"],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": path},
        cwd=cwd or ours.parent,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("module", [False, True])
def test_command_runs_without_other_packages(ours: Path, module: bool) -> None:
    """The command runs as a script and as a module."""
    code, out, err = _run(ours, module=module)
    assert (code, err) == (0, "")
    assert out.strip()


@pytest.mark.parametrize("name", guard.PACKAGES)
def test_package_that_shadows_one_of_ours_is_named(ours: Path, name: str, tmp_path: Path) -> None:
    """The message has path, distribution and position, before any code of that package runs."""
    files = {f"{name}/__init__.py": "raise SystemExit('not ours')\n"}
    theirs = install(tmp_path / "theirs", wheel(tmp_path, "somebodys", files))
    code, out, err = _run(ours, theirs)
    assert (code, out) == (2, "")
    assert err == (
        f"meshwright: its package {name!r} is shadowed by {theirs / name} (of the distribution somebodys "
        f"1.0), which is entry 1 of sys.path (PYTHONPATH, or a .pth file), before {ours / name}: take that "
        "away, or install meshwright as an application of its own\n"
    )


def test_file_in_the_working_directory_that_shadows_a_package_is_named(ours: Path, tmp_path: Path) -> None:
    """`python -m` puts the working directory first on the import path."""
    (tmp_path / "catalog.py").touch()
    code, _, err = _run(ours, cwd=tmp_path, module=True)
    assert code == 2
    assert f"'catalog' is shadowed by {tmp_path / 'catalog.py'}, which stands in the working directory" in err


def test_already_imported_module_of_our_name_is_named(ours: Path, tmp_path: Path) -> None:
    """A sitecustomize, for example, can import it from a place outside the import path."""
    (tmp_path / "xds.py").touch()
    (tmp_path / "before").mkdir()
    (tmp_path / "before" / "sitecustomize.py").write_text(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import xds; del sys.path[0]\n"
    )
    code, _, err = _run(ours, tmp_path / "before")
    assert code == 2
    assert f"'xds' is shadowed by {tmp_path / 'xds.py'}, which is imported already" in err


def test_folder_without_init_shadows_nothing(ours: Path, tmp_path: Path) -> None:
    """A directory of keys with the name certs is no package."""
    (tmp_path / "certs").mkdir()
    assert _run(ours, cwd=tmp_path, module=True)[0] == 0


def test_package_behind_ours_on_the_path_shadows_nothing(ours: Path, tmp_path: Path) -> None:
    """In that case our package is found first, and the other one is hidden."""
    (tmp_path / "certs.py").touch()
    assert _run(ours, ours, tmp_path)[0] == 0
