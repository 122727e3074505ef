"""Tests of packages, locked requirements and generated code; test_release.py has the tests of the wheel."""

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


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
