"""Tests of the contents of a bug report, mostly without a running server."""

import io
import json
import tarfile
from pathlib import Path

import pytest

from meshwright.cli.bugs import contents as gathered
from meshwright.cli.main import app
from tests.tools.command_runner import CliRunner


def test_report_without_a_server_lists_the_missing_files(tmp_path: Path) -> None:
    """Each missing file has its reason, and the available ones are in the archive."""
    log, out = tmp_path / "server.log", tmp_path / "out.tar.gz"
    log.write_text("it ended\n")
    state = tmp_path / "state"
    words = ["bug-report", "--state", str(state), "--out", str(out), "--log", str(log), "--json"]
    done = CliRunner().invoke(app, [*words, "--log", str(tmp_path / "none")])
    assert done.exit_code == 0, done.output
    answer = json.loads(done.output)
    assert answer["file"] == str(out)
    assert answer["files"] == ["about.json", "check.json", "logs/server.log"]
    assert answer["missing"].keys() == {
        *(f"pages/{name}.json" for name in gathered.PAGES),
        "metrics.txt",
        "logs/none",
    }
    assert "no server is running" in answer["missing"]["pages/proxy.json"]
    with tarfile.open(out) as made:
        file = made.extractfile("meshwright-bug-report/about.json")
        assert file is not None
        about = json.load(file)
    assert about["missing"] == answer["missing"]
    assert about["version"]


def test_long_log_is_cut_to_its_last_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report has the last bytes of a long log, without a partial first line."""
    monkeypatch.setattr(gathered, "LOG_BYTES", 10)
    log, report = tmp_path / "a.log", gathered.Report()
    log.write_text("".join(f"line {number}\n" for number in range(9)))
    gathered.log(report, log)
    assert report.files == {"logs/a.log": "line 8\n"}


def test_control_characters_of_a_log_are_escaped_in_the_report(tmp_path: Path) -> None:
    """Control characters in a log's text or name are escaped. They could control a reader's terminal."""
    log, report = tmp_path / "a\x1b[2J.log", gathered.Report()
    log.write_text("one\x1b[2J\x9b1m\u202e\ttwo\n")
    gathered.log(report, log)
    assert report.files == {r"logs/a\x1b[2J.log": "one\\x1b[2J\\x9b1m\\u202e\\x09two\n"}


def test_report_has_the_first_proxies_that_are_not_in_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proxies that are not in sync come first, up to the limit.

    Configurations are included only with values.
    """
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
def test_report_can_be_written_to_standard_output(tmp_path: Path, out: str) -> None:
    """The control plane's image has no tar, so a report leaves its Pod through `kubectl exec`."""
    done = CliRunner().invoke(app, ["bug-report", "--state", str(tmp_path / "none"), "--out", out])
    assert done.exit_code == 0, done.output
    with tarfile.open(fileobj=io.BytesIO(done.stdout_bytes)) as made:
        assert made.getnames() == [f"meshwright-bug-report/{item}.json" for item in ("about", "check")]
    assert done.stderr.startswith("standard output: 2 files\nnot in it: metrics.txt: ")


def test_archive_and_json_on_standard_output_are_refused(tmp_path: Path) -> None:
    """Both on one stream could not be separated."""
    words = ["bug-report", "--state", str(tmp_path / "none"), "--out", "-", "--json"]
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.stdout) == (2, "")
