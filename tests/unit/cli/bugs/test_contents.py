"""What a report says where there is nothing to be asked."""

import io
import json
import tarfile
from pathlib import Path

import pytest

from meshwright.cli.bugs import contents as gathered
from meshwright.cli.main import app
from tests.tools.command_runner import CliRunner


def test_of_a_server_that_does_not_run_it_says_so(tmp_path: Path) -> None:
    """Everything that could not be had is named with its reason, and what can be had is there."""
    log, out = tmp_path / "server.log", tmp_path / "out.tar.gz"
    log.write_text("it ended\n")
    state = tmp_path / "state"
    words = ["bug-report", "--state", str(state), "--out", str(out), "--log", str(log), "--json"]
    done = CliRunner().invoke(app, [*words, "--log", str(tmp_path / "none")])
    assert done.exit_code == 0, done.output
    said = json.loads(done.output)
    assert said["file"] == str(out)
    assert said["files"] == ["about.json", "check.json", "logs/server.log"]
    assert said["missing"].keys() == {
        *(f"pages/{name}.json" for name in gathered.PAGES),
        "metrics.txt",
        "logs/none",
    }
    assert "no server is running" in said["missing"]["pages/proxy.json"]
    with tarfile.open(out) as made:
        file = made.extractfile("meshwright-bug-report/about.json")
        assert file is not None
        about = json.load(file)
    assert about["missing"] == said["missing"]
    assert about["version"]


def test_of_a_long_log_the_last_whole_lines_go_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no half one at their beginning."""
    monkeypatch.setattr(gathered, "LOG_BYTES", 10)
    log, report = tmp_path / "a.log", gathered.Report()
    log.write_text("".join(f"line {number}\n" for number in range(9)))
    gathered.log(report, log)
    assert report.files == {"logs/a.log": "line 8\n"}


def test_nothing_in_a_log_steers_the_terminal_of_who_reads_the_report(tmp_path: Path) -> None:
    """A log has what strangers have sent, and its name is somebody's too."""
    log, report = tmp_path / "a\x1b[2J.log", gathered.Report()
    log.write_text("one\x1b[2J\x9b1m\u202e\ttwo\n")
    gathered.log(report, log)
    assert report.files == {r"logs/a\x1b[2J.log": "one\\x1b[2J\\x9b1m\\u202e\\x09two\n"}


def test_proxies_not_in_step_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many proxies a few, and of these all there is; a name is asked for as it is."""
    asked = list[tuple[str, object]]()

    def api(_state: Path, path: str, query: object = None) -> object:
        asked.append((path, query))
        listed = [
            {"cn": "a.b.c", "why": ""},
            {"cn": "b.b.c", "state": "ended", "why": "its workload is gone"},
            {"cn": "z.b.c", "why": "never connected"},
            {"cn": "y.b.c"},
        ]
        return {"proxies": listed} if path == "/proxies" else {"password": "x"}

    monkeypatch.setattr(gathered, "api", api)
    report, whole = gathered.Report(), gathered.Report(values=True)
    gathered.server(report, tmp_path, 2)
    gathered.server(whole, tmp_path, 2)
    assert {*whole.files} - {*report.files} == {
        f"proxies/{name}/configuration.json" for name in ("a.b.c", "z.b.c")
    }
    files = ("history", "streams")
    assert sorted(name for name in report.files if name.startswith("proxies/")) == [
        f"proxies/{name}/{what}.json" for name in ("a.b.c", "z.b.c") for what in files
    ]
    assert {("/streams", "{'proxy': 'z.b.c'}"), ("/proxies/z.b.c/pushes", "None")} <= {
        (path, str(query)) for path, query in asked
    }
    assert json.loads(report.files["proxies/z.b.c/history.json"]) == {"password": "[withheld]"}


@pytest.mark.parametrize("out", ["-", "/dev/stdout"])
def test_a_report_leaves_a_container_by_standard_output(tmp_path: Path, out: str) -> None:
    """The image of the control plane has no tar, so `kubectl exec` is the only way out of its Pod."""
    done = CliRunner().invoke(app, ["bug-report", "--state", str(tmp_path / "none"), "--out", out])
    assert done.exit_code == 0, done.output
    with tarfile.open(fileobj=io.BytesIO(done.stdout_bytes)) as made:
        assert made.getnames() == [f"meshwright-bug-report/{each}.json" for each in ("about", "check")]
    assert done.stderr.startswith("standard output: 2 files\nnot in it: metrics.txt: ")


def test_an_archive_and_json_do_not_share_standard_output(tmp_path: Path) -> None:
    """Nobody could take them apart."""
    words = ["bug-report", "--state", str(tmp_path / "none"), "--out", "-", "--json"]
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.stdout) == (2, "")
