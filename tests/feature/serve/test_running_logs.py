"""Tests of a running server's log: foreign lines, changed levels, and reloaded settings."""

import json
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.tools.forked_cli import Typed
from tests.tools.program import Program, Server


@pytest.fixture
def program(tmp_path: Path, typed: Typed) -> Iterator[Program]:
    """The program with a small mesh."""
    made = Program(tmp_path / "state", tmp_path, typed)
    yield made
    made.end()


def _are_said(server: Server, number: int) -> bool:
    return len(server.said("manifest problem")) == number


def _write(server: Server, text: str) -> None:
    """Write to the server's standard error, as a C library does."""
    with Path(f"/proc/{server.process.pid}/fd/2").open("w") as stderr:
        stderr.write(text)


def test_every_log_line_is_json(program: Program) -> None:
    """Lines of gRPC become messages with level and place, others messages with the source "stderr"."""
    program.environment["GRPC_VERBOSITY"] = "ERROR"
    server = program.serve()
    place = "0000 00:00:1763805600.123456    4711 some_part.cc:1884] "
    _write(server, f"E{place}went wrong\n\nwords\nF{place}no memory\n")
    server.until(lambda: len(server.said("gRPC message")) == 2 and server.said("standard error message"))
    wrong, memory = server.said("gRPC message")
    assert (wrong["source"], wrong["level"], wrong["place"]) == ("grpc", "error", "some_part.cc:1884")
    assert (wrong["said"], memory["said"], memory["level"]) == ("went wrong", "no memory", "critical")
    (other,) = server.said("standard error message")
    assert (other["source"], other["said"]) == ("stderr", "words")
    server.stop()
    lines = [json.loads(line) for line in server.log_path.read_text().splitlines()]
    assert all({"event", "level", "timestamp"} <= line.keys() for line in lines)
    assert lines[-1]["event"] == "server stopped"


def test_crash_leaves_pythons_fatal_error_report(program: Program) -> None:
    """The report of a fatal error is in the log, although it is not JSON."""
    server = program.serve()
    os.kill(server.process.pid, signal.SIGABRT)
    server.process.wait()
    assert "Fatal Python error: Aborted" in server.log_path.read_text()


def test_log_level_is_changed_at_run_time(program: Program) -> None:
    """The level is set and reset for one package, then for all. An unknown name gets a suggestion."""
    server = program.serve()
    state = ("--state", str(program.state))
    assert program.run("log-level", *state)[1].splitlines()[0] == "everything else: info"
    status, out, _ = program.run("log-level", "debug", "--logger", "delivery", *state)
    assert (status, out) == (0, "everything else: info\ndelivery: debug\n")
    result = json.loads(program.run("log-level", "--json", *state)[1])
    assert result["levels"][""] == "info"
    assert result["levels"]["delivery"] == "debug"
    assert program.run("log-level", "default", "--logger", "delivery", *state)[1] == "everything else: info\n"
    status, _, text = program.run("log-level", "debug", "--logger", "delivry", *state)
    assert (status, text) == (2, "logger is 'delivry': did you mean delivery?")
    status, _, text = program.run("log-level", "loud", *state)
    assert (status, text) == (2, "level is 'loud': must be debug, info, warning, error")
    assert program.run("log-level", "error", *state)[1].splitlines()[0] == "everything else: error"
    for number, name in enumerate(("one.yaml", "two.yaml"), 1):
        (program.mesh / name).write_text("kind: [\n")
        server.until(partial(_are_said, server, number))
        if number == 1:
            (program.mesh / name).unlink()
    assert server.said("problem resolved") == []
    assert program.run("log-level", "info", *state)[0] == 0
    (program.mesh / "two.yaml").unlink()
    server.until(lambda: server.said("problem resolved"))
    assert [item["code"] for item in server.said("problem resolved")] == ["MW1101"]


def test_sighup_reloads_the_settings(program: Program) -> None:
    """Settings that need a restart are named, and an invalid file changes nothing."""
    config = program.files / "config.yaml"
    config.write_text("log_level: info\nproxy_certificate_days: 10\n")
    program.environment["MESHWRIGHT_QUIET_SECOND"] = "1"
    server = program.serve("--config", str(config))

    (line,) = server.said("unknown environment variable is ignored")
    assert line["did_you_mean"] == "MESHWRIGHT_QUIET_SECONDS"

    def hung_up(text: str) -> None:
        config.write_text(text)
        os.kill(server.process.pid, signal.SIGHUP)

    hung_up("log_level: debug\nproxy_certificate_days: 20\nstreams_per_certificate: 9\n")
    server.until(lambda: server.said("settings reloaded; some need a restart"))
    (line,) = server.said("settings reloaded; some need a restart")
    assert line["changed"] == {"log_level": "debug", "proxy_certificate_days": 20}
    assert line["needs_restart"] == ["streams_per_certificate"]
    assert program.run("log-level", "--state", str(program.state))[1].startswith("everything else: debug\n")
    assert program.run("log-level", "warning", "--state", str(program.state))[0] == 0
    hung_up("log_level: debug\nproxy_certificate_days: 20\nstreams_per_certificate: 9\n")
    server.until(lambda: len(server.said("settings reloaded; some need a restart")) == 2)
    assert program.run("log-level", "--state", str(program.state))[1].startswith("everything else: warning\n")
    hung_up("log_level: of\n")
    server.until(lambda: server.said("settings not reloaded; the settings in force stay"))
    (line,) = server.said("settings not reloaded; the settings in force stay")
    assert line["reason"].startswith("log_level in the config file is 'of': ")
    hung_up("quiet_seconds: 0.2\n")
    server.until(lambda: server.said("settings reloaded"))
    (line,) = server.said("settings reloaded")
    assert line["changed"] == {"log_level": "info", "proxy_certificate_days": 90, "quiet_seconds": 0.2}
    server.stop()
