"""The program as it is run: what it says when it cannot start, and how it ends."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

COMMAND = (sys.executable, "-c", "from cli.main import main; main()")
ROOT = Path(__file__).parents[3]
MANIFEST = """
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {name: w, namespace: shop}
spec: {address: 10.0.0.1, uuid: one, serviceAccount: store}
"""
ENVIRONMENT = {
    name: value
    for name, value in (os.environ | {"PYTHONPATH": str(ROOT)}).items()
    if name in ("PATH", "PYTHONPATH", "MESHWRIGHT_VERIFY")
}
DIFFERS = "what is served is not what its inputs come to"
Process = subprocess.Popen[str]
Start = Callable[..., Process]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return the state directory; the mesh directory beside it holds one workload."""
    (tmp_path / "mesh").mkdir()
    (tmp_path / "mesh" / "w.yaml").write_text(MANIFEST)
    return tmp_path / "state"


@pytest.fixture
def start(state: Path) -> Iterator[Start]:
    """Start `meshwright serve` on ports of the system's choice; whatever still runs is killed in the end."""
    running: list[Process] = []

    def started(**flags: str) -> Process:
        anywhere = dict.fromkeys(("ads-address", "http-address", "debug-address"), "127.0.0.1:0")
        given = {"mesh": str(state.parent / "mesh"), "state": str(state)} | anywhere
        given |= {name.replace("_", "-"): value for name, value in flags.items()}
        arguments = [part for name, value in given.items() for part in (f"--{name}", value)]
        process = subprocess.Popen(
            [*COMMAND, "serve", *arguments],
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    yield started
    for process in running:
        process.kill()
        _, err = process.communicate()
        assert DIFFERS not in err


def _serving(process: Process) -> dict[str, Any]:
    """Read the log until the server says where it listens."""
    assert process.stderr is not None
    for line in process.stderr:
        assert DIFFERS not in line
        if line.startswith("{") and (said := json.loads(line))["event"] == "serving":
            return dict(said)
    raise AssertionError(f"it ended: {process.wait()}")


def _failure(process: Process) -> str:
    """Return the one sentence with which a server ended."""
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, "")
    sentences = [line for line in err.splitlines() if not line.startswith("{")]
    assert len(sentences) == 1, err
    return sentences[0]


def _run(*arguments: str) -> str:
    done = subprocess.run(
        [*COMMAND, *arguments],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def _status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=60) as response:  # noqa: S310 - our own server
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.mark.parametrize("setting", ["ads_address", "http_address", "debug_address"])
def test_a_port_in_use_is_named_with_its_setting(start: Start, setting: str) -> None:
    """Each of the three."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        said = _failure(start(**{setting: address}))
    assert said == f"meshwright: cannot listen on {address} ({setting}): Address already in use"


def test_a_state_directory_that_cannot_be_made_is_said(start: Start, state: Path) -> None:
    """A file stands in its place."""
    state.write_text("")
    assert _failure(start()) == f"meshwright: cannot create the state directory {state}: File exists"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_state_directory_that_is_not_writable_is_said(start: Start, state: Path) -> None:
    """Before anything is written."""
    state.mkdir(mode=0o500)
    assert "is not writable" in _failure(start())


def test_a_second_server_on_one_state_directory_is_said(start: Start) -> None:
    """It names the process that has it, and that one goes on."""
    first = start()
    _serving(first)
    assert re.search(rf"is in use by another meshwright \(process {first.pid}\)$", _failure(start()))
    assert first.poll() is None


@pytest.mark.parametrize("content", ["garbage", "other"])
def test_a_ca_key_that_does_not_fit_is_said(start: Start, state: Path, tmp_path: Path, content: str) -> None:
    """Unreadable, and of another authority."""
    for directory in (state, tmp_path / "other"):
        _run(
            *("certs", "issue-proxy", "--state", str(directory), "--uuid", "u"),
            *("--service", "s", "--namespace", "n", "--out", str(tmp_path / "out")),
        )
    key = state / "ca" / "ca.key"
    other = (tmp_path / "other" / "ca" / "ca.key").read_bytes()
    key.write_bytes(b"garbage" if content == "garbage" else other)
    said = _failure(start())
    assert str(key) in said
    assert ("is not a private key" if content == "garbage" else "does not match") in said


def test_a_host_that_is_not_ours_is_said(start: Start) -> None:
    """An address of nobody (RFC 5737)."""
    said = _failure(start(ads_address="192.0.2.1:1"))
    assert said == ("meshwright: cannot listen on 192.0.2.1:1 (ads_address): Cannot assign requested address")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_status_0_and_leaves_no_socket(
    start: Start, state: Path, number: signal.Signals
) -> None:
    """And the same directory serves again, with the same authority."""
    process = start()
    said = _serving(process)
    assert _status(f"http://{said['http']}/healthz/ready") == 200
    assert _status(f"http://{said['http']}/healthz/live") == 200
    assert _status(f"http://{said['debug']}/debug") == 200
    bundle = (state / "ca" / "ca.pem").read_bytes()
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert not (state / "meshwright.sock").exists()
    _serving(start())
    assert (state / "ca" / "ca.pem").read_bytes() == bundle


def test_a_server_that_was_killed_is_followed_by_another(start: Start, state: Path) -> None:
    """Its socket and lock files are no obstacle, and service certificates are used again."""
    first = start()
    _serving(first)
    first.kill()
    first.wait()
    assert (state / "meshwright.sock").exists()
    certificate = state / "services" / "shop" / "store" / "certificate.pem"
    before = certificate.read_bytes()
    _serving(start())
    assert certificate.read_bytes() == before


def test_the_commands_ask_the_running_server(start: Start, state: Path, tmp_path: Path) -> None:
    """Issue, list, revoke, hosts: through the socket, whose state directory the server has locked."""
    _serving(start())
    at = ("--state", str(state))
    out = tmp_path / "out"
    issued = _run(
        *("certs", "issue-proxy", *at, "--uuid", "one", "--service", "store", "--namespace", "shop"),
        *("--out", str(out)),
    )
    serial = issued.splitlines()[1].removeprefix("serial ")
    assert (out / "proxy.key").stat().st_mode & 0o777 == 0o600
    (proxy,) = json.loads(_run("proxies", *at, "--json"))["proxies"]
    assert (proxy["cn"], proxy["state"]) == ("one.store.shop", "expected")
    assert "one" in _run("proxies", *at)
    assert _run("certs", "revoke", *at, serial) == f"revoked {serial} of one.store.shop\n"
    (entry,) = json.loads(_run("certs", "list", *at, "--json"))["proxy_certificates"]
    assert (entry["serial"], entry["state"]) == (serial, "revoked")
    assert "revoked" in _run("certs", "list", *at)
    assert _run("hosts", *at, "--namespace", "shop") == ""
    sources = {each["name"]: each for each in json.loads(_run("sources", *at, "--json"))["sources"]}
    assert sources["directory"]["objects"] == {"good": 1, "stale": 0, "refused": 0}
    assert sources["dns"]["error"] is None
    assert "directory" in _run("sources", *at)


def test_no_log_line_holds_a_key(start: Start) -> None:
    """At the most talkative level."""
    process = start(log_level="debug")
    _serving(process)
    process.terminate()
    out, err = process.communicate(timeout=60)
    assert "PRIVATE KEY" not in out + err
