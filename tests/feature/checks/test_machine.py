"""Tests of `meshwright agent check --before` on a machine without a sidecar."""

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tools.forked_cli import Command, Typed
from tests.unit.agent.issued_credentials import write_credentials

Before = Callable[..., tuple[int, dict[str, dict[str, str]]]]


@pytest.fixture
def before(typed: Typed, tmp_path: Path) -> Before:
    """A function that runs the command with a valid user and directory, and returns status and lines."""

    def run(*more: str) -> tuple[int, dict[str, dict[str, str]]]:
        words = ("agent", "check", "--before", "--json", "--run", "run", "--uid", str(os.getuid()), *more)
        done = typed.run(Command(tmp_path, words, {}))
        assert done.stderr == ""
        return done.returncode, {check["name"]: check for check in json.loads(done.stdout)["checks"]}

    return run


def test_check_before_setup_reports_what_a_machine_lacks(before: Before, tmp_path: Path) -> None:
    """Missing credentials are a warning, because they come later.

    A wrong Envoy, a used port, a closed port, a bad directory and an unknown user are failures.
    """
    program = tmp_path / "envoy"
    program.write_text("#!/bin/sh\necho nginx version: nginx/1.22.1\n")
    program.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as server:
        at = f"127.0.0.1:{server.getsockname()[1]}"
        status, lines = before("--ads", at, "--admin", at, "--credentials", "none", "--envoy", str(program))
    assert (status, lines["control plane"]["status"]) == (1, "ok")
    assert lines["credentials"]["status"] == "warning"
    assert lines["Envoy's program"]["said"].endswith(
        "does not contain a version of Envoy: 'nginx version: nginx/1.22.1'"
    )
    assert f"{at} is in use by " in lines["port admin"]["said"]
    assert f"(pid {os.getpid()})" in lines["port admin"]["said"]
    assert lines["run directory"]["status"] == lines["proxy's user"]["status"] == "ok"
    assert not (tmp_path / "run").exists()

    _, lines = before("--ads", at, "--run", str(program / "run"), "--uid", "4711", "--envoy", "no-envoy")
    assert lines["control plane"]["said"].startswith("port-closed: no server listens at")
    assert lines["run directory"]["status"] == "failed"
    assert lines["proxy's user"]["do"].startswith("useradd --uid 4711")
    assert "the program does not exist" in lines["Envoy's program"]["said"]


def test_check_before_setup_looks_at_each_server(before: Before) -> None:
    """Each server of the control plane has a line; a server that is away is a failure."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        at = f"127.0.0.1:{server.getsockname()[1]}"
        status, lines = before("--ads", f"127.0.0.1:1,{at}", "--credentials", "none")
    assert status == 1
    assert "control plane" not in lines
    away, there = lines["control plane 127.0.0.1:1"], lines[f"control plane {at}"]
    assert (away["status"], there["status"]) == ("failed", "ok")
    assert away["said"] == "port-closed: no server listens at 127.0.0.1:1"
    assert there["said"].startswith(f"a server listens at {at}; without credentials")


def test_check_before_setup_judges_existing_credentials(before: Before, tmp_path: Path) -> None:
    """Existing credentials are checked for file modes and for a key that belongs to the certificate."""
    out = tmp_path / "credentials"
    write_credentials(tmp_path / "state", out)
    out.chmod(0o700)
    _, lines = before("--ads", "127.0.0.1:1", "--credentials", str(out))
    assert (lines["credentials"]["status"], lines["certificate"]["status"]) == ("ok", "ok"), lines
    (out / "proxy.key").chmod(0o644)
    _, lines = before("--ads", "127.0.0.1:1", "--credentials", str(out))
    assert lines["credentials"]["do"].startswith(f"chmod 600 {out / 'proxy.key'}")
    (out / "proxy.key").chmod(0o600)
    write_credentials(tmp_path / "other", tmp_path / "others")
    (out / "proxy.key").write_bytes((tmp_path / "others" / "proxy.key").read_bytes())
    _, lines = before("--ads", "127.0.0.1:1", "--credentials", str(out))
    assert "do not belong together" in lines["credentials"]["said"]
