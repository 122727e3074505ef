"""Tests of `meshwright check` for a server that runs, is stopped, or is not yet set up."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.tools.forked_cli import Command
from tests.tools.program import Program
from tools.ports import free_port


@dataclass(frozen=True)
class Line:
    """One line of the command's answer."""

    name: str
    status: str
    said: str
    do: str


def check(program: Program, *more: str, stopped: bool = True) -> tuple[int, dict[str, Line]]:
    """Run the command, and return its status and lines. Each line that is not "ok" must have a next step."""
    mesh = ("--mesh", str(program.mesh)) if stopped else ()
    addresses = [f"--{each}-address=127.0.0.1:{free_port('127.0.0.1')}" for each in ("ads", "http", "debug")]
    words = ("check", "--state", str(program.state), *mesh, *(addresses if stopped else ()), *more, "--json")
    status, out, complaint = program.run(*words)
    assert complaint == ""
    page = json.loads(out)
    lines = {item["name"]: Line(**item) for item in page["checks"]}
    assert len(lines) == len(page["checks"])
    assert all(bool(line.do) == (line.status != "ok") for line in lines.values())
    failed = any(line.status == "failed" for line in lines.values())
    assert (status, page["status"] == "failed") == (int(failed), failed)
    return status, lines


def wrong(lines: dict[str, Line], status: str = "failed") -> set[str]:
    """Return the names of the lines with this status."""
    return {line.name for line in lines.values() if line.status == status}


def test_check_of_a_running_server_and_after_its_stop(used: Program) -> None:
    """While the server runs, missing proxies and manifest problems are reported.

    After its stop the server line fails, and the state directory is still checked.
    """
    server = used.serve()
    status, lines = check(used, stopped=False)
    assert (status, wrong(lines), wrong(lines, "warning")) == (0, set(), {"proxies"}), lines
    assert list(lines) == [
        *("state directory", "server", "readiness", "ledger", "source directory", "source dns", "CA"),
        *("service certificates", "proxy certificates", "port ADS", "port HTTP", "port debug", "clock"),
        *("proxies", "in step", "problems", "rejections", "withheld", "event loop"),
    ]
    assert f"(pid {server.process.pid}) serves at {server.bound['ads']}" in lines["port ADS"].said
    assert lines["ledger"].said.endswith("3 proxy certificates")

    assert used.served(server, "one")  # and is gone again
    server.until(lambda: check(used, stopped=False)[1]["proxies"].status == "failed")
    lines = check(used, stopped=False)[1]
    assert "0 connected, 2 expected, 1 disconnected: one.store.shop" in lines["proxies"].said

    (used.mesh / "more.yaml").write_text("kind: Nothing\n")
    server.until(lambda: "problems" in wrong(check(used, stopped=False)[1]))
    (used.mesh / "more.yaml").unlink()

    server.stop()
    status, lines = check(used)
    assert (status, wrong(lines), wrong(lines, "warning")) == (1, {"server"}, set())
    assert lines["server"].said == f"no server is running with the state directory {used.state}"
    assert list(lines) == [
        *("state directory", "server", "ledger", "mesh directory", "CA", "proxy certificates", "port ADS"),
        *("port HTTP", "port debug", "clock"),
    ]


def test_check_of_a_suspended_server_reports_a_timeout(used: Program) -> None:
    """A server that is stopped by SIGSTOP fails its line after 8 s, and the other lines are still checked."""
    server = used.serve()
    server.process.send_signal(signal.SIGSTOP)
    try:
        _, lines = check(used)
        assert "server" in wrong(lines)
        assert "has not answered within 8 s" in lines["server"].said
        assert lines["state directory"].status == "ok"
    finally:
        server.process.send_signal(signal.SIGCONT)


def test_ca_key_readable_by_others_is_reported_with_its_remedy(used: Program) -> None:
    """The failure names the `chmod` command. With `--shared-state` the mode is accepted."""
    key = used.state / "ca" / "ca.key"
    key.chmod(0o644)
    _, lines = check(used)
    assert wrong(lines) == {"server", "state directory"}
    assert (
        f"{key} can be read by other users" in lines["state directory"].said,
        lines["state directory"].do,
    ) == (
        True,
        f"chmod 600 {key}, or set shared_state if that is meant",
    )
    assert wrong(check(used, "--shared-state")[1]) == {"server"}


