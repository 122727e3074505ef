"""Test of a server with Open Service Mesh manifests: unenforced policy is reported."""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from tests.unit.cli import osm_demo
from tests.unit.cli.commands.test_lint_osm import BESIDE, TO_COME, UNENFORCED

COMMAND = (sys.executable, "-c", "from meshwright.cli.main import main; main()")
ROOT = Path(__file__).parents[3]


def _until_serving(process: "subprocess.Popen[str]") -> list[dict[str, Any]]:
    """Read the log until the server reports its addresses."""
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(json.loads(line))
        if said[-1]["event"] == "server started":
            return said
    raise AssertionError(f"it ended: {process.wait()}")


def test_log_and_page_report_osm_policy_that_is_not_enforced(tmp_path: Path) -> None:
    """Each is one warning. Deployments are read, but are no workloads, and Secrets are not shown."""
    (tmp_path / "mesh").mkdir()
    (tmp_path / "mesh" / "demo.yaml").write_text(osm_demo.text(osm_demo.demo()))
    (tmp_path / "mesh" / "policy.yaml").write_text(UNENFORCED + "---" + BESIDE)
    anywhere = (f"--{name}-address=127.0.0.1:0" for name in ("ads", "http", "debug"))
    arguments = ("serve", "--mesh", str(tmp_path / "mesh"), "--state", str(tmp_path / "state"), *anywhere)
    with subprocess.Popen(
        [*COMMAND, *arguments],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            log = _until_serving(process)
            url = f"http://{log[-1]['debug']}/debug/policies"
            with urllib.request.urlopen(url, timeout=60) as response:
                page = json.load(response)
        finally:
            process.kill()
            process.communicate()
    kinds = ["AccessControl", "MeshConfig"]
    warned = [each for each in log if each.get("code") == "MW1030"]
    assert {each["level"] for each in warned} == {"warning"}
    assert sorted(each["problem"].split(": ")[1].split()[0] for each in warned) == kinds
    found = [(each["severity"], each["code"], each["object"], each["value"]) for each in page["problems"]]
    assert [each for each in found if each[0] == "error"] == []
    assert sorted(each[2].split()[0] for each in found if each[0] == "warning") == kinds
    assert sorted(each for each in found if each[1] == "MW2025") == TO_COME
    objects = {(each["kind"], each["name"]) for each in page["objects"]}
    assert {("Deployment", "bookstore"), ("StatefulSet", "mysql")} <= objects
    assert not objects & {("Workload", "bookstore"), ("Secret", "database")}
    assert "hunter2" not in json.dumps([log, page])
