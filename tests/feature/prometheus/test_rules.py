"""Tests of alert and recording rules with promtool, and with a Prometheus that scrapes a control plane."""

import asyncio
import json
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from meshwright.agent.statistics.edge_totals import WorkloadLabels
from meshwright.agent.statistics.edges import Edges
from meshwright.agent.statistics.exposition import written
from meshwright.agent.statistics.statistics import read
from tests.feature.identity.conftest import serve
from tests.feature.identity.test_enrolment import Serve
from tests.feature.identity.test_identity import workload
from tests.tools import libyaml
from tools.ports import free_port

__all__ = ["serve"]

ROOT = Path(__file__).parents[3]
RULES = ROOT / "deploy" / "prometheus"
FILES = ("recording.yaml", "alerts.yaml")


@pytest.fixture(scope="session")
def programs() -> tuple[str, str]:
    """The paths of promtool and prometheus."""
    result = tuple(shutil.which(item) for item in ("promtool", "prometheus"))
    if not all(result) and os.environ.get("MESHWRIGHT_PROMETHEUS") != "required":
        pytest.skip("there is no Prometheus: `make system` installs one")
    promtool, prometheus = result
    assert promtool is not None
    assert prometheus is not None, "Debian's package prometheus is required here"
    return promtool, prometheus