def test_lost_or_damaged_ledger_is_reported_and_left_unchanged(used: Program) -> None:
    """A missing or damaged ledger fails with the way out, and the check changes no file.

    A damaged CA certificate is a warning.
    """
    ledger = used.state / "ledger.sqlite"
    for path in used.state.glob("ledger.sqlite*"):
        path.rename(used.files / path.name)
    before = _tree(used.state)
    _, lines = check(used)
    assert wrong(lines) == {"server", "ledger"}
    assert f"ledger {ledger} is missing or empty" in lines["ledger"].said
    assert "start a new ledger with --begin-anew" in lines["ledger"].do
    assert _tree(used.state) == before

    ledger.write_bytes(b"not a ledger" * 1000)
    ledger.chmod(0o600)
    assert wrong(check(used)[1]) == {"server", "ledger"}

    (used.state / "ca" / "ca.pem").write_text("nothing")
    assert "ledger" in wrong(check(used)[1])
    assert check(used)[1]["CA"].status == "warning"


def _tree(state: Path) -> dict[str, bytes]:
    result = {str(path): path.read_bytes() for path in state.rglob("*") if path.is_file()}
    return {name: content for name, content in result.items() if not name.endswith(".lock")}


@contextmanager
def _listener(at: str) -> Iterator[int]:
    """Start a process that listens at an address, and yield its pid."""
    host, port = at.split(":")
    script = (
        "import socket, sys; s = socket.create_server((sys.argv[1], int(sys.argv[2])));"
        "print('listening', flush=True); sys.stdin.read()"
    )
    words = [sys.executable, "-c", script, host, port]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "listening\n"
        yield process.pid
        process.kill()


@pytest.mark.parametrize("more", [(), ("--before",)])
def test_port_used_by_another_program_is_reported(program: Program, more: tuple[str, ...]) -> None:
    """The program and pid are named.

    The wildcard address conflicts too, but another local address does not.
    """
    at = f"127.0.0.1:{free_port('127.0.0.1')}"
    with _listener(at) as pid:
        _, lines = check(program, "--http-address", at, *more)
        assert f"{at} is in use by python" in lines["port HTTP"].said
        assert f"(pid {pid})" in lines["port HTTP"].said
        everywhere = at.replace("127.0.0.1", "0.0.0.0")
        assert "port HTTP" in wrong(check(program, "--http-address", everywhere, *more)[1])
        elsewhere = at.replace("127.0.0.1", "127.0.0.2")
        assert "port HTTP" not in wrong(check(program, "--http-address", elsewhere, *more)[1])


def test_check_before_setup_of_a_server_reports_what_is_missing(program: Program) -> None:
    """A fit machine has no failures. A wrong manifest, directory or Envoy fails, and no file is created."""
    envoy = program.files / "envoy"
    envoy.touch(mode=0o755)
    fit = ("--before", "--envoy", str(envoy))
    status, lines = check(program, *fit)
    assert (status, wrong(lines), wrong(lines, "warning")) == (0, set(), set()), lines
    assert list(lines) == [
        *("Python", "state directory", "mesh directory", "port ADS", "port HTTP", "port debug", "Envoy"),
        "clock",
    ]
    assert not program.state.exists()
    (program.mesh / "bad.yaml").write_text("kind: [\n")
    assert wrong(check(program, *fit)[1]) == {"mesh directory"}
    assert wrong(check(program, *fit, "--mesh", str(program.files / "none"))[1]) == {"mesh directory"}
    assert wrong(check(program, *fit, "--state", str(envoy / "state"))[1]) >= {"state directory"}
    assert "Envoy" in wrong(check(program, "--before", "--envoy", "no-envoy")[1])


def test_check_without_any_directory_reports_each_missing_one(program: Program) -> None:
    """A missing state directory fails, a missing mesh setting is a warning, and no directory is created."""
    words = ("check", "--state", str(program.state), "--json")
    status, out, _ = program.run(*words)
    lines = {item["name"]: Line(**item) for item in json.loads(out)["checks"]}
    assert (status, lines["state directory"].status, lines["server"].status) == (1, "failed", "failed")
    assert (lines["mesh directory"].status, lines["mesh directory"].do) == (
        "warning",
        "give --mesh or MESHWRIGHT_MESH, or --kubernetes",
    )
    assert not program.state.exists()


def test_check_prints_a_table_with_next_steps(used: Program) -> None:
    """People get a table in which the next step is below the finding."""
    done = used.commands.run(Command(used.files, ("check", "--state", str(used.state)), {}), 60)
    assert done.returncode == 1
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert lines[0].split() == ["CHECK", "STATE", "FOUND"]
    row = next(number for number, line in enumerate(lines) if line.startswith("server "))
    assert lines[row].split()[:3] == ["server", "failed", "no"]
    assert lines[row + 1].startswith("-> start the server: `meshwright serve`")
