"""Tests of `meshwright schema`."""

import json
from pathlib import Path

import pytest

from meshwright.cli.main import app
from meshwright.cli.offline import reference
from tests.tools.command_runner import CliRunner


def test_schema_of_one_kind_equals_its_part_of_all() -> None:
    """The schema of one kind is complete in itself."""
    one = json.loads(CliRunner().invoke(app, ["schema", "Workload"]).stdout)
    every = json.loads(CliRunner().invoke(app, ["schema"]).stdout)
    assert one["properties"]["kind"] == {"const": "Workload"}
    assert one["properties"] == every["$defs"]["Workload"]["properties"]
    assert one["$schema"] == every["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_schema_page_as_json_has_the_fields_of_each_kind() -> None:
    """The JSON has the type, default and versions of each field, as the page does."""
    result = json.loads(CliRunner().invoke(app, ["schema", "--page", "--json"]).stdout)
    (workload,) = (item for item in result if item["kind"] == "Workload")
    (weight,) = (field for field in workload["fields"] if field["field"] == "spec.weight")
    assert (weight["what"], weight["default"], weight["versions"]) == (
        "1 to 1000",
        "`1`",
        ["meshwright.dev/v1alpha1"],
    )


def test_schema_files_are_written_and_listed(tmp_path: Path) -> None:
    """The written files are listed as lines or as JSON."""
    wanted = [str(tmp_path / "s" / name) for name in reference.schemas()]
    plain = CliRunner().invoke(app, ["schema", "--directory", str(tmp_path / "s")])
    as_json = CliRunner().invoke(app, ["schema", "--directory", str(tmp_path / "s"), "--json"])
    assert plain.stdout.splitlines() == wanted
    assert json.loads(as_json.stdout) == {"written": wanted}
    assert {str(path) for path in (tmp_path / "s").iterdir()} == set(wanted)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("Workloat",), "KIND is 'Workloat': did you mean Workload?"),
        (("zzz",), "KIND is 'zzz': must be one of Workload, TrafficTarget"),
        (("Pod", "--page"), "KIND, --page and --directory exclude each other: give one of them"),
        (("--directory", "/dev/null/x"), "cannot write the schemas: "),
    ],
)
def test_invalid_schema_arguments_give_status_2(words: tuple[str, ...], said: str) -> None:
    """The error is printed to standard error, with the most similar kind if there is one."""
    result = CliRunner().invoke(app, ["schema", *words])
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
