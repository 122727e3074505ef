"""Tests of third-party providers: the one in docs/extend/providers.md, and faulty ones."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.documented_projects import installed
from tests.tools.forked_cli import ROOT, Executed
from tests.tools.program import Program, Server
from tests.tools.wheels import install, wheel

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the installed provider of the page."""
    return installed("extend/providers.md", tmp_path_factory.mktemp("inventory"))


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """The program with a separate interpreter for each command, which finds installed packages."""
    made = Program(tmp_path / "state", tmp_path, Executed())
    yield made
    made.end()


def _finds(program: Program, *sites: Path) -> None:
    program.environment["PYTHONPATH"] = os.pathsep.join(map(str, (ROOT, *sites)))


def _source(program: Program, name: str) -> dict[str, object]:
    status, out, complaint = program.run("sources", "--state", str(program.state), "--json")
    assert status == 0, complaint
    result: dict[str, dict[str, object]] = {source["name"]: source for source in json.loads(out)["sources"]}
    return result[name]


def test_documented_provider_serves_workloads_and_follows_its_file(
    program: Program, page: Path, tmp_path: Path
) -> None:
    """Lines are workloads. An invalid line keeps the objects and is a problem until it is fixed."""
    file = tmp_path / "inventory.txt"
    file.write_text("shop web-1 10.0.1.7 web 4f1c\n")
    _finds(program, page)
    server = program.serve("--set", f"providers=inventory:file={file},seconds=0.1")
    assert _good(program) == 1

    file.write_text("shop web-1 10.0.1.7 web 4f1c\nshop web-2 10.0.1.8 web 77aa\n")
    server.until(lambda: _good(program) == 2)

    file.write_text("shop web-1\n")
    server.until(lambda: _problems(server))
    assert "fails: ValueError: not enough values to unpack" in _problems(server)[0]
    assert _good(program) == 2

    file.write_text("shop web-2 10.0.1.8 web 77aa\n")
    server.until(lambda: _good(program) == 1)
    assert any("MW1112" in str(item) for item in server.said("problem resolved"))


def test_provider_can_be_the_only_source(program: Program, page: Path, tmp_path: Path) -> None:
    """Without a directory the provider has all objects.

    Without the provider's file the server is degraded but ready.
    """
    file = tmp_path / "inventory.txt"
    file.write_text("shop web-1 10.0.1.7 web 4f1c\n")
    _finds(program, page)
    program.reads = ()
    server = program.serve("--set", f"providers=inventory:file={file},seconds=0.1")
    status, out, _ = program.run("sources", "--state", str(program.state), "--json")
    assert (status, [source["name"] for source in json.loads(out)["sources"]]) == (0, ["dns", "inventory"])
    assert _good(program) == 1
    status, out, _ = program.run("check", "--state", str(program.state), "--json")
    answer = {check["name"]: check["said"] for check in json.loads(out)["checks"]}
    assert answer["server"].endswith("; its sources are provider inventory")

    file.unlink()
    server.until(lambda: "but: source inventory" in server.get("/healthz/ready")[1])
    status, text = server.get("/healthz/ready")
    assert (status, text.splitlines()[0]) == (200, "ready")
    assert "is degraded" in text


def _good(program: Program, name: str = "inventory") -> object:
    objects = _source(program, name)["objects"]
    assert isinstance(objects, dict)
    return objects["good"]


def _problems(server: Server) -> list[str]:
    return [str(item["problem"]) for item in server.said("provider problem")]


WELL = """
class Well:
    contract = 1
    seconds = 0.1
    def __init__(self, options):
        if options:
            raise ValueError("it takes no options")
    def manifests(self):
        return []
"""


def test_missing_provider_prevents_the_start(program: Program) -> None:
    """The error is one message before anything is served."""
    text = program.refused("--set", "providers=none-of-that-name")
    assert text.startswith(
        "provider 'none-of-that-name' is not installed: entry points in the group meshwright.prov"
    )


def test_hanging_or_failing_provider_does_not_affect_the_server(program: Program, tmp_path: Path) -> None:
    """The directory's objects are served, each provider's fault is shown, and the server can be stopped."""
    hangs = WELL.replace("return []", "import time; time.sleep(1e6)").replace("Well", "Hangs")
    raises = WELL.replace("return []", "raise SystemExit('enough')").replace("Well", "Raises")
    answers = WELL.replace("return []", "return ['no manifest']").replace("Well", "Answers")
    points = "[meshwright.providers]\n" + "".join(
        f"{item.lower()} = p:{item}\n" for item in ("Hangs", "Raises", "Answers")
    )
    made = wheel(tmp_path, "some", {"p.py": hangs + raises + answers}, points)
    _finds(program, install(tmp_path / "site", made))
    server = program.serve("--set", "providers=hangs;raises;answers")
    assert _good(program, "directory") == 4
    errors = {item: _source(program, item)["error"] for item in ("hangs", "raises", "answers")}
    # The first query gets 2 s, later ones 10 s: on a busy machine the second may be over as well.
    assert errors.pop("hangs") in ("has not answered within 2 s", "has not answered within 10 s")
    assert errors == {
        "raises": "fails: SystemExit: enough",
        "answers": "fails: TypeError: a manifest is of type str; must be a dict",
    }
    server.stop()
