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
    answer = []
    for line in process.stderr:
        answer.append(json.loads(line))
        if answer[-1]["event"] == "server started":
            return answer
    raise AssertionError(f"it ended: {process.wait()}")


def test_log_and_page_report_osm_policy_that_is_not_enforced(tmp_path: Path) -> None:
    """Each is one warning. Deployments are read, but are no workloads; of Secrets only names are shown."""
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
    warned = [item for item in log if item.get("code") == "MW1030"]
    assert {item["level"] for item in warned} == {"warning"}
    assert sorted(item["problem"].split(": ")[1].split()[0] for item in warned) == kinds
    result = [
        (problem["severity"], problem["code"], problem["object"], problem["value"])
        for problem in page["problems"]
    ]
    assert [item for item in result if item[0] == "error"] == []
    assert sorted(item[2].split()[0] for item in result if item[0] == "warning") == kinds
    assert sorted(item for item in result if item[1] == "MW2025") == TO_COME
    objects = {(item["kind"], item["name"]) for item in page["objects"]}
    assert {("Deployment", "bookstore"), ("StatefulSet", "mysql"), ("Secret", "database")} <= objects
    assert ("Workload", "bookstore") not in objects
    assert "hunter2" not in json.dumps([log, page])
