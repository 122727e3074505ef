"""Tests of the repository's layout: modules per folder, and packages of the wheel."""

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Final

ROOT = Path(__file__).parents[3]
PACKAGES: Final = ("benchmarks", "catalog", "certs", "demo", "meshwright", "tools", "xds")
"""Folders of which every module counts, but for `__init__` and `__main__`."""
TESTS: Final = "tests"
"""The folder of which modules with tests count."""
MOST: Final = 15
"""Modules that a folder may have, inclusive."""

ONE_OF_A_KIND: Final = {
    "meshwright/cli/commands": "one file a command",
    "meshwright/sidecars/envoy/features": "one file a feature of HTTP",
}
"""Folders that may have any number of modules, because each is of the same kind as its neighbours."""

PRODUCT: Final = ("catalog", "certs", "meshwright", "xds")
"""Packages whose folders each have a docstring about the whole folder."""
_ROW: Final = re.compile(r"^    (\w+)/?  +\S", re.MULTILINE)
"""A row of a docstring's table of modules, such as `    values     the values of an installation`."""

NO_PACKAGES: Final = {"deploy", "docs", "growth", "tools"}
"""Folders of `tests/unit` for what is no package of the product: files, pages, tools of development."""


def _modules() -> Counter[str]:
    """Return the number of modules per folder, such as `catalog/lint` to 12."""
    ours = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    paths = [path for path in ours if path.stem not in ("__init__", "__main__")]
    paths += (ROOT / TESTS).rglob("test_*.py")
    return Counter(path.parent.relative_to(ROOT).as_posix() for path in paths)


def test_no_folder_has_more_modules_than_allowed() -> None:
    """More than 15 modules in one folder are not clear at a glance, so they need subfolders."""
    crowded = [
        f"{folder} has {count} modules, and at most {MOST} are allowed: sort them into folders with an"
        " __init__.py that says what each holds, or name the folder in ONE_OF_A_KIND with the reason"
        for folder, count in sorted(_modules().items())
        if count > MOST and folder not in ONE_OF_A_KIND
    ]
    assert not crowded, "\n".join(crowded)


def test_every_layout_exception_is_needed() -> None:
    """A folder that has shrunk is subject to the limit again."""
    modules = _modules()
    needless = [
        f"{folder} has {modules[folder]} modules, no more than {MOST}: remove it from the exceptions"
        for folder in ONE_OF_A_KIND
        if modules[folder] <= MOST
    ]
    assert not needless, "\n".join(needless)


def test_no_fixture_lives_as_long_as_a_package() -> None:
    """Folders of tests are no packages, so pytest would keep such a fixture until the process ends."""
    scope = 'scope="' + 'package"'
    kept = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / TESTS).rglob("*.py")
        if scope in path.read_text()
    ]
    assert not kept, f'give these fixtures the scope "module" or "session": {kept}'


def test_wheel_has_five_top_level_packages() -> None:
    """Each further name could collide with another project's in site-packages."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    included = {path.partition("/")[0] for path in wheel.get("force-include", {}).values()}
    assert {*wheel["packages"], *included} == {"catalog", "certs", "meshwright", "protos", "xds"}


def _docstrings() -> dict[str, str]:
    """Return the docstring of each package of the product, by its folder."""
    modules = (path for package in PRODUCT for path in (ROOT / package).rglob("__init__.py"))
    return {
        path.parent.relative_to(ROOT).as_posix(): ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        for path in modules
    }


def test_every_package_says_its_limit() -> None:
    """A package's docstring has a sentence with "never", so that readers know what belongs elsewhere."""
    docstrings = _docstrings()
    assert "meshwright/mesh" in docstrings
    unlimited = [folder for folder, text in docstrings.items() if not re.search(r"\bnever\b", text)]
    assert sorted(unlimited) == []


def test_modules_in_a_packages_docstring_exist() -> None:
    """Each row of a table in a package's docstring begins with a module or a folder of that package."""
    rows = [(folder, name) for folder, text in _docstrings().items() for name in _ROW.findall(text)]
    assert ("meshwright/chart", "rendering") in rows
    paths = [ROOT / folder / name for folder, name in rows]
    missing = [path for path in paths if not path.is_dir() and not path.with_suffix(".py").is_file()]
    assert missing == []


def test_each_folder_of_unit_tests_mirrors_a_package() -> None:
    """`tests/unit/kubernetes/cni` holds the tests of `meshwright/kubernetes/cni`."""
    unit = ROOT / TESTS / "unit"
    folders = {path.parent.relative_to(unit) for path in unit.rglob("test_*.py")}
    assert Path("kubernetes/cni") in folders
    mirrors = {folder for folder in folders if folder.parts[0] not in NO_PACKAGES}
    packages = {
        folder
        for folder in mirrors
        if any((ROOT / at / folder / "__init__.py").is_file() for at in (".", "meshwright"))
    }
    assert {folder.as_posix() for folder in mirrors - packages} == set()
