"""Tests of the wheel, the images' files, the locked requirements, and the generated code."""

import importlib.metadata
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from meshwright import guard
from tools.real_parts.images.environments import ours

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
pytestmark = pytest.mark.timeout(1000)  # the build fetches what it needs
PACKAGES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, built by pip as in the Dockerfile. With uv, `make setup` runs the same build hook."""
    out = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "wheel")
    subprocess.run([*pip, "--quiet", "--no-deps", "--wheel-dir", out, ROOT], check=True, timeout=900)
    (built,) = out.glob("*.whl")
    return zipfile.ZipFile(built)


def test_wheel_has_exactly_our_packages(wheel: zipfile.ZipFile) -> None:
    """The wheel has no tests and no demo, each package is typed, and Envoy's API is under `protos`."""
    names = wheel.namelist()
    top = {name.split("/")[0] for name in names if ".dist-info/" not in name}

    assert top == set(PACKAGES) == {*guard.PACKAGES, "meshwright"}
    assert {name.split("/")[0] for name in names if name.endswith("/py.typed")} == set(PACKAGES)
    assert "protos/envoy/service/discovery/v3/ads_pb2.py" in names
    assert "protos/meshwright/enrolment/v1/enrolment_pb2.py" in names


def test_images_have_the_same_files_as_the_wheel(wheel: zipfile.ZipFile) -> None:
    """Images for tests are put together without a wheel, so each file is compared byte by byte."""
    result = {name.removeprefix("site/"): path for name, path in ours("site").items()}
    shipped = {name: wheel.read(name) for name in wheel.namelist() if ".dist-info/" not in name}
    assert result.keys() == shipped.keys()
    other = [
        name
        for name, path in result.items()
        if not isinstance(path, Path) or path.read_bytes() != shipped[name]
    ]
    assert other == []


def test_packages_are_the_same_in_wheel_contracts_and_makefile() -> None:
    """The import contracts also cover benchmarks, demo and tools, which are not in the wheel."""
    makefile = re.search(r"^PACKAGES := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert makefile is not None

    assert sorted(PROJECT["tool"]["importlinter"]["root_packages"]) == sorted(
        [*PACKAGES, "benchmarks", "demo", "tools"]
    )
    assert sorted([*makefile[1].split(), "protos"]) == sorted(PACKAGES)


def test_xds_protos_is_neither_locked_nor_installed_nor_imported() -> None:
    """The package owns the names `xds` and `envoy`, so only the build uses it."""
    locked = (ROOT / "requirements" / "run.txt").read_text()
    assert "xds-protos" not in locked
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version("xds-protos")

    programs = "meshwright.cli.main, meshwright.cli.process.server_program, meshwright.controller.app"
    everything = f"import {programs}, meshwright.sidecars.envoy.pieces, sys\n"
    loaded = "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    result = subprocess.run(
        [sys.executable, "-c", everything + loaded], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert not {"envoy", "udpa", "validate", "cel"} & set(result.stdout.split())
    assert "protos" in result.stdout.split()


def test_generated_code_is_imported_only_under_protos() -> None:
    """Generated modules import from `protos` and from protobuf only."""
    wrong = re.compile(
        r"^(?:from|import) (?:envoy|xds|udpa|validate|cel|google\.(?:api|rpc|type))\b", re.MULTILINE
    )
    generated = list((ROOT / "protos").rglob("*_pb2.py*"))

    assert len(generated) > 100
    assert [path.name for path in generated if wrong.search(path.read_text())] == []


def test_run_time_requirements_are_a_subset_of_the_tested_ones() -> None:
    """Shipped versions are those that the tests run with."""
    pins = [
        set(re.findall(r"^[a-z0-9-]+==[^ \\;]+", (ROOT / "requirements" / name).read_text(), re.MULTILINE))
        for name in ("run.txt", "dev.txt")
    ]

    assert pins[0]
    assert pins[0] <= pins[1]
