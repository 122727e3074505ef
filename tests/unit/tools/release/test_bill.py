"""Tests of the bill of materials: packages, licences, requirements, and CycloneDX's schema."""

import json
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation import make_schemabased_validator
from packaging.requirements import Requirement

from tests.tools.commit import source_files
from tools.licences import pins
from tools.release.archives import File
from tools.release.bill import LICENCES, LOCK, BillError, Pin, Wheel, bill, locked, required

ROOT = Path(__file__).parents[4]
WHEEL = Wheel("1.2.3", "ab" * 32, 1_700_000_000)
PROJECT = """[project]
name = "meshwright"
version = "1.2.3"
description = "A mesh."
license = "Apache-2.0"
dependencies = ["Rich>=15", "colorama>=0.4"]
"""
SUMS = ("01" * 32, "02" * 32, "03" * 32)
RUN = (
    f"colorama==0.4.6 ; sys_platform == 'win32' \\\n    --hash=sha256:{SUMS[0]} \\\n"
    f"    --hash=sha256:{SUMS[1]}\n"
    f"pygments==2.21.0 ; implementation_name != 'PyPy' \\\n    --hash=sha256:{SUMS[2]}\n"
    f"rich==15.0.0 \\\n    --hash=sha256:{SUMS[2]}\n"
)
LISTED = """| colorama | 0.4.6 | BSD-3-Clause |
| pygments | 2.21.0 | BSD-2-Clause |
| rich | 15.0.0 | MIT OR ISC |
"""
REQUIRES = {
    "rich": ["pygments>=2.13", "ipywidgets>=7; extra == 'jupyter'", "colorama; sys_platform == 'win32'"]
}


def _made(**changed: str) -> str:
    texts = {"pyproject.toml": PROJECT, LOCK: RUN, LICENCES: LISTED, **changed}
    return bill({path: File(text.encode()) for path, text in texts.items()}, WHEEL, REQUIRES)


def _problems(text: str) -> list[str]:
    validator = make_schemabased_validator(OutputFormat.JSON, SchemaVersion.V1_6)
    return [str(error) for error in validator.validate_str(text, all_errors=True) or ()]


def test_lock_file_is_read_with_markers_and_hashes() -> None:
    """A marker ends before the backslash of the line."""
    assert locked(RUN) == (
        Pin("colorama", "0.4.6", "sys_platform == 'win32'", SUMS[:2]),
        Pin("pygments", "2.21.0", "implementation_name != 'PyPy'", SUMS[2:]),
        Pin("rich", "15.0.0", "", SUMS[2:]),
    )


def test_requirements_of_an_extra_count_only_if_it_is_required() -> None:
    """Names are written as package indexes do, and markers of platforms count as met."""
    texts = ("Typing_Extensions>=4", "b; extra == 'more'", "c[speed]>=1; sys_platform == 'win32'")
    requirements = [Requirement(text) for text in texts]
    assert required(requirements) == ("c", "typing-extensions")
    assert required(requirements, frozenset({"more", "less"})) == ("b", "c", "typing-extensions")


def test_extra_of_another_package_is_followed() -> None:
    """A requirement such as `rich[color]` brings what rich requires for its extra `color`."""
    project = PROJECT.replace("Rich>=15", "pygments", 1).replace('"colorama>=0.4"', '"rich[color]"')
    requires = {"rich": ["colorama; extra == 'color'"]}
    files = {"pyproject.toml": project, LOCK: RUN, LICENCES: LISTED}
    made = json.loads(bill({path: File(text.encode()) for path, text in files.items()}, WHEEL, requires))
    assert [each["dependsOn"] for each in made["dependencies"] if "dependsOn" in each] == [
        ["pkg:pypi/pygments@2.21.0", "pkg:pypi/rich@15.0.0"],
        ["pkg:pypi/colorama@0.4.6"],
    ]


def test_bill_describes_the_wheel_and_its_packages() -> None:
    """Every package has version, licence, sums and scope; the described component has the wheel's sum."""
    made = json.loads(_made())
    assert made["metadata"] == {
        "component": {
            "bom-ref": "pkg:pypi/meshwright@1.2.3",
            "description": "A mesh.",
            "hashes": [{"alg": "SHA-256", "content": WHEEL.digest}],
            "licenses": [{"expression": "Apache-2.0"}],
            "name": "meshwright",
            "purl": "pkg:pypi/meshwright@1.2.3",
            "type": "application",
            "version": "1.2.3",
        },
        "timestamp": "2023-11-14T22:13:20+00:00",
    }
    assert [_short(each) for each in made["components"]] == [
        ("colorama", "0.4.6", "BSD-3-Clause", "optional", list(SUMS[:2])),
        ("pygments", "2.21.0", "BSD-2-Clause", "required", list(SUMS[2:])),
        ("rich", "15.0.0", "MIT OR ISC", "required", list(SUMS[2:])),
    ]
    assert {each["ref"]: each.get("dependsOn", []) for each in made["dependencies"]} == {
        "pkg:pypi/colorama@0.4.6": [],
        "pkg:pypi/meshwright@1.2.3": ["pkg:pypi/colorama@0.4.6", "pkg:pypi/rich@15.0.0"],
        "pkg:pypi/pygments@2.21.0": [],
        "pkg:pypi/rich@15.0.0": ["pkg:pypi/colorama@0.4.6", "pkg:pypi/pygments@2.21.0"],
    }


def _short(component: dict[str, Any]) -> tuple[object, ...]:
    (reference,) = component["externalReferences"]
    (licence,) = component["licenses"]
    sums = [each["content"] for each in reference["hashes"]]
    return component["name"], component["version"], licence["expression"], component["scope"], sums


def test_bill_is_the_same_in_every_run() -> None:
    """The serial number follows the wheel and is neither random nor of the clock."""
    assert _made() == _made()
    other = Wheel("1.2.3", "cd" * 32, WHEEL.time)
    files = {
        path: File(text.encode())
        for path, text in (("pyproject.toml", PROJECT), (LOCK, RUN), (LICENCES, LISTED))
    }
    serials = {json.loads(text)["serialNumber"] for text in (_made(), bill(files, other, REQUIRES))}
    assert len(serials) == 2


def test_package_without_a_listed_licence_is_refused() -> None:
    """The error names the package and the command that lists it."""
    with pytest.raises(BillError) as raised:
        _made(**{LICENCES: LISTED.replace("| rich", "| poor")})
    assert str(raised.value) == (
        "requirements/licences.md does not list rich of requirements/run.txt:"
        " run `make licences` and commit the result"
    )


def test_bill_of_this_repository_is_valid_and_complete() -> None:
    """CycloneDX's schema accepts it, each pin is a component, and only Windows packages are optional."""
    files = source_files(ROOT, "requirements", "pyproject.toml")
    lock = pins(files[LOCK].text)
    text = bill(files, WHEEL, {name: requires(name) or [] for name in lock if name != "colorama"})
    assert _problems(text) == []
    components = json.loads(text)["components"]
    assert {each["name"]: each["version"] for each in components} == lock
    assert [each["name"] for each in components if each["scope"] == "optional"] == ["colorama"]
    known = {each["bom-ref"] for each in components}
    reached = {each for row in json.loads(text)["dependencies"] for each in row.get("dependsOn", ())}
    assert reached == known


def test_schema_refuses_a_bill_with_a_wrong_field() -> None:
    """The validator can fail."""
    assert _problems(_made().replace('"type": "library"', '"type": "book"', 1)) != []
