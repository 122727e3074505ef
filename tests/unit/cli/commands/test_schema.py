"""`meshwright schema`, as somebody types it."""

import json
from pathlib import Path

import pytest

from meshwright.cli.main import app
from meshwright.cli.offline import reference
from tests.tools.command_runner import CliRunner


def test_one_kind_and_all_of_them() -> None:
    """Each stands on its own feet."""
    one = json.loads(CliRunner().invoke(app, ["schema", "Workload"]).stdout)
    every = json.loads(CliRunner().invoke(app, ["schema"]).stdout)
    assert one["properties"]["kind"] == {"const": "Workload"}
    assert one["properties"] == every["$defs"]["Workload"]["properties"]
    assert one["$schema"] == every["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_the_page_for_programs() -> None:
    """All kinds with their fields, as the page has them."""
    found = json.loads(CliRunner().invoke(app, ["schema", "--page", "--json"]).stdout)
    (workload,) = (each for each in found if each["kind"] == "Workload")
    (weight,) = (each for each in workload["fields"] if each["field"] == "spec.weight")
    assert (weight["what"], weight["default"], weight["versions"]) == (
        "1 to 1000",
        "`1`",
        ["meshwright.dev/v1alpha1"],
    )


def test_files_are_written_and_named(tmp_path: Path) -> None:
    """For programs as JSON."""
    wanted = [str(tmp_path / "s" / name) for name in reference.schemas()]
    plain = CliRunner().invoke(app, ["schema", "--directory", str(tmp_path / "s")])
    as_json = CliRunner().invoke(app, ["schema", "--directory", str(tmp_path / "s"), "--json"])
    assert plain.stdout.splitlines() == wanted
    assert json.loads(as_json.stdout) == {"written": wanted}
    assert {str(each) for each in (tmp_path / "s").iterdir()} == set(wanted)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("Workloat",), "KIND is 'Workloat': did you mean Workload?"),
        (("zzz",), "KIND is 'zzz': must be one of Workload, TrafficTarget"),
        (("Pod", "--page"), "KIND, --page and --directory exclude each other: give one of them"),
        (("--directory", "/dev/null/x"), "cannot write the schemas: "),
    ],
)
def test_what_cannot_be_done_is_said(words: tuple[str, ...], said: str) -> None:
    """With status 2."""
    found = CliRunner().invoke(app, ["schema", *words])
    assert (found.exit_code, found.stdout) == (2, "")
    assert said in found.stderr