def run(*argv: str | Path, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run promtool."""
    return subprocess.run(list(map(str, argv)), input=given, capture_output=True, text=True, check=False)


def unit_tests(folder: Path, *, changed: tuple[str, str] = ("", "")) -> Path:
    """Write the rules, with one change in the alerts, and their tests. Return the path of the tests."""
    for name in FILES:
        text = (RULES / name).read_text()
        assert changed[0] in text or name != "alerts.yaml"
        (folder / name).write_text(text.replace(*changed) if name == "alerts.yaml" and changed[0] else text)
    tests = (Path(__file__).parent / "rules_test.yaml").read_text()
    path = folder / "tests.yaml"
    path.write_text(
        tests.replace("RECORDING", str(folder / FILES[0])).replace("ALERTS]", f"{folder / FILES[1]}]")
    )
    return path


def test_rules_fire_exactly_on_their_conditions(programs: tuple[str, str], tmp_path: Path) -> None:
    """The cases are a healthy mesh, a mesh with every fault, and a mesh without calls."""
    assert (
        result := run(programs[0], "check", "rules", *(RULES / file for file in FILES))
    ).returncode == 0, result
    assert (result := run(programs[0], "test", "rules", unit_tests(tmp_path))).returncode == 0, result


@pytest.mark.parametrize(
    "changed",
    [
        ("> 60", "> 61"),
        ("0.1 *", "0.2 *"),
        ("< 14400", "< 14401"),
        ("> 300", "> 301"),
        ("ratio5m < 0.95", "ratio5m < 0.97"),
        ("< 0.9 *", "< 0.7 *"),
        ("[10m]) > 0 or", "[10m]) > 100 or"),
    ],
)
def test_tests_of_the_rules_fail_for_a_changed_bound(
    programs: tuple[str, str], tmp_path: Path, changed: tuple[str, str]
) -> None:
    """Each changed bound fails a test of the rules, so those tests can fail."""
    assert run(programs[0], "test", "rules", unit_tests(tmp_path, changed=changed)).returncode != 0


HEALTHY: dict[str, str] = {
    'meshwright_build_info{instance="a",version="1.2.0"}': "1x60",
    'meshwright_build_info{instance="b",version="1.2.0"}': "1x60",
    'meshwright_kubernetes_reporting{instance="a"}': "1x60",
    'meshwright_kubernetes_reporting{instance="b"}': "0x60",
}
"""Series of two servers, of which one leads."""


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, {}),
        (
            {'meshwright_build_info{instance="b",version="1.2.0"}': None},
            {"MeshwrightServerMissing": "only 1 of 2 control planes are scraped"},
        ),
        (
            {
                'meshwright_build_info{instance="b",version="1.2.0"}': None,
                'meshwright_build_info{instance="b",version="1.3.0"}': "1x60",
            },
            {"MeshwrightVersionsDiffer": "the control planes have different versions"},
        ),
        (
            {'meshwright_kubernetes_reporting{instance="a"}': "0x60"},
            {"MeshwrightNobodyReports": "0 control planes write status"},
        ),
        (
            {'meshwright_kubernetes_reporting{instance="b"}': "1x60"},
            {"MeshwrightNobodyReports": "2 control planes write status"},
        ),
    ],
    ids=["healthy", "missing", "versions", "nobody", "both"],
)
def test_alerts_of_the_page_on_several_servers_fire_on_their_conditions(
    programs: tuple[str, str], tmp_path: Path, changed: dict[str, str | None], expected: dict[str, str]
) -> None:
    """The rules are those on docs/operate/high-availability.md, word for word."""
    page = (ROOT / "docs" / "operate" / "high-availability.md").read_text()
    (text,) = (block for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "alert:" in block)
    (tmp_path / "rules.yaml").write_text(text)
    rules = {rule["alert"]: rule for rule in libyaml.load(text)["groups"][0]["rules"]}
    assert {name for name in rules if name.startswith("Meshwright")} == {
        "MeshwrightServerMissing",
        "MeshwrightVersionsDiffer",
        "MeshwrightNobodyReports",
    }
    series = [
        {"series": name, "values": values}
        for name, values in (HEALTHY | changed).items()
        if values is not None
    ]
    fired = [
        {
            "alertname": name,
            "eval_time": "59m",
            "exp_alerts": [_alert(rule, expected)] if name in expected else [],
        }
        for name, rule in rules.items()
    ]
    test = {"interval": "1m", "input_series": series, "alert_rule_test": fired}
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [test]}))
    result = run(programs[0], "test", "rules", tmp_path / "tests.yaml")
    assert result.returncode == 0, result


def _alert(rule: dict[str, Any], expected: dict[str, str]) -> dict[str, Any]:
    """Return an alert whose summary is that of the rule, with the expected beginning."""
    begin = expected[rule["alert"]]
    number = begin.split()[0 if begin[0].isdigit() else 1]
    summary = rule["annotations"]["summary"].replace("{{ $value }}", number)
    assert summary.startswith(begin)
    return {"exp_annotations": {"summary": summary}}


def alerts() -> list[dict[str, Any]]:
    """Return the alerts."""
    groups = libyaml.load((RULES / "alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_every_alert_has_a_section_in_the_docs() -> None:
    """docs/operate/alerts.md has one heading for each alert, in order and without others."""
    page = (ROOT / "docs" / "operate" / "alerts.md").read_text()
    headings = re.findall(r"^## (Meshwright\w+)$", page, re.MULTILINE)
    assert headings == [alert["alert"] for alert in alerts()]
    for alert in alerts():
        assert alert["annotations"]["runbook_url"] == f"docs/operate/alerts.md#{alert['alert'].lower()}"
        assert {"summary", "description"} <= alert["annotations"].keys()
        assert alert["labels"]["severity"] in ("critical", "warning", "info")


CALLED = {
    "http.rds-outbound.default/shop|80.downstream_rq_2xx": 9,
    "http.rds-outbound.default/shop|80.downstream_rq_5xx": 1,
    "cluster.default/shop-v1|8080.upstream_rq_2xx": 9,
}
TIMES = {"name": "http.rds-outbound.default/shop|80.downstream_rq_time", "totals": []}


async def test_promtool_accepts_the_metrics_of_server_and_agent(
    programs: tuple[str, str], serve: Serve
) -> None:
    """`promtool` accepts the server's page and an agent's metrics of calls, but rejects a planted fault."""
    server = await serve(workload("one"))
    async with aiohttp.ClientSession() as session, session.get(f"http://{server.bound.http}/metrics") as got:
        page = await got.text()
    stats: list[dict[str, Any]] = [{"name": name, "value": value} for name, value in CALLED.items()]
    totals = [{"lower_bound": 4.0, "width": 0.1, "count": 9}]
    histogram = {"histograms": {"details": [TIMES | {"totals": totals}]}}
    edges = written(
        Edges().families(read({"stats": [*stats, histogram]}), WorkloadLabels("default", "alice", "alice"))
    )
    for text in (page, edges):
        result = await asyncio.to_thread(run, programs[0], "check", "metrics", given=text)
        assert (result.returncode, result.stderr, result.stdout) == (0, "", "")
    assert "_created" not in page
    assert "process_cpu_seconds_total" in page
    wrong = await asyncio.to_thread(
        run, programs[0], "check", "metrics", given="# TYPE a_total gauge\na_total 1\n"
    )
    assert wrong.returncode != 0


def dashboards() -> list[str]:
    """Return the queries of the chart's dashboards for one service."""
    files = sorted((ROOT / "deploy" / "chart" / "meshwright" / "files").glob("dashboard-*.json"))
    panels = [panel for file in files for panel in json.loads(file.read_text())["panels"]]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    assert len(files) == 3
    return [query.replace("$namespace", "shop").replace("$service", "store") for query in queries]


@asynccontextmanager
async def scraping(prometheus: str, folder: Path, target: str) -> AsyncIterator[str]:
    """Run a Prometheus with our rules on the control plane, and yield its address."""
    for file in FILES:
        (folder / file).write_text((RULES / file).read_text().replace("interval: 30s", "interval: 1s"))
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(folder / file) for file in FILES],
        "scrape_configs": [{"job_name": "meshwright", "static_configs": [{"targets": [target]}]}],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config))
    address = f"127.0.0.1:{free_port('127.0.0.1')}"
    command = [
        prometheus,
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
    ]
    with (folder / "prometheus.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)
    try:
        yield f"http://{address}/api/v1"
    finally:
        process.terminate()
        await process.wait()


@pytest.mark.timeout(120)
async def test_prometheus_scrapes_the_server_and_evaluates_every_rule(
    programs: tuple[str, str], serve: Serve, tmp_path: Path
) -> None:
    """The target is up, each rule and dashboard query is valid, and no alert fires."""
    server = await serve(workload("one"))
    async with (
        aiohttp.ClientSession() as session,
        scraping(programs[1], tmp_path, str(server.bound.http)) as at,
    ):

        async def ask(path: str) -> Any:
            async with session.get(at + path) as answer:
                return (await answer.json())["data"]

        async def rules() -> list[dict[str, Any]]:
            return [rule for group in (await ask("/rules"))["groups"] for rule in group["rules"]]

        async with asyncio.timeout(90):
            while not await _is_evaluated(ask, rules):
                await asyncio.sleep(0.1)
        result = await rules()
        assert {item["name"]: item.get("lastError", "") for item in result if item["health"] != "ok"} == {}
        for query in dashboards():
            async with session.get(f"{at}/query", params={"query": query}) as answer:
                assert answer.status == 200, (query, await answer.text())
        async with session.get(
            f"{at}/query", params={"query": "sum(rate(meshwright_waves_total))"}
        ) as answer:
            assert answer.status == 400
        (value,) = (await ask("/query?query=meshwright_proxies{state='expected'}"))["result"]
        assert value["value"][1] == "1"


async def _is_evaluated(ask: Any, rules: Any) -> bool:
    try:
        targets = (await ask("/targets"))["activeTargets"]
        result = await rules()
        healths = {item["health"] for item in result}
        # An alert for absent metrics is pending until the first scrape.
        waiting = [item["name"] for item in result if item.get("state", "inactive") != "inactive"]
    except aiohttp.ClientError:
        return False
    return [target["health"] for target in targets] == ["up"] and healths == {"ok"} and not waiting
