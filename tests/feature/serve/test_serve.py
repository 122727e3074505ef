"""Tests of the program as a process: refused starts, and the end."""

import json
import os
import re
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.forked_cli import Typed
from tests.tools.program import SECONDS, Program

MANIFEST = """
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {name: w, namespace: shop}
spec: {address: 10.0.0.1, uuid: one, serviceAccount: store}
"""


@pytest.fixture
def program(tmp_path: Path, typed: Typed) -> Iterator[Program]:
    """The program with a mesh of one workload."""
    made = Program(tmp_path / "state", tmp_path, typed)
    (made.mesh / "mesh.yaml").write_text(MANIFEST)
    yield made
    made.end()


def _run(program: Program, *arguments: str) -> str:
    status, out, complaint = program.run(*arguments)
    assert status == 0, complaint
    return out


def _status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as response:  # noqa: S310 - our own server
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.mark.parametrize("setting", ["ads_address", "http_address", "debug_address"])
def test_used_port_is_named_with_its_setting(program: Program, setting: str) -> None:
    """The message names address and setting for each of the three ports."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        text = program.refused(f"--{setting.replace('_', '-')}={address}")
    assert text == f"cannot listen on {address} ({setting}): Address already in use"


def test_state_directory_that_cannot_be_created_is_reported(program: Program) -> None:
    """The path is an existing file."""
    program.state.write_text("")
    assert program.refused() == f"cannot create the state directory {program.state}: File exists"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_unwritable_state_directory_is_reported(program: Program) -> None:
    """The start is refused before a file is written."""
    program.state.mkdir(mode=0o500)
    assert "is not writable" in program.refused()


def test_second_server_on_a_state_directory_is_refused(program: Program) -> None:
    """The message names the process of the first server, which goes on."""
    first = program.serve().process
    assert re.search(rf"is in use by another meshwright \(process {first.pid}\)$", program.refused())
    assert first.poll() is None


@pytest.mark.parametrize("content", ["garbage", "other"])
def test_unusable_ca_key_is_reported(program: Program, content: str) -> None:
    """The key is unreadable, or belongs to another CA."""
    state, other = program.state, program.files / "other"
    for directory in (state, other):
        _run(
            program,
            *("certs", "issue-proxy", "--state", str(directory), "--uuid", "u"),
            *("--service", "s", "--namespace", "n", "--out", str(program.files / "out")),
        )
    key = state / "ca" / "ca.key"
    key.write_bytes(b"garbage" if content == "garbage" else (other / "ca" / "ca.key").read_bytes())
    text = program.refused()
    assert str(key) in text
    assert ("is not a private key" if content == "garbage" else "does not match") in text


def test_address_of_another_host_is_reported(program: Program) -> None:
    """The address is reserved for documentation (RFC 5737)."""
    text = program.refused("--ads-address=192.0.2.1:1")
    assert text == "cannot listen on 192.0.2.1:1 (ads_address): Cannot assign requested address"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_the_server_with_status_0_and_removes_its_socket(
    program: Program, number: signal.Signals
) -> None:
    """A new server on the same directory has the same CA."""
    server, state = program.serve(), program.state
    bound = server.bound
    assert _status(f"http://{bound['http']}/healthz/ready") == 200
    assert _status(f"http://{bound['http']}/healthz/live") == 200
    assert _status(f"http://{bound['debug']}/debug") == 200
    bundle = (state / "ca" / "ca.pem").read_bytes()
    server.process.send_signal(number)
    assert server.process.wait(SECONDS) == 0, server.log()[-10:]
    assert not (state / "meshwright.sock").exists()
    program.serve()
    assert (state / "ca" / "ca.pem").read_bytes() == bundle


def test_stopping_server_serves_until_others_have_taken_over(program: Program) -> None:
    """With `shutdown_delay_seconds` SIGTERM ends readiness first; a second SIGTERM ends the server."""
    program.issued("one")
    server = program.serve("--set", "shutdown_delay_seconds=3600")
    server.process.terminate()
    server.until(lambda: server.get("/healthz/ready") == (503, "waiting for: stopping\n"))
    assert server.get("/healthz/live") == (200, "alive\n")
    assert program.served(server, "one")
    server.process.terminate()
    assert server.process.wait(SECONDS) == -signal.SIGTERM


def test_server_with_delay_and_spread_ends_with_status_0(program: Program) -> None:
    """The server ends by itself when both times have passed."""
    server = program.serve("--set", "shutdown_delay_seconds=0.2", "--set", "shutdown_spread_seconds=0.2")
    server.stop()
    assert server.said("server stopped")


def test_killed_server_is_replaced_on_the_same_directory(program: Program) -> None:
    """The old socket and lock files do not prevent the start, and service certificates are used again."""
    program.issued("one")
    first = program.serve()
    assert program.served(first, "one")
    first.process.kill()
    first.process.wait(SECONDS)
    assert (program.state / "meshwright.sock").exists()
    certificate = program.state / "services" / "shop" / "store" / "certificate.pem"
    before = certificate.read_bytes()
    assert program.served(program.serve(), "one")
    assert certificate.read_bytes() == before


def test_commands_use_the_running_server(program: Program) -> None:
    """Certificates, proxies, hosts and sources come from the socket, as the server locks its directory."""
    program.serve()
    at = ("--state", str(program.state))
    out = program.files / "out"
    issued = _run(
        program,
        *("certs", "issue-proxy", *at, "--uuid", "one", "--service", "store", "--namespace", "shop"),
        *("--out", str(out)),
    )
    serial = issued.splitlines()[1].removeprefix("serial ")
    assert (out / "proxy.key").stat().st_mode & 0o777 == 0o600
    (proxy,) = json.loads(_run(program, "proxies", *at, "--json"))["proxies"]
    assert (proxy["cn"], proxy["state"]) == ("one.store.shop", "expected")
    assert "one" in _run(program, "proxies", *at)
    assert _run(program, "certs", "revoke", *at, serial) == f"revoked {serial} of one.store.shop\n"
    (entry,) = json.loads(_run(program, "certs", "list", *at, "--json"))["proxy_certificates"]
    assert (entry["serial"], entry["state"]) == (serial, "revoked")
    assert "revoked" in _run(program, "certs", "list", *at)
    assert _run(program, "hosts", *at, "--namespace", "shop") == ""
    sources = {
        source["name"]: source for source in json.loads(_run(program, "sources", *at, "--json"))["sources"]
    }
    assert sources["directory"]["objects"] == {"good": 1, "stale": 0, "refused": 0}
    assert sources["dns"]["error"] is None
    assert "directory" in _run(program, "sources", *at)


def test_debug_log_contains_no_private_key(program: Program) -> None:
    """The log at level debug and the other output contain no private key."""
    server = program.serve("--log-level=debug")
    server.stop()
    printed = [server.log_path.with_suffix(item).read_text() for item in (".log", ".out")]
    assert "PRIVATE KEY" not in "".join(printed)
